// Follows redirects to the server that has the bytes; credentials are sent only to the origin they belong to.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';
import { decoded } from '#shared/clients/http/address.ts';

const maxRedirects = 10;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/** A URL and the headers that may be sent with it. `url` has no user info: it was moved to a header. */
export interface Destination {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FollowCall {
  readonly origin: Destination;
  /** Default: GET. */
  readonly method?: 'GET' | 'HEAD' | undefined;
  /** Headers of this request, sent to every hop (such as ranges; no secrets). */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** `host[:port]` that may be accessed without TLS, even after a redirect from https. */
  readonly plainHosts?: readonly string[] | undefined;
}

/** Moves user info of a URL into a basic authorization header. */
export const toDestination = (url: URL, headers: Readonly<Record<string, string>>): Destination => {
  const bare = new URL(url);
  bare.username = '';
  bare.password = '';
  bare.hash = '';
  if (url.username === '' && url.password === '') return { url: bare, headers };
  const pair = `${decoded(url.username)}:${decoded(url.password)}`;
  return { url: bare, headers: { authorization: `Basic ${Buffer.from(pair).toString('base64')}`, ...headers } };
};

const nextUrl = (from: URL, response: HttpResponse, plainHosts: readonly string[]): URL => {
  const location = response.headers['location'];
  if (location === undefined || !URL.canParse(location, from.href)) {
    throw new HttpFailure('RedirectRefused', `${from.host} redirects (${response.status}) without a valid Location`);
  }
  const next = new URL(location, from);
  if (next.protocol !== 'http:' && next.protocol !== 'https:') {
    throw new HttpFailure(
      'RedirectRefused',
      `${from.host} redirects to a ${next.protocol} address; only http and https work`,
    );
  }
  if (from.protocol === 'https:' && next.protocol === 'http:' && !plainHosts.includes(next.host)) {
    throw new HttpFailure(
      'RedirectRefused',
      `${from.host} redirects from https to plain http at ${next.host}, which does not protect the bytes: ` +
        'use a URL that stays on https, or the http URL itself; for a registry an operator can list that host in PLAIN_REGISTRIES',
    );
  }
  return next;
};

/**
 * The first answer that is not a redirect, and its URL. Secret headers of `origin` are sent only to its own origin, user info of a Location
 * only to that Location. A redirect from https must lead to https. Throws HttpFailure after ten redirects.
 */
export const followRedirects = async (
  client: HttpClient,
  call: FollowCall,
): Promise<{ readonly response: HttpResponse; readonly final: Destination }> => {
  let destination = call.origin;
  for (let hops = 0; hops <= maxRedirects; hops++) {
    const response = await client.get({
      url: destination.url,
      method: call.method,
      headers: { ...call.headers, ...destination.headers },
      ...(call.signal === undefined ? {} : { signal: call.signal }),
    });
    if (!redirectStatuses.has(response.status)) return { response, final: destination };
    response.discard();
    const next = nextUrl(destination.url, response, call.plainHosts ?? []);
    destination = toDestination(next, next.origin === call.origin.url.origin ? call.origin.headers : {});
  }
  throw new HttpFailure('RedirectRefused', `${call.origin.url.host} redirects more than ${maxRedirects} times`);
};
