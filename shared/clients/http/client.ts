// Raw HTTP(S): bytes as sent by the server, never content-decoded, from addresses that the policy allows. Used by the transfer sources.
import { lookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher, Pool, ProxyAgent, buildConnector } from 'undici';
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import { HttpFailure, toHttpFailure, toProxyFailure } from '#shared/clients/http/errors.ts';
import { type Floor, exchange } from '#shared/clients/http/exchange.ts';
import { currentContext, traceHeaders } from '#shared/runtime/trace.ts';
import { type ServerReach, deniedBy, requireReach, withinReach } from '#shared/clients/http/reach.ts';
import { type Proxies, proxyFor } from '#shared/clients/http/proxy.ts';

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; repeated headers are joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body; can be read once. Throws HttpFailure when it is interrupted or idle; leaving the loop early closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /**
   * Alternative to `body` without back-pressure: passes every chunk as it arrives, valid during the call. Throws like `body`, and rethrows the
   * errors of `take`.
   */
  pour(take: (chunk: Buffer) => void): Promise<void>;
  /** Discards the body; must be called if the body is not read. */
  discard(): void;
}

export interface HttpGet {
  readonly url: URL;
  /** Path and query exactly as sent, instead of those of `url`, which normalizes `..`. */
  readonly path?: string | undefined;
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD' | 'PUT' | 'POST' | 'PATCH' | 'DELETE' | undefined;
  readonly body?: Uint8Array | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface HttpClient {
  /** One request without redirects. Returns an answer of any status; throws HttpFailure, or the reason of the signal once it is aborted. */
  get(call: HttpGet): Promise<HttpResponse>;
  close(): Promise<void>;
}

export interface HttpClientOptions {
  readonly isRefused: AddressPolicy;
  /** Servers that may be asked. Default: every server. */
  readonly reach?: ServerReach | undefined;
  /** Idle timeout in milliseconds: without a byte for that long while reading, the request fails. */
  readonly idleMs: number;
  /** Minimal speed; below it the request fails. Default: no minimum. */
  readonly floor?: Floor | undefined;
  /** Timeout in milliseconds for DNS, connection and TLS. */
  readonly connectMs?: number;
  /** PEM certificates to trust besides the default ones. */
  readonly ca?: string | undefined;
  readonly connections?: number;
  /** The proxy resolves host names and decides about them; IP addresses in URLs are still checked here. */
  readonly proxies?: Proxies | undefined;
}

const refusal = (host: string, addresses: readonly string[]): HttpFailure =>
  new HttpFailure(
    'AddressRefused',
    `${host} resolves to ${addresses.join(', ')}: loopback, link-local and metadata addresses are not allowed as a source; ` +
      'an operator can allow the range',
  );

/** Resolves a name once and returns only allowed addresses, so that the checked address is the one that is connected to. */
const guardedLookup =
  ({ isRefused: isForbidden, reach }: HttpClientOptions): LookupFunction =>
  (hostname, options, callback) => {
    const isRefused = withinReach(isForbidden, reach);
    lookup(hostname, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, '');
      const allowed = found.filter(({ address }) => !isRefused(address));
      const [first] = allowed;
      if (first === undefined) {
        const addresses = found.map(({ address }) => address);
        return callback(deniedBy(reach, hostname, addresses) ?? refusal(hostname, addresses), '');
      }
      return options.all === true ? callback(null, allowed) : callback(null, first.address, first.family);
    });
  };

const connectMsOf = ({ connectMs = 15_000 }: HttpClientOptions): number => connectMs;

/** Certificates that TLS trusts. Default: the default ones of Node. */
const trustOf = ({ ca, proxies }: HttpClientOptions): { readonly ca?: string[] } => {
  const extra = [ca, proxies?.ca].filter((pem) => pem !== undefined);
  return extra.length === 0 ? {} : { ca: [...getCACertificates('default'), ...extra] };
};

/** Checks a URL with an IP address instead of a host name. */
const refusedLiteral = ({ isRefused }: HttpClientOptions, hostname: string): HttpFailure | undefined => {
  const literal = hostname.replace(/^\[|\]$/g, '');
  return isIP(literal) !== 0 && isRefused(literal) ? refusal(literal, [literal]) : undefined;
};

const createConnector = (options: HttpClientOptions): buildConnector.connector => {
  const connect = buildConnector({
    timeout: connectMsOf(options),
    lookup: guardedLookup(options),
    allowH2: false,
    ...trustOf(options),
  });
  return (target, callback) => {
    const refused = refusedLiteral(options, target.hostname);
    if (refused === undefined) connect(target, callback);
    else callback(refused, null);
  };
};

const poolOptionsOf = ({ connections = 8, idleMs }: HttpClientOptions) => ({
  connections,
  pipelining: 1,
  allowH2: false,
  headersTimeout: idleMs,
  bodyTimeout: 0,
});

/** Plain HTTP is forwarded, TLS is tunnelled, as every proxy supports. */
const createProxyAgent = (uri: string, options: HttpClientOptions): ProxyAgent => {
  const pool = poolOptionsOf(options);
  return new ProxyAgent({
    ...pool,
    uri,
    proxyTunnel: false,
    connectTimeout: connectMsOf(options),
    requestTls: trustOf(options),
    proxyTls: trustOf(options),
    factory: (origin, made) => new Pool(origin, Object.assign({}, pool, made)),
  });
};

interface Ways {
  /** Throws HttpFailure if there is none. */
  readonly to: (url: URL) => { readonly dispatcher: Dispatcher; readonly proxy?: string };
  readonly close: () => Promise<void>;
}

const createWays = (options: HttpClientOptions): Ways => {
  const agent = new Agent({ ...poolOptionsOf(options), connect: createConnector(options) });
  const proxied = new Map<string, ProxyAgent>();
  return {
    to: (url) => {
      const proxy = proxyFor(url, options.proxies);
      if (proxy === undefined) return { dispatcher: agent };
      const refused = refusedLiteral(options, url.hostname);
      if (refused !== undefined) throw refused;
      const dispatcher = proxied.get(proxy) ?? createProxyAgent(proxy, options);
      proxied.set(proxy, dispatcher);
      return { dispatcher, proxy };
    },
    close: async () => {
      await Promise.all([agent, ...proxied.values()].map((one) => one.destroy()));
    },
  };
};

const ownHeaders = { accept: '*/*', 'accept-encoding': 'identity', 'user-agent': 'bullion' } as const;

/** The trace is propagated only if it is recorded. */
const recordedTrace = (): Readonly<Record<string, string>> => {
  const { trace, tracer } = currentContext();
  return tracer === undefined ? {} : traceHeaders(trace);
};

export const createHttpClient = (options: HttpClientOptions): HttpClient => {
  const ways = createWays(options);
  return {
    get: async ({ url, path = `${url.pathname}${url.search}`, method = 'GET', headers = {}, body, signal }) => {
      signal?.throwIfAborted();
      requireReach(options.reach, url);
      const { dispatcher, proxy } = ways.to(url);
      const answer = await exchange({
        dispatcher,
        request: {
          origin: url.origin,
          path,
          method,
          body: body ?? null,
          headers: { ...ownHeaders, ...recordedTrace(), ...headers },
        },
        idleMs: options.idleMs,
        floor: options.floor,
        host: url.host,
        signal,
        toFailure: (error) =>
          proxy === undefined ? toHttpFailure(error, url.host) : toProxyFailure(error, url.host, new URL(proxy).host),
      });
      return { ...answer, body: answer.body() };
    },
    close: ways.close,
  };
};
