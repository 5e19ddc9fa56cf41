// Sends the SDK's requests by our own HTTP client: its address policy, timeouts and error messages apply to object stores, too.
import { Readable } from 'node:stream';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { HttpClient, HttpGet, HttpResponse } from '#shared/clients/http/client.ts';
import { pourFrom } from '#shared/clients/http/exchange.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** The used fields of an SDK request. */
interface SdkRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number | undefined;
  readonly path: string;
  readonly method: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface SdkOptions {
  readonly abortSignal?: unknown;
}

/** Set by the connection itself, or not supported by it. */
const ownHeaders = new Set(['expect', 'connection', 'transfer-encoding', 'content-length']);

const headersOf = ({ headers }: SdkRequest): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !ownHeaders.has(name.toLowerCase())));

const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );

const pathOf = ({ path, query = {} }: SdkRequest): string => {
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    value === null ? [encode(name)] : [value].flat().map((one) => `${encode(name)}=${encode(one)}`),
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join('&')}`;
};

const bodyOf = ({ body }: SdkRequest): Uint8Array | undefined => {
  if (body === undefined || body === null || body === '') return undefined;
  if (typeof body === 'string') return Buffer.from(body);
  if (body instanceof Uint8Array) return body;
  throw new InvalidInput('the body of a request to an object store must be a buffer, not a stream');
};

/** The SDK requires a stream, and returns it unchanged unless it verifies a checksum. */
const pours = new WeakMap<Readable, HttpResponse['pour']>();

/** The bytes of a body without a stream in between, if that is possible. */
export const pourOf = (body: Readable): HttpResponse['pour'] => pours.get(body) ?? pourFrom(body);

const handle = async (http: HttpClient, request: SdkRequest, { abortSignal }: SdkOptions) => {
  const port = request.port === undefined ? '' : `:${request.port}`;
  const body = bodyOf(request);
  const answer = await http.get({
    url: new URL(`${request.protocol}//${request.hostname}${port}`),
    path: pathOf(request),
    method: request.method as HttpGet['method'],
    headers: headersOf(request),
    ...(body === undefined ? {} : { body }),
    ...(abortSignal instanceof AbortSignal ? { signal: abortSignal } : {}),
  });
  const content = Readable.from(answer.body, { objectMode: false });
  // The connection must also be closed if the body is never read.
  content.once('close', () => answer.discard());
  pours.set(content, (take) => answer.pour(take));
  return { response: { statusCode: answer.status, headers: { ...answer.headers }, body: content } };
};

export const createRequestHandler = (http: HttpClient): NonNullable<S3ClientConfig['requestHandler']> => ({
  metadata: { handlerProtocol: 'http/1.1' },
  handle: (request: SdkRequest, options: SdkOptions = {}) => handle(http, request, options),
});
