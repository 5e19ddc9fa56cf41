// A reverse proxy: each request goes where `route` says, as it is, and so does each answer. Called by ingress.ts.
import { once } from 'node:events';
import {
  Agent,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  createServer,
  request as connect,
} from 'node:http';
import { pipeline } from 'node:stream/promises';
import type { Target } from '#local-cluster/node/knative/routes.ts';

/** With the address of its Service. */
export interface Located extends Target {
  readonly address: string;
}

/** Every request has a connection of its own: none is sent to a pod that is gone. */
const agent = new Agent({ keepAlive: false });

/** Of one connection; `expect` was answered here; `host` may not be a list. */
const hopByHop = ['connection', 'keep-alive', 'expect', 'upgrade', 'host'];

const endToEnd = (headers: IncomingMessage['headersDistinct']): Record<string, string[]> =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || hopByHop.includes(name) ? [] : [[name, value]],
    ),
  );

const forward = async (incoming: IncomingMessage, outgoing: ServerResponse, to: Located | undefined): Promise<void> => {
  if (to === undefined) {
    outgoing.writeHead(404).end(`no Knative Service has the host ${incoming.headers.host}\n`);
    return;
  }
  const from = {
    host: incoming.headers.host,
    'x-forwarded-for': incoming.socket.remoteAddress ?? '',
    'x-forwarded-proto': 'http',
  };
  const lowered = Object.fromEntries(Object.entries(to.headers).map(([name, value]) => [name.toLowerCase(), value]));
  const onward = connect({
    agent,
    host: to.address,
    port: to.servicePort,
    method: incoming.method,
    path: incoming.url,
    headers: { ...endToEnd(incoming.headersDistinct), ...from, ...lowered },
  });
  outgoing.once('close', () => onward.destroy());
  // Also after the response.
  onward.on('error', () => undefined);
  try {
    const sent = pipeline(incoming, onward);
    // Its failure is the one of the response.
    sent.catch(() => undefined);
    const [response] = (await once(onward, 'response')) as [IncomingMessage];
    outgoing.writeHead(response.statusCode ?? 502, endToEnd(response.headersDistinct));
    await pipeline(response, outgoing);
  } catch (error) {
    if (outgoing.headersSent) outgoing.destroy();
    else outgoing.writeHead(503).end(`${to.serviceName} cannot be reached: ${String(error)}\n`);
  }
};

type Route = (incoming: IncomingMessage) => Located | undefined;

/** Uploads may take hours; connections stay longer than those of clients do. */
export const createProxy = (route: Route): Server =>
  createServer({ requestTimeout: 0, keepAliveTimeout: 120_000 }, (incoming, outgoing) => {
    void forward(incoming, outgoing, route(incoming));
  });
