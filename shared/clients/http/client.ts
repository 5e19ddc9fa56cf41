// Raw HTTP(S): bytes as the server sends them, never content-decoded, to addresses the policy allows. Used by the transfer sources.
import { lookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher, buildConnector } from 'undici';
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import { HttpFailure, toHttpFailure } from '#shared/clients/http/errors.ts';
import { idleGuarded } from '#shared/clients/http/idle.ts';

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, once. Throws HttpFailure when it is cut or idles; leaving the loop early closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /** Gives the body up; must be called where `body` is not read. */
  discard(): void;
}

export interface HttpGet {
  readonly url: URL;
  /** Path and query exactly as they are to be sent, in place of those of `url`, which folds `..`. */
  readonly path?: string | undefined;
  /** Left out: GET. */
  readonly method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'DELETE' | undefined;
  readonly body?: Uint8Array | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface HttpClient {
  /** One exchange, no redirects. Any status is an answer; throws HttpFailure, or the signal's reason once it is aborted. */
  get(call: HttpGet): Promise<HttpResponse>;
  close(): Promise<void>;
}

export interface HttpClientOptions {
  readonly isRefused: AddressPolicy;
  /** Milliseconds without a byte, while one is waited for, before the exchange is given up. */
  readonly idleMs: number;
  /** Milliseconds for DNS, connection and TLS. */
  readonly connectMs?: number;
  /** PEM certificates trusted besides the well-known ones. */
  readonly ca?: string | undefined;
  readonly connections?: number;
}

const refusal = (host: string, addresses: readonly string[]): HttpFailure =>
  new HttpFailure(
    'AddressRefused',
    `${host} leads to ${addresses.join(', ')}: loopback, link-local and metadata addresses are not allowed as a source; ` +
      'an operator can allow the range',
  );

/** Resolves a name once and hands on allowed addresses only, so what was checked is what is connected to. */
const guardedLookup =
  (isRefused: AddressPolicy): LookupFunction =>
  (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '');
      const allowed = found.filter(({ address }) => !isRefused(address));
      const [first] = allowed;
      if (first === undefined) {
        return callback(
          refusal(
            hostname,
            found.map(({ address }) => address),
          ),
          '',
        );
      }
      return options.all === true ? callback(null, allowed) : callback(null, first.address, first.family);
    });
  };

const createConnector = (options: HttpClientOptions): buildConnector.connector => {
  const connect = buildConnector({
    timeout: options.connectMs ?? 15_000,
    lookup: guardedLookup(options.isRefused),
    allowH2: false,
    ...(options.ca === undefined ? {} : { ca: [...getCACertificates('default'), options.ca] }),
  });
  return (target, callback) => {
    const literal = target.hostname.replace(/^\[|\]$/g, '');
    if (isIP(literal) !== 0 && options.isRefused(literal)) callback(refusal(literal, [literal]), null);
    else connect(target, callback);
  };
};

const flatten = (headers: Dispatcher.ResponseData['headers']): Record<string, string> => {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = typeof value === 'string' ? value : value.join(', ');
  }
  return flat;
};

export const createHttpClient = (options: HttpClientOptions): HttpClient => {
  const agent = new Agent({
    connect: createConnector(options),
    connections: options.connections ?? 8,
    pipelining: 1,
    allowH2: false,
    headersTimeout: options.idleMs,
    bodyTimeout: 0,
  });
  return {
    get: async ({ url, path = `${url.pathname}${url.search}`, method = 'GET', headers = {}, body, signal }) => {
      signal?.throwIfAborted();
      try {
        const response = await agent.request({
          origin: url.origin,
          path,
          method,
          body: body ?? null,
          headers: { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'bullion', ...headers },
          signal: signal ?? null,
        });
        response.body.on('error', () => {});
        return {
          status: response.statusCode,
          headers: flatten(response.headers),
          body: idleGuarded(response.body, { idleMs: options.idleMs, host: url.host, signal }),
          discard: () => response.body.destroy(),
        };
      } catch (error) {
        signal?.throwIfAborted();
        throw toHttpFailure(error, url.host);
      }
    },
    close: () => agent.destroy(),
  };
};
