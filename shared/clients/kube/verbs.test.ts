import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { KubeConfig } from '@kubernetes/client-node';
import fc from 'fast-check';
import { afterEach, describe, expect, it } from 'vitest';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { WatchOptions } from './client.ts';
import { createKubeClient } from './create.ts';
import { readLines } from './verbs.ts';

const pods: ResourceType = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };
const line = (type: string, name: string) =>
  `${JSON.stringify({ type, object: { apiVersion: 'v1', kind: 'Pod', metadata: { name } } })}\n`;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** A client of a server that answers with `script`. */
const connect = async (script: (response: ServerResponse) => void) => {
  server = createServer((_, response) => script(response));
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [
      { name: 'c', skipTLSVerify: true, server: `http://127.0.0.1:${(server.address() as AddressInfo).port}` },
    ],
    users: [{ name: 'u' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  return createKubeClient(config);
};

/** Collects names until the end of a watch. */
const watch = async (script: (response: ServerResponse) => void, options: Partial<WatchOptions> = {}) => {
  const observed: string[] = [];
  const events = (await connect(script)).watch<KubeObject>(pods, { signal: new AbortController().signal, ...options });
  try {
    for await (const event of events) observed.push(event.object.metadata.name);
    return { observed };
  } catch (error) {
    return { observed, error };
  }
};

describe('watch', () => {
  it('ends quietly when the server closes the stream', async () => {
    expect(await watch((response) => response.end(line('ADDED', 'a') + line('MODIFIED', 'b')))).toEqual({
      observed: ['a', 'b'],
    });
  });

  it('throws Unavailable when the connection breaks', async () => {
    const result = await watch((response) => {
      response.write(line('ADDED', 'a'), () => response.destroy());
    });
    expect(result).toMatchObject({ observed: ['a'], error: { code: 'Unavailable' } });
  });

  it('throws Unavailable when the stream ends in the middle of an event', async () => {
    const result = await watch((response) => response.end(`${line('ADDED', 'a')}{"type":"ADD`));
    expect(result).toMatchObject({ observed: ['a'], error: { code: 'Unavailable' } });
  });

  it('throws Conflict when the version is too old, in the response or in the stream', async () => {
    const status = { kind: 'Status', code: 410, message: 'too old resource version' };
    const inStream = await watch((response) => response.end(`${JSON.stringify({ type: 'ERROR', object: status })}\n`));
    expect(inStream).toMatchObject({ error: { code: 'Conflict' } });
    server?.close();
    const asAnswer = await watch((response) => response.writeHead(410).end(JSON.stringify(status)));
    expect(asAnswer).toMatchObject({ error: { code: 'Conflict' } });
  });

  it('ends quietly when the server stops sending', async () => {
    expect(await watch((response) => void response.write(line('ADDED', 'a')), { idleMs: 1_000 })).toEqual({
      observed: ['a'],
    });
    server?.closeAllConnections();
    server?.close();
    expect(await watch(() => undefined, { idleMs: 50 })).toEqual({ observed: [] });
  });

  it('does not mistake a slow consumer for a server that stopped sending', async () => {
    const script = async (response: ServerResponse) => {
      response.write(line('ADDED', 'a') + line('ADDED', 'b'));
      await wait(30);
      response.end(line('ADDED', 'c'));
    };
    expect(await watch((response) => void script(response), { idleMs: 3_000 })).toEqual({ observed: ['a', 'b', 'c'] });
  });

  it('ends quietly when it is aborted', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 50);
    expect(await watch((response) => void response.write(line('ADDED', 'a')), { signal: stop.signal })).toEqual({
      observed: ['a'],
    });
  });
});

describe('logs', () => {
  /** `isStopped`: after the first line. */
  const logs = async (script: (response: ServerResponse) => void, isStopped = false) => {
    const stop = new AbortController();
    const read = (await connect(script)).logs({ namespace: 'vms', name: 'pod' }, { signal: stop.signal });
    const lines: string[] = [];
    for await (const line of read) {
      lines.push(line);
      if (isStopped) stop.abort();
    }
    return lines;
  };

  it('are lines, the last of which may have no end', async () => {
    expect(await logs((response) => response.end('one\n\ntwo'))).toEqual(['one', '', 'two']);
  });

  it('end quietly when they are aborted, and throw what the server says', async () => {
    expect(await logs((response) => void response.write('one\n'), true)).toEqual(['one']);
    server?.close();
    const status = JSON.stringify({ kind: 'Status', code: 400, message: 'waiting to start' });
    await expect(logs((response) => response.writeHead(400).end(status))).rejects.toMatchObject({
      code: 'InvalidInput',
    });
  });
});

describe('readLines', () => {
  it('finds the lines of a text however it is split', async () => {
    const lines = fc.array(fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll(/[\r\n]/g, '')));
    await fc.assert(
      fc.asyncProperty(lines, fc.integer({ min: 1, max: 7 }), async (texts, size) => {
        const bytes = Buffer.from(texts.map((text) => `${text}\n`).join(''));
        const chunks = async function* cut() {
          for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
        };
        expect(await Array.fromAsync(readLines(chunks()))).toEqual(texts);
      }),
    );
  });
});
