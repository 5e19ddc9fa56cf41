import { spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { Agent as HttpAgent, request as httpRequest } from 'node:http';
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { connect } from 'node:tls';
import { setTimeout as wait } from 'node:timers/promises';
import { afterAll, describe, expect, it } from 'vitest';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { type RunningServer, startServer } from '#shared/runtime/serve.ts';
import { kubeconfigFor } from '#test/support/kubeconfig.ts';
import { slowness } from '#test/support/slowness.ts';

const app = (delayMs = 0, begun?: () => void) => ({
  fetch: async () => {
    begun?.();
    await wait(delayMs);
    return new Response('hello');
  },
});

/** One GET over a connection of the agent. */
const get = (url: string, agent: HttpAgent) =>
  new Promise<{ status: number; connection: string | undefined }>((resolve, reject) => {
    const request = url.startsWith('https:') ? httpsRequest : httpRequest;
    request(url, { agent }, (response) => {
      response.resume();
      response.on('end', () => resolve({ status: response.statusCode ?? 0, connection: response.headers.connection }));
    })
      .on('error', reject)
      .end();
  });

describe('startServer', () => {
  it('serves health endpoints next to the app on loopback', async () => {
    let isReady = false;
    const server = await startServer({ app: app(), log, port: 0, isReady: () => isReady });
    const status = async (path: string) => (await fetch(server.url + path)).status;
    expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect([await status('/'), await status('/healthz'), await status('/readyz')]).toEqual([200, 200, 503]);
    isReady = true;
    expect(await status('/readyz')).toBe(200);
    await server.close();
  });

  it('rejects when the port is in use', async () => {
    const server = await startServer({ app: app(), log, port: 0 });
    await expect(startServer({ app: app(), log, port: server.port })).rejects.toThrow(/EADDRINUSE/);
    await server.close();
  });

  it('finishes requests in flight, closes kept-alive connections and rejects new ones', async () => {
    let begun = 0;
    const server = await startServer({ app: app(300, () => (begun += 1)), log, port: 0 });
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    expect((await get(server.url, agent)).connection).toBe('keep-alive');
    const inFlight = get(server.url, agent);
    await expect.poll(() => begun, { interval: 5 }).toBe(2);
    const started = performance.now();
    const closed = server.close();
    expect(await inFlight).toEqual({ status: 200, connection: 'close' });
    await closed;
    expect((performance.now() - started) / slowness()).toBeLessThan(2_000);
    await expect(get(server.url, agent)).rejects.toThrow(/ECONNREFUSED/);
    agent.destroy();
  });

  it.each<[string, (request: Request) => Promise<unknown>]>([
    ['reads a body to its end', (request) => request.text()],
    ['leaves a body unread', () => Promise.resolve()],
    [
      'stops reading in the middle',
      async ({ body }) => {
        const reader = body!.getReader();
        await reader.read();
        reader.releaseLock();
      },
    ],
  ])('lets a client finish sending, and keeps its connection, when the app %s', async (_what, take) => {
    const fetchBody = async (request: Request) => {
      if (request.method === 'POST') await take(request);
      return new Response('said');
    };
    const server = await startServer({ app: { fetch: fetchBody }, log, port: 0 });
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const answer = new Promise<string>((resolve, reject) => {
      const request = httpRequest(server.url, { agent, method: 'POST', headers: { 'content-length': 9_000_000 } });
      request.on('response', (response) => response.setEncoding('utf8').once('data', resolve));
      request.on('error', reject);
      request.write(Buffer.alloc(1_000_000));
      setTimeout(() => request.end(Buffer.alloc(8_000_000)), 800);
    });
    expect(await answer).toBe('said');
    expect(await get(server.url, agent)).toEqual({ status: 200, connection: 'keep-alive' });
    agent.destroy();
    await server.close();
  });

  it('does not wait for headers that never end, whatever the timeout of a body', async () => {
    const server = await startServer({ app: app(), log, port: 0, requestTimeoutMs: 0, headersTimeoutMs: 200 });
    const socket = connectPlain(server.port, '127.0.0.1');
    socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow:');
    const said = await new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (part: Buffer) => (text += part.toString()));
      socket.on('close', () => resolve(text));
    });
    expect(said).toMatch(/^HTTP\/1\.1 408 [\s\S]*"code":408/);
    await server.close();
  });

  it('is not ready during shutdown, and still answers clients that have not noticed', async () => {
    const server = await startServer({ app: app(), log, port: 0 });
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const kept = await get(server.url, agent);
    server.leave();
    const [last, late] = [await get(server.url, agent), await get(server.url, agent)];
    expect([kept.connection, last.connection, late.status]).toEqual(['keep-alive', 'close', 200]);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(503);
    await server.close();
    agent.destroy();
  });

  it('aborts requests that are in flight at the deadline', async () => {
    const server = await startServer({ app: app(60_000), log, port: 0, drainMs: 100 });
    const agent = new HttpAgent({ keepAlive: true });
    const inFlight = get(server.url, agent).catch((error: unknown) => error);
    await wait(50);
    await server.close();
    expect(await inFlight).toBeInstanceOf(Error);
    agent.destroy();
  });
});

describe('startServer over TLS', () => {
  const folder = mkdtempSync(join(tmpdir(), 'serve-'));
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key'), checkMs: 20 };
  let server: RunningServer;

  /** Puts a new pair in place; its serial number. */
  const issue = async (name: string) => {
    const pair = await ensureControlPlaneFiles(join(folder, name));
    copyFileSync(pair.key, files.keyFile);
    copyFileSync(pair.certificate, files.certFile);
    return new X509Certificate(readFileSync(files.certFile)).serialNumber;
  };
  const servedSerial = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port: server.port, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().serialNumber);
        socket.destroy();
      });
      socket.on('error', reject);
    });

  afterAll(async () => {
    await server.close();
    rmSync(folder, { recursive: true });
  });

  it('as a function, keeps accepting for a moment after SIGTERM: requests through a Service still arrive', async () => {
    await issue('leaving');
    const env = { ...process.env, PORT: '0', TLS_DIR: folder, KUBECONFIG: join(folder, 'kubeconfig') };
    writeFileSync(join(folder, 'kubeconfig'), kubeconfigFor());
    const child = spawn(process.execPath, ['functions/validate/index.ts'], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const said = async () => JSON.parse((await lines.next()).value as string) as { message: string; url: string };
    const { url } = await said();
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    expect((await said()).message).toBe('draining');
    const agent = new HttpsAgent({ rejectUnauthorized: false });
    expect(await get(`${url}/healthz`, agent)).toMatchObject({ status: 200 });
    expect(await get(`${url}/readyz`, agent)).toMatchObject({ status: 503 });
    expect(await gone).toBe(0);
    await expect(get(`${url}/healthz`, agent)).rejects.toThrow(/ECONNREFUSED/);
  });

  it('serves the new certificate after the files were replaced', async () => {
    const first = await issue('first');
    server = await startServer({ app: app(), log, port: 0, tls: files });
    expect(await servedSerial()).toBe(first);
    const second = await issue('second');
    await expect.poll(servedSerial).toBe(second);
  });
});
