// Requests to one registry as one user: logs in on demand, keeps the token, and follows redirects without it.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { type Destination, followRedirects } from '#shared/clients/http/redirect.ts';
import type { Credentials } from '#shared/clients/registry/credentials.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import type { RegistryPace } from '#shared/clients/registry/refusal.ts';
import { readJson, refusalOf } from '#shared/clients/registry/refusal.ts';
import { serverOf } from '#shared/clients/registry/reference.ts';

export interface SessionOptions {
  readonly http: HttpClient;
  /** As the user wrote it. */
  readonly host: string;
  /** Default: anonymous. */
  readonly credentials?: Credentials | undefined;
  /** The registry is accessed without TLS. */
  readonly plainHttp?: boolean | undefined;
  /** Tokens also permit to push. Default: only to pull. */
  readonly mayPush?: boolean | undefined;
  /** Other hosts that blobs may be redirected to without TLS. */
  readonly plainHosts?: readonly string[] | undefined;
  readonly pace: RegistryPace;
  readonly signal?: AbortSignal | undefined;
}

export interface RegistryRequest {
  /** Default: GET. Others need the right to push, and follow no redirect. */
  readonly method?: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT' | 'DELETE';
  /** Below `/v2/`, or a URL of the registry itself, such as that of an upload. */
  readonly path: string | URL;
  readonly body?: Uint8Array | undefined;
  /** Subject of the request, for messages. */
  readonly what: string;
  readonly repository: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface RegistrySession {
  readonly host: string;
  /** `path` is below `/v2/`. */
  urlOf(path: string): URL;
  /** Any 2xx answer; the body must be read or discarded. Throws RegistryFailure and HttpFailure. */
  ask(call: RegistryRequest): Promise<HttpResponse>;
}

const basicOf = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const request = async (
  { http, plainHosts, signal: given }: SessionOptions,
  { method = 'GET', headers = {}, body }: RegistryRequest,
  origin: Destination,
): Promise<{ readonly response: HttpResponse; readonly final: Destination }> => {
  const signal = given === undefined ? {} : { signal: given };
  // Secret headers are sent only to the registry's own origin: blobs are often redirected to an object store.
  if (method === 'GET' || method === 'HEAD')
    return followRedirects(http, { origin, method, headers, plainHosts, ...signal });
  const response = await http.get({
    url: origin.url,
    method,
    body,
    headers: { ...headers, ...origin.headers },
    ...signal,
  });
  return { response, final: origin };
};

export const createSession = (options: SessionOptions): RegistrySession => {
  const { host, pace } = options;
  const base = `${options.plainHttp === true ? 'http' : 'https'}://${serverOf(host)}`;
  const logins = new Map<string, string>();
  const urlOf = (path: string): URL => new URL(`/v2/${path}`, base);

  const send = async (call: RegistryRequest, authorization: string | undefined) => {
    pace.check(host);
    const url = typeof call.path === 'string' ? urlOf(call.path) : call.path;
    const answer = await request(options, call, { url, headers: authorization === undefined ? {} : { authorization } });
    pace.learn(host, answer.response);
    return { response: answer.response, store: answer.final.url.origin === url.origin ? undefined : answer.final.url };
  };

  const ask = async (call: RegistryRequest): Promise<HttpResponse> => {
    const scope = `repository:${call.repository}:${options.mayPush === true ? 'pull,push' : 'pull'}`;
    let { response, store } = await send(call, logins.get(scope));
    if (response.status === 401 && store === undefined) {
      const challenge = parseChallenge(response.headers['www-authenticate']);
      const authorization = challenge && (await logIn(options, challenge, scope));
      if (authorization !== undefined) {
        response.discard();
        logins.set(scope, authorization);
        ({ response, store } = await send(call, authorization));
      }
    }
    if (response.status >= 200 && response.status < 300) return response;
    const hasCredentials = options.credentials !== undefined;
    throw await refusalOf(response, { host, what: call.what, pace, hasCredentials, store });
  };
  return { host, urlOf, ask };
};

/** The value of `authorization`; `undefined` if there are no credentials for the challenge. */
const logIn = async (options: SessionOptions, challenge: Challenge, wanted: string): Promise<string | undefined> => {
  const { credentials } = options;
  if (challenge.scheme === 'basic') return credentials && basicOf(credentials);
  return `Bearer ${await fetchToken(options, challenge, wanted)}`;
};

const fetchToken = async (
  options: SessionOptions,
  { realm, service, scope }: Extract<Challenge, { scheme: 'bearer' }>,
  wanted: string,
): Promise<string> => {
  const url = new URL(realm);
  // The scope of the token is decided here; a wider scope that the registry requests is ignored.
  url.searchParams.set('scope', scope?.startsWith('repository:') === true ? wanted : (scope ?? wanted));
  if (service !== undefined) url.searchParams.set('service', service);
  const headers = credentialsFor(options, url);
  const { response } = await followRedirects(options.http, {
    origin: { url, headers },
    headers: {},
    plainHosts: options.plainHosts,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  options.pace.learn(options.host, response);
  const what = `the token service ${url.host}`;
  if (response.status !== 200) {
    throw await refusalOf(response, {
      host: options.host,
      what,
      pace: options.pace,
      hasCredentials: options.credentials !== undefined,
    });
  }
  const { token, access_token: access } = (await readJson(response, what)) as {
    token?: unknown;
    access_token?: unknown;
  };
  const value = token ?? access;
  if (typeof value === 'string' && /^[\x21-\x7e]+$/.test(value)) return value;
  throw new RegistryFailure('RegistryFailed', `${what} answered without a token`);
};

/** The registry specifies its token service, which receives the credentials; but never without TLS if the registry itself uses TLS. */
const credentialsFor = (
  { credentials, plainHttp, host }: SessionOptions,
  realm: URL,
): Readonly<Record<string, string>> => {
  if (credentials === undefined) return {};
  if (realm.protocol !== 'https:' && plainHttp !== true) {
    throw new RegistryFailure(
      'Unauthorized',
      `${host} requests credentials for ${realm.host} without TLS; they were not sent`,
    );
  }
  return { authorization: basicOf(credentials) };
};

/** The `WWW-Authenticate` header of a registry: the supported type of login. */
type Challenge =
  | { readonly scheme: 'basic' }
  | {
      readonly scheme: 'bearer';
      readonly realm: URL;
      readonly service?: string | undefined;
      readonly scope?: string | undefined;
    };

const parameter = /([a-z][a-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi;

const parametersOf = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(
    [...text.matchAll(parameter)].map(([, name = '', quoted, bare]) => [
      name.toLowerCase(),
      quoted?.replace(/\\(.)/g, '$1') ?? bare ?? '',
    ]),
  );

/** The first supported challenge, bearer before basic; `undefined`: none. */
export const parseChallenge = (header: string | undefined): Challenge | undefined => {
  const text = header ?? '';
  const bearer = /(?:^|,)\s*bearer\s+(.*)$/i.exec(text)?.[1];
  const { realm = '', service, scope } = parametersOf(bearer ?? '');
  if (URL.canParse(realm)) return { scheme: 'bearer', realm: new URL(realm), service, scope };
  return /(?:^|,)\s*basic\b/i.test(text) ? { scheme: 'basic' } : undefined;
};
