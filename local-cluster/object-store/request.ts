// Parses a request according to S3: bucket, key, and parameters of the operation. Called by the server.
import type { IncomingMessage } from 'node:http';
import { StoreFault } from '#local-cluster/object-store/fault.ts';

export interface StoreRequest {
  readonly method: string;
  /** Empty for the service itself. */
  readonly bucket: string;
  /** Empty for the bucket itself. */
  readonly key: string;
  /** As sent, still encoded, without the query. */
  readonly path: string;
  readonly query: ReadonlyMap<string, string>;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: AsyncIterable<Buffer>;
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new StoreFault('InvalidArgument', `${JSON.stringify(text)} is not encoded as a URL is`);
  }
};

const parseQuery = (text: string): ReadonlyMap<string, string> =>
  new Map(
    text
      .split('&')
      .filter((pair) => pair !== '')
      .map((pair) => {
        const [name = '', ...value] = pair.split('=');
        return [decode(name), decode(value.join('='))];
      }),
  );

/** The bucket before the host name, if any: `bucket.localhost:9000`. */
const bucketOfHost = (host: string | undefined, domain: string): string | undefined => {
  const name = (host ?? '').replace(/:\d+$/, '').toLowerCase();
  return name.endsWith(`.${domain}`) ? name.slice(0, -domain.length - 1).replace(/\.s3$/, '') : undefined;
};

const headersOf = (message: IncomingMessage): Record<string, string> => {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(',') : value;
  }
  return headers;
};

/** The path is used as sent: a URL parser would normalize `..`, which is valid in a key. */
export const parseRequest = (message: IncomingMessage, domain = 'localhost'): StoreRequest => {
  const target = message.url ?? '/';
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  const hosted = bucketOfHost(message.headers.host, domain);
  const whole = hosted === undefined ? path.slice(1) : `${hosted}${path === '/' ? '' : path}`;
  const slash = whole.indexOf('/');
  return {
    method: message.method ?? 'GET',
    bucket: decode(slash === -1 ? whole : whole.slice(0, slash)),
    key: slash === -1 ? '' : decode(whole.slice(slash + 1)),
    path,
    query: mark === -1 ? new Map() : parseQuery(target.slice(mark + 1)),
    headers: headersOf(message),
    body: message,
  };
};
