// HTTPS before the router: converts Node's requests to those of fetch and streams the responses, headers first, so that a watch is open at once.
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Server, createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Handle } from './router.ts';
import { boundConnections, handshakeTimeoutMs } from '#shared/runtime/connections.ts';

export interface ListenOptions {
  readonly handle: Handle;
  readonly port: number;
  readonly key: string;
  readonly certificate: string;
}

export interface Listener {
  readonly port: number;
  /** Cuts all connections, including watches. */
  readonly close: () => Promise<void>;
}

/** Somewhat more than the maximum of any body, so that the handler detects that it is too large. */
const limitBytes = 4 * 1024 * 1024;

/** Bodies are small and limited; reading them at once is much cheaper than streaming. */
const readBody = async (incoming: IncomingMessage): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size <= limitBytes) chunks.push(chunk);
  }
  return Buffer.concat(chunks);
};

const toRequest = async (incoming: IncomingMessage, signal: AbortSignal): Promise<Request> => {
  const headers = new Headers();
  for (let index = 0; index < incoming.rawHeaders.length; index += 2) {
    headers.append(incoming.rawHeaders[index] ?? '', incoming.rawHeaders[index + 1] ?? '');
  }
  const method = incoming.method ?? 'GET';
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(new URL(incoming.url ?? '/', 'https://localhost'), {
    method,
    headers,
    signal,
    ...(hasBody ? { body: await readBody(incoming) } : {}),
  });
};

const writeHead = (outgoing: ServerResponse, response: Response): void => {
  const warnings: string[] = [];
  for (const [name, value] of response.headers) {
    if (name === 'warning') warnings.push(...value.split(/, (?=299 )/));
    else if (name !== 'transfer-encoding') outgoing.setHeader(name, value);
  }
  if (warnings.length > 0) outgoing.setHeader('warning', warnings);
  outgoing.statusCode = response.status;
  // The headers of a watch are sent before its first event; all other responses are sent together with their headers.
  if (isStream(response)) outgoing.flushHeaders();
};

const isStream = (response: Response): boolean => response.headers.has('transfer-encoding');

const untilDrained = (outgoing: ServerResponse): Promise<void> =>
  new Promise((resolve) => {
    outgoing.once('drain', resolve);
    outgoing.once('close', resolve);
  });

const writeBody = async (outgoing: ServerResponse, body: ReadableStream<Uint8Array>): Promise<void> => {
  const reader = body.getReader();
  if (!outgoing.headersSent) {
    const first = await reader.read();
    const second = first.done ? first : await reader.read();
    if (second.done) {
      outgoing.end(first.value);
      return;
    }
    outgoing.write(first.value);
    outgoing.write(second.value);
  }
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (outgoing.destroyed) {
      await reader.cancel();
      return;
    }
    if (!outgoing.write(value)) await untilDrained(outgoing);
  }
  outgoing.end();
};

const serve = async (handle: Handle, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
  const abort = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) abort.abort();
  });
  const response = await handle(await toRequest(incoming, abort.signal));
  if (outgoing.destroyed) return;
  writeHead(outgoing, response);
  if (response.body === null || incoming.method === 'HEAD') outgoing.end();
  else await writeBody(outgoing, response.body);
};

/** Binds to loopback only. `port` 0 uses any free one. */
export const listen = async ({ handle, port, key, certificate }: ListenOptions): Promise<Listener> => {
  const options = { key, cert: certificate, keepAliveTimeout: 75_000, handshakeTimeout: handshakeTimeoutMs };
  const server: Server = createServer(options, (incoming, outgoing) => {
    serve(handle, incoming, outgoing).catch(() => outgoing.destroy());
  });
  boundConnections(server);
  // The server tracks a connection only after its TLS handshake: one that has not completed it would outlive `close`.
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
};
