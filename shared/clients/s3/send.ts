// Sends commands of the SDK: the client of the right region, loaded on first use, with our errors.
import { Readable } from 'node:stream';
import type * as S3Sdk from '@aws-sdk/client-s3';
import type { S3ClientConfig } from '@aws-sdk/client-s3';
import type { HttpClient, HttpGet, HttpResponse } from '#shared/clients/http/client.ts';
import { pourFrom } from '#shared/clients/http/exchange.ts';
import { regionHint, type S3Subject, toS3Failure } from './errors.ts';
import type { S3Credentials } from './place.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

// Sends the SDK's requests by our own HTTP client: its address policy, timeouts and error messages apply to object stores, too.

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

const createRequestHandler = (http: HttpClient): NonNullable<S3ClientConfig['requestHandler']> => ({
  metadata: { handlerProtocol: 'http/1.1' },
  handle: (request: SdkRequest, options: SdkOptions = {}) => handle(http, request, options),
});

export interface S3ObjectKey {
  readonly bucket: string;
  readonly key: string;
}

export interface S3Options {
  /** Used for connections; its owner closes it. */
  readonly http: HttpClient;
  /** URL of the store. Default: AWS in this region. */
  readonly endpoint?: string | undefined;
  /** Region for the first signature; if the store reports another one for the bucket, that is used. */
  readonly region: string;
  /** `endpoint/bucket/key`, or else `bucket.endpoint/key`. */
  readonly pathStyle: boolean;
  /** Default: requests are not signed. */
  readonly credentials?: S3Credentials | undefined;
}

/** Sends a command of the SDK; a wrong region is corrected once. */
export type SendCommand = <T>(subject: S3Subject, work: (sdk: Sdk, client: SdkClient) => Promise<T>) => Promise<T>;
type Sdk = typeof S3Sdk;
type SdkClient = S3Sdk.S3Client;

/** Without credentials requests are not signed, but the SDK requires some value. */
const identityOf = ({ credentials }: S3Options): Pick<S3Sdk.S3ClientConfig, 'credentials' | 'signer'> => {
  if (credentials === undefined) {
    return {
      credentials: { accessKeyId: '', secretAccessKey: '' },
      signer: { sign: (request) => Promise.resolve(request) },
    };
  }
  const { sessionToken, ...pair } = credentials;
  return { credentials: sessionToken === undefined ? pair : { ...pair, sessionToken } };
};

const connect = (sdk: Sdk, options: S3Options, region: string): SdkClient =>
  new sdk.S3Client({
    region,
    forcePathStyle: options.pathStyle,
    ...(options.endpoint === undefined ? {} : { endpoint: options.endpoint }),
    requestHandler: createRequestHandler(options.http),
    // Retries are up to the caller, who has a deadline.
    maxAttempts: 1,
    // Default checksums are rejected by other stores. Bodies are signed and verified by that.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    ...identityOf(options),
  });

export const createSend = (options: S3Options): SendCommand => {
  let region = options.region;
  const clients = new Map<string, SdkClient>();
  const clientFor = async () => {
    const sdk = await import('@aws-sdk/client-s3');
    const client = clients.get(region) ?? connect(sdk, options, region);
    clients.set(region, client);
    return { sdk, client };
  };
  return async (subject, work) => {
    try {
      const asked = region;
      const { sdk, client } = await clientFor();
      return await work(sdk, client).catch(async (error: unknown) => {
        const hint = regionHint(error);
        if (hint === undefined || hint === asked) throw error;
        region = hint;
        const corrected = await clientFor();
        return work(corrected.sdk, corrected.client);
      });
    } catch (error) {
      throw toS3Failure(error, subject);
    }
  };
};
