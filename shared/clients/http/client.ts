// Raw HTTP(S): bytes as the server sends them, never content-decoded, to addresses the policy allows. Used by the transfer sources.
import { lookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import { getCACertificates } from 'node:tls';
import { Agent, type Dispatcher, Pool, ProxyAgent, buildConnector } from 'undici';
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import { HttpFailure, toHttpFailure, toProxyFailure } from '#shared/clients/http/errors.ts';
import { type Floor, exchange } from '#shared/clients/http/exchange.ts';
import { currentContext } from '#shared/runtime/context.ts';
import { traceHeaders } from '#shared/runtime/trace.ts';
import { type Proxies, proxyFor } from '#shared/clients/http/proxy.ts';

export interface HttpResponse {
  readonly status: number;
  /** Names in lower case; repeated headers joined by a comma. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, once. Throws HttpFailure when it is cut or idles; leaving the loop early closes the connection. */
  readonly body: AsyncIterable<Buffer>;
  /**
   * The body in place of `body`, without back-pressure: every chunk as it arrives, valid during the call. Throws as `body` does, and what `take` throws.
   */
  pour(take: (chunk: Buffer) => void): Promise<void>;
  /** Gives the body up; must be called where it is not read. */
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
  /** Slower is given up as well; left out: any trickle will do. */
  readonly floor?: Floor | undefined;
  /** Milliseconds for DNS, connection and TLS. */
  readonly connectMs?: number;
  /** PEM certificates trusted besides the well-known ones. */
  readonly ca?: string | undefined;
  readonly connections?: number;
  /** A name behind a proxy is the proxy's to resolve, and to refuse; addresses are still refused here. */
  readonly proxies?: Proxies | undefined;
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

const connectMsOf = ({ connectMs = 15_000 }: HttpClientOptions): number => connectMs;

/** What TLS trusts; nothing said: the well-known ones. */
const trustOf = ({ ca, proxies }: HttpClientOptions): { readonly ca?: string[] } => {
  const extra = [ca, proxies?.ca].filter((pem) => pem !== undefined);
  return extra.length === 0 ? {} : { ca: [...getCACertificates('default'), ...extra] };
};

/** An address, where a URL names one in place of a host name, that must not be connected to. */
const refusedLiteral = ({ isRefused }: HttpClientOptions, hostname: string): HttpFailure | undefined => {
  const literal = hostname.replace(/^\[|\]$/g, '');
  return isIP(literal) !== 0 && isRefused(literal) ? refusal(literal, [literal]) : undefined;
};

const createConnector = (options: HttpClientOptions): buildConnector.connector => {
  const connect = buildConnector({
    timeout: connectMsOf(options),
    lookup: guardedLookup(options.isRefused),
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

/** Plain HTTP is forwarded, TLS is tunnelled: what every proxy does. */
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
  /** Throws HttpFailure where there is none. */
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

/** Others are told of a trace only where somebody records it. */
const recordedTrace = (): Readonly<Record<string, string>> => {
  const { trace, tracer } = currentContext();
  return tracer === undefined ? {} : traceHeaders(trace);
};

export const createHttpClient = (options: HttpClientOptions): HttpClient => {
  const ways = createWays(options);
  return {
    get: async ({ url, path = `${url.pathname}${url.search}`, method = 'GET', headers = {}, body, signal }) => {
      signal?.throwIfAborted();
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
