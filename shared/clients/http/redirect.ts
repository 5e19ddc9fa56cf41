// Follows redirects to the server that really holds the bytes, keeping credentials with the origin they were given for.
import type { HttpClient, HttpResponse } from '#shared/clients/http/client.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';

const maxRedirects = 10;
const redirectStatuses = new Set([301, 302, 303, 307, 308]);

/** A URL and what may be sent with it. `url` holds no user info: that became a header. */
export interface Destination {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
}

export interface FollowCall {
  readonly origin: Destination;
  /** Left out: GET. */
  readonly method?: 'GET' | 'HEAD' | undefined;
  /** Headers of this exchange, sent to every hop (ranges and such; no secrets). */
  readonly headers: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
  /** `host[:port]` that may be reached without TLS, also from where there is TLS. */
  readonly plainHosts?: readonly string[] | undefined;
}

const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};

/** Takes user info out of a URL and makes it basic authorization. */
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
      `${from.host} redirects from https to plain http at ${next.host}, where anybody on the way can change the bytes: ` +
        'name an address that stays with https, or the http address itself; for a registry an operator can list that host in PLAIN_REGISTRIES',
    );
  }
  return next;
};

/**
 * The first answer that is no redirect, and where it came from. Secret headers of `origin` go only to its own origin, user info in a
 * Location only to that Location. From https it goes on over https alone. Throws HttpFailure after ten redirects.
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
