// An HTTP client that authorizes requests to one store of a cloud: with a token that is renewed when it expires, even in mid-transfer, or with a
// signature in the query. Its callers see neither, so no message, mark or redirect of theirs can carry them.
import { type CloudUse, azureHeaders, parseSas, tokenForAzureIdentity } from '#shared/clients/cloud/azure.ts';
import { type Cloud, type CloudEndpoints, cloudNames, cloudOf, publicClouds } from '#shared/clients/cloud/endpoints.ts';
import type { Exchange, Token } from '#shared/clients/cloud/exchange.ts';
import { parseServiceAccountKey, tokenForGoogleIdentity, tokenForKey } from '#shared/clients/cloud/google.ts';
import type { WorkloadIdentity } from '#shared/clients/cloud/identity.ts';
import type { HttpClient, HttpGet } from '#shared/clients/http/client.ts';
import { InvalidInput, isRetryable } from '#shared/runtime/errors.ts';

export interface CloudAccess {
  readonly secret?: Readonly<Record<string, string>> | undefined;
  /** For messages. */
  readonly secretName?: string | undefined;
  readonly identity?: WorkloadIdentity | undefined;
  /** The current token of the pod for `identity`: the kubelet renews it. */
  readonly readPodToken?: (() => Promise<string>) | undefined;
  readonly use: CloudUse;
}

interface Authorized {
  readonly headers: Readonly<Record<string, string>>;
  /** Added to the query. */
  readonly query?: string;
  /** The service refused these headers: they are not used again. */
  readonly renew?: () => void;
}

/** Of one request. */
type Authorize = () => Promise<Authorized>;

/** Milliseconds before its expiry when a token is renewed, so that none expires on its way. */
const marginMs = 60_000;

/** One token for all requests; several requests that need a new one ask for it once. */
const createTokens = (fetch: () => Promise<Token>, now: () => number) => {
  let current: Token | undefined;
  let coming: Promise<Token> | undefined;
  const renew = (): Promise<Token> => {
    coming ??= fetch()
      .then((token) => (current = token))
      .finally(() => {
        coming = undefined;
      });
    return coming;
  };
  return {
    token: async (): Promise<Token> => {
      if (current !== undefined && current.expires - marginMs > now()) return current;
      const last = current;
      return renew().catch((error: unknown) => {
        if (last !== undefined && isRetryable(error) && last.expires > now()) return last;
        throw error;
      });
    },
    drop: (refused: Token): void => {
      if (current === refused) current = undefined;
    },
  };
};

const byToken = (
  fetch: () => Promise<Token>,
  now: () => number,
  more: () => Readonly<Record<string, string>>,
): Authorize => {
  const tokens = createTokens(fetch, now);
  return async () => {
    const token = await tokens.token();
    return { headers: { ...more(), authorization: `Bearer ${token.value}` }, renew: () => tokens.drop(token) };
  };
};

const scopes: Readonly<Record<CloudUse, string>> = {
  read: 'https://www.googleapis.com/auth/devstorage.read_only',
  write: 'https://www.googleapis.com/auth/devstorage.read_write',
};

const authorizeBy = (cloud: Cloud, access: CloudAccess, exchange: Exchange, clouds: CloudEndpoints) => {
  const { secret, secretName = '', identity, readPodToken = () => Promise.resolve(''), use } = access;
  const { now } = exchange;
  const scope = scopes[use];
  if (identity !== undefined) {
    const fetch = async (): Promise<Token> => {
      const token = await readPodToken();
      return identity.cloud === 'google'
        ? tokenForGoogleIdentity(exchange, { identity, token, scope }, clouds)
        : tokenForAzureIdentity(exchange, { identity, token }, clouds);
    };
    return byToken(fetch, now, () => (cloud === 'azure' ? azureHeaders(now()) : {}));
  }
  if (secret === undefined) return undefined;
  if (cloud === 'azure') {
    // Checked with each request: one that expires in mid-transfer is named, instead of a status of the server.
    return async (): Promise<Authorized> => ({
      headers: azureHeaders(now()),
      query: parseSas(secret, secretName, { use, now: now() }),
    });
  }
  const key = parseServiceAccountKey(secret, secretName, clouds);
  return byToken(
    () => tokenForKey(exchange, { key, secretName, scope }, clouds),
    now,
    () => ({}),
  );
};

const withQuery = ({ url, path = `${url.pathname}${url.search}` }: HttpGet, query: string): string =>
  `${path}${path.includes('?') ? '&' : '?'}${query}`;

const authorized = (http: HttpClient, origin: string, authorize: Authorize): HttpClient['get'] => {
  const send = async (call: HttpGet, mayRenew: boolean): ReturnType<HttpClient['get']> => {
    if (call.url.origin !== origin) return http.get(call);
    const { headers, query, renew } = await authorize();
    const path = query === undefined ? {} : { path: withQuery(call, query) };
    const response = await http.get({ ...call, ...path, headers: { ...call.headers, ...headers } });
    if (response.status !== 401 || renew === undefined) return response;
    renew();
    if (!mayRenew) return response;
    response.discard();
    return send(call, false);
  };
  return (call) => send(call, true);
};

export interface CloudTools {
  /** For token services, which are the operator's: without limits of a namespace and certificates of a source. Closed with the client. */
  readonly asks: HttpClient;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Default: the public ones. */
  readonly clouds?: CloudEndpoints | undefined;
}

/**
 * `http` with the access to the cloud that has the URL; as it is, if that is another server or the access is open. Makes no request. Throws
 * InvalidInput or HttpFailure for a credential that cannot be used there.
 */
export const createCloudClient = (
  http: HttpClient,
  url: URL,
  access: CloudAccess,
  { asks, now, clouds = publicClouds }: CloudTools,
): HttpClient => {
  const cloud = cloudOf(url, clouds);
  const { identity } = access;
  if (identity !== undefined && identity.cloud !== cloud) {
    throw new InvalidInput(
      `a workload identity of ${cloudNames[identity.cloud]} is sent only to that, and ${url.host} is another server`,
    );
  }
  const authorize = cloud && authorizeBy(cloud, access, { http: asks, now }, clouds);
  const get = authorize && authorized(http, url.origin, authorize);
  return {
    get: (call) => (get === undefined ? http.get(call) : get(call)),
    close: async () => void (await Promise.all([http.close(), asks.close()])),
  };
};
