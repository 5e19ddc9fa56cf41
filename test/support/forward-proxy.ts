// A forward proxy as in companies: it forwards plain HTTP, tunnels TLS, and resolves names that only it knows.
import { once } from 'node:events';
import { type IncomingMessage, type ServerResponse, createServer, request as connect } from 'node:http';
import { type AddressInfo, type Socket, connect as open } from 'node:net';

export interface ForwardProxy {
  readonly url: string;
  /** `GET http://…` and `CONNECT host:port`, oldest first. */
  readonly requests: string[];
  close(): Promise<void>;
}

export interface ForwardProxyOptions {
  /** Ports of this machine by `host:port`; anything else is answered with 403. */
  readonly ports: Readonly<Record<string, number>>;
}

const forward = (port: number | undefined, incoming: IncomingMessage, response: ServerResponse): void => {
  if (port === undefined) return void response.writeHead(403).end();
  const { pathname, search } = new URL(incoming.url ?? '');
  const to = { host: '127.0.0.1', port, method: incoming.method, path: pathname + search, headers: incoming.headers };
  const upstream = connect(to, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  upstream.on('error', () => response.destroy());
  incoming.pipe(upstream);
};

const tunnel = (port: number | undefined, socket: Socket): void => {
  socket.on('error', () => {});
  if (port === undefined) return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
  const upstream = open(port, '127.0.0.1', () => {
    socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    upstream.pipe(socket).pipe(upstream);
  });
  upstream.on('error', () => socket.destroy());
  socket.on('close', () => upstream.destroy());
};

export const startForwardProxy = async ({ ports }: ForwardProxyOptions): Promise<ForwardProxy> => {
  const requests: string[] = [];
  const sockets = new Set<Socket>();
  const portOf = (authority: string): number | undefined => ports[authority];
  const server = createServer((incoming, response) => {
    requests.push(`${incoming.method} ${incoming.url}`);
    const url = URL.canParse(incoming.url ?? '') ? new URL(incoming.url ?? '') : undefined;
    forward(url && portOf(`${url.hostname}:${url.port || 80}`), incoming, response);
  });
  server.on('connect', (incoming, socket) => {
    requests.push(`CONNECT ${incoming.url}`);
    sockets.add(socket as Socket);
    tunnel(portOf(incoming.url ?? ''), socket as Socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
