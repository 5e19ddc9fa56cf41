// What Workers lack according to the table, tried under workerd: once one of these is supported, a function that needs it may run as a Worker.
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { connect } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { type RunningWorkers, startWorkers } from '#test/support/workers.ts';

const day = 24 * 3600 * 1000;
const validity = { from: new Date(Date.now() - day), to: new Date(Date.now() + day) };
const authority = createAuthority('an authority of our own', validity);
const own = issueServer(authority, ['localhost'], validity);

const aWorker = (name: string) => ({
  config: {
    name,
    main: `infra/workers/${name}.fixture.ts`,
    compatibility_date: '2026-10-01',
    compatibility_flags: ['nodejs_compat'],
  },
});

describe('a Worker', { timeout: 240_000 }, () => {
  const server = createServer({ cert: own.certificate, key: own.key }, (_, response) => response.end());
  let workers: RunningWorkers;
  beforeAll(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    workers = await startWorkers([aWorker('lacks')]);
  }, 240_000);
  afterAll(async () => {
    await workers?.close();
    server.closeAllConnections();
    server.close();
  });

  const attempt = async (way: string): Promise<string> => {
    const { port } = server.address() as AddressInfo;
    const body = JSON.stringify({ way, port, ca: authority.certificate });
    return (await workers.server.fetch('http://worker.example/', { method: 'POST', body })).text();
  };

  it('reaches a server, but cannot trust an additional authority, as Node can', async () => {
    const { port } = server.address() as AddressInfo;
    const socket = connect({ host: '127.0.0.1', port, ca: authority.certificate, servername: 'localhost' });
    await once(socket, 'secureConnect');
    socket.destroy();
    expect(await attempt('reach a server')).toBe('done');
    expect(await attempt('trust its authority')).toMatch(/Error/);
  });

  it('does not start with the HTTP client of Node, which queries Node for its trusted authorities', async () => {
    const words = "'node:tls' does not provide an export named 'getCACertificates'";
    await expect(startWorkers([aWorker('http-client')])).rejects.toThrow(words);
  });

  it('cannot authenticate with a client certificate', async () => {
    expect(await attempt('know its client by a certificate')).toBe('undefined');
  });

  it('cannot start a process', async () => {
    expect(await attempt('start a process')).toContain('child_process.spawn method is not implemented');
  });

  it('loses a file at the end of the request that wrote it', async () => {
    expect(await attempt('write a file')).toBe('bytes');
    expect(await attempt('find it later')).toMatch(/no such file/);
  });
});
