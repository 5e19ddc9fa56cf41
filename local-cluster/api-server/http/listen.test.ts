import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadAuthority } from '../auth/certificates.ts';
import { listen } from './listen.ts';

it('closes although a client has connected and never completes its TLS handshake', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'bullion-listen-'));
  const { key, certificate } = await (await loadAuthority(dir)).issue('test', ['127.0.0.1']);
  const listener = await listen({ handle: async () => new Response('ok'), port: 0, key, certificate });
  const client = connect(listener.port, '127.0.0.1');
  client.on('error', () => undefined);
  await once(client, 'connect');

  await expect(listener.close()).resolves.toBeUndefined();
  await rm(dir, { recursive: true, force: true });
}, 240_000);
