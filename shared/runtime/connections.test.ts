// How a server handles clients that never end a request, or never close: many raw sockets, and no file descriptor is leaked.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type RequestListener, createServer as createHttpServer } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { type AddressInfo, type Server, type Socket, connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TLSSocket, connect as connectTls } from 'node:tls';
import { type TestContext, describe, expect, it } from 'vitest';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import { boundConnections, handshakeTimeoutMs } from '#shared/runtime/connections.ts';
import { closeOnceRead } from '#shared/runtime/connections.ts';

const many = 100;
const soon = { timeout: 15_000, interval: 100 };

const limits = { headersTimeout: 300, requestTimeout: 0, connectionsCheckingInterval: 50 };
const refuse: RequestListener = (request, response) => {
  closeOnceRead(request, response);
  response.writeHead(409).end('no more of it');
  request.resume();
};

type AtEnd = TestContext['onTestFinished'];

const listening = async (server: Server, atEnd: AtEnd): Promise<Server> => {
  boundConnections(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  atEnd(() => void server.close());
  return server;
};
const countOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
const portOf = (server: Server): number => (server.address() as AddressInfo).port;

/** Clients that read nothing and never close their side, whatever the server does. */
const leftOf = async (server: Server, begin: (socket: Socket) => void, atEnd: AtEnd): Promise<number> => {
  const sockets = Array.from({ length: many }, () =>
    connect({ port: portOf(server), host: '127.0.0.1', allowHalfOpen: true }).on('error', () => undefined),
  );
  atEnd(() => sockets.forEach((socket) => socket.destroy()));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  sockets.forEach((socket) => begin(socket.pause()));
  await expect.poll(() => countOf(server), soon).toBe(0);
  return countOf(server);
};

describe('connections that a server has ended are closed, whatever their clients do', () => {
  // Beside each other: they wait for deadlines.
  it.concurrent.for<[what: string, begin: (socket: Socket) => void]>([
    ['that never send anything', () => undefined],
    ['whose headers never end', (socket) => socket.write('GET / HTTP/1.1\r\nhost: x\r\nx-slow:')],
    ['that speak no HTTP', (socket) => socket.write('\x16\x03\x01 hello\r\n\r\n')],
    ['whose headers are too large', (socket) => socket.write(`GET / HTTP/1.1\r\nx: ${'x'.repeat(20_000)}`)],
    [
      'that were rejected before their body ended, through a proxy',
      (socket) => socket.write('PUT / HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 3\r\n\r\nabc'),
    ],
  ])('%s', { timeout: 30_000 }, async ([, begin], { onTestFinished }) => {
    const server = await listening(createHttpServer(limits, refuse), onTestFinished);
    expect(await leftOf(server, begin, onTestFinished)).toBe(0);
  });

  it.concurrent.for<[what: string, begin: (socket: Socket) => void]>([
    ['half way through a TLS handshake', () => undefined],
    ['that speak no TLS where TLS is spoken', (socket) => socket.write('GET / HTTP/1.1\r\n\r\n')],
    [
      'whose headers never end, over TLS',
      (socket) =>
        connectTls({ socket, rejectUnauthorized: false }, function (this: TLSSocket) {
          this.pause().write('GET / HTTP/1.1\r\nx:');
        }).on('error', () => undefined),
    ],
  ])('%s', { timeout: 30_000 }, async ([, begin], { onTestFinished }) => {
    const folder = mkdtempSync(join(tmpdir(), 'connections-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const { key, certificate } = await ensureControlPlaneFiles(folder);
    const pem = { key: readFileSync(key), cert: readFileSync(certificate) };
    const server = await listening(
      createHttpsServer({ ...limits, ...pem, handshakeTimeout: 1_000 }, refuse),
      onTestFinished,
    );
    expect(await leftOf(server, begin, onTestFinished)).toBe(0);
    expect(handshakeTimeoutMs).toBeLessThanOrEqual(10_000);
  });

  it('for each server', () => {
    const files = globSync(['{shared,functions,infra,cli,events}/**/*.ts'], { cwd: process.cwd() });
    const serving = files.filter((file) => {
      const text = readFileSync(file, 'utf8');
      return !file.endsWith('.test.ts') && /create\w*Server\w*\b[^;]*from 'node:https?'/s.test(text);
    });
    const unbounded = serving.filter((file) => !/\b(boundConnections|listen)\(server/.test(readFileSync(file, 'utf8')));
    const slowToShake = serving.filter((file) => {
      const text = readFileSync(file, 'utf8');
      return text.includes("'node:https'") && !text.includes('handshakeTimeout: handshakeTimeoutMs');
    });
    expect([serving.length >= 4, unbounded, slowToShake]).toEqual([true, [], []]);
  });
});
