// Forwards a request to the extension server of an APIService, and returns its response, as kube-aggregator does.
import { Readable } from 'node:stream';
import type { Dispatcher } from 'undici';
import type { User } from '../auth/user.ts';
import { failure } from '../status/status.ts';
import { respondError } from '../http/respond.ts';
import type { Connector } from './connect.ts';
import type { Extension } from './extension.ts';

/** Headers that belong to one connection, identify the user, or are reserved for the front proxy. */
const isOurs = (name: string): boolean =>
  [
    'authorization',
    'connection',
    'content-length',
    'expect',
    'host',
    'keep-alive',
    'te',
    'transfer-encoding',
    'upgrade',
  ].includes(name) ||
  name.startsWith('x-remote-') ||
  name.startsWith('impersonate-');

const plainError = (text: string): Response =>
  new Response(`${text}\n`, {
    status: 503,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
  });

const toResponse = (answer: Dispatcher.ResponseData): Response => {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answer.headers)) {
    if (name === 'connection' || name === 'keep-alive' || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  const isBodiless = [204, 205, 304].includes(answer.statusCode);
  const body = isBodiless ? null : (Readable.toWeb(answer.body) as ReadableStream<Uint8Array>);
  return new Response(body, { status: answer.statusCode, headers });
};

/** Never throws for errors of the other server: an unreachable server results in a response, too. */
export const forward = async (
  connector: Connector,
  extension: Extension,
  request: Request,
  user: User,
): Promise<Response> => {
  if (!extension.isAvailable) return plainError('service unavailable');
  const { pathname, search } = new URL(request.url);
  const headers = Object.fromEntries([...request.headers].filter(([name]) => !isOurs(name)));
  const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
  const body = hasBody ? new Uint8Array(await request.arrayBuffer()) : undefined;
  try {
    return toResponse(
      await connector.ask(extension, {
        method: request.method,
        path: `${pathname}${search}`,
        headers,
        body,
        user,
        signal: request.signal,
      }),
    );
  } catch (error) {
    const message = `error trying to reach service: ${error instanceof Error ? error.message : String(error)}`;
    return respondError(failure({ code: 503, reason: 'ServiceUnavailable', message }));
  }
};
