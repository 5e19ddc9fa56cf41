// Login at the issuer that the API server trusts: authorization code with PKCE, by a public client without a secret. The ID token goes to the API
// server, which alone decides whether it is valid; what is between leaving and coming back is in a sealed cookie.
import { createHash, randomBytes } from 'node:crypto';
import { EncryptJWT, jwtDecrypt } from 'jose';
import { z } from 'zod';
import { isSame } from '#shared/runtime/bearer.ts';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { parseJson } from '#shared/runtime/json.ts';

export interface OidcOptions {
  /** As the API server has it: `--oidc-issuer-url`, or the URL of a JWT authenticator. */
  readonly issuer: string;
  readonly clientId: string;
  /** Separated by spaces. */
  readonly scopes: string;
  /** Public URL of the console. */
  readonly url: string;
  readonly fetch: (url: string, init?: RequestInit) => Promise<Response>;
}

interface OidcSettings {
  readonly oidcIssuer?: string | undefined;
  readonly oidcClientId?: string | undefined;
  readonly oidcScopes: string;
  readonly consoleUrl?: string | undefined;
}

/** `undefined`: users paste tokens. Throws InvalidInput if settings are missing. */
export const oidcOptions = (
  { oidcIssuer, oidcClientId, oidcScopes, consoleUrl }: OidcSettings,
  fetch: OidcOptions['fetch'],
): OidcOptions | undefined => {
  if (oidcIssuer === undefined) return undefined;
  if (oidcClientId === undefined || consoleUrl === undefined)
    throw new InvalidInput('OIDC_ISSUER requires OIDC_CLIENT_ID and CONSOLE_URL: set them, or none of the three');
  return { issuer: oidcIssuer, clientId: oidcClientId, scopes: oidcScopes, url: consoleUrl, fetch };
};

export const attemptCookie = 'bullion_login';
/** Time for a person to log in at the issuer, with a second factor. */
export const attemptSeconds = 600;
const requestMs = 10_000;

const Discovery = z.object({ issuer: z.string(), authorization_endpoint: z.url(), token_endpoint: z.url() });
const TokenAnswer = z.object({ id_token: z.string() });
const Attempt = z.object({ state: z.string(), verifier: z.string(), nonce: z.string() });
type Attempt = z.infer<typeof Attempt>;

export const callbackPath = '/login/callback';
const redirectOf = ({ url }: OidcOptions): string => new URL(callbackPath, url).href;

const ask = async <T>(what: string, schema: z.ZodType<T>, request: () => Promise<Response>): Promise<T> => {
  try {
    const answer = await request();
    const body: unknown = await answer.json();
    if (!answer.ok) {
      // `error` is a word of the protocol; the description may repeat what was sent.
      const { error = `status ${answer.status}` } = body as { readonly error?: string };
      throw new InvalidInput(`the issuer refused the login (${String(error).slice(0, 80)}): log in again`);
    }
    return schema.parse(body);
  } catch (error) {
    if (error instanceof InvalidInput) throw error;
    throw new Unavailable(`${what} of the issuer cannot be used: ${messageOf(error).slice(0, 200)}`, { cause: error });
  }
};

const discover = async ({ issuer, fetch }: OidcOptions): Promise<z.infer<typeof Discovery>> => {
  const url = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
  const found = await ask('the configuration', Discovery, () => fetch(url, { signal: AbortSignal.timeout(requestMs) }));
  if (found.issuer !== issuer)
    throw new Unavailable(`the issuer calls itself ${found.issuer}, not ${issuer}: set OIDC_ISSUER to its own words`);
  return found;
};

const random = (): string => randomBytes(32).toString('base64url');

/** The address to send the browser to, and what its cookie has to keep until it comes back. */
export const beginLogin = async (
  options: OidcOptions,
  key: Uint8Array,
  now: number,
): Promise<{ readonly location: string; readonly cookie: string }> => {
  const { authorization_endpoint: endpoint } = await discover(options);
  const attempt: Attempt = { state: random(), verifier: random(), nonce: random() };
  const location = new URL(endpoint);
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: options.clientId,
    redirect_uri: redirectOf(options),
    scope: options.scopes,
    state: attempt.state,
    nonce: attempt.nonce,
    code_challenge: createHash('sha256').update(attempt.verifier).digest('base64url'),
    code_challenge_method: 'S256',
  }))
    location.searchParams.set(name, value);
  const cookie = await new EncryptJWT(attempt)
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .setAudience(attemptCookie)
    .setExpirationTime(Math.floor(now / 1000) + attemptSeconds)
    .encrypt(key);
  return { location: location.href, cookie };
};

const nonceOf = (token: string): unknown => {
  const text = Buffer.from(token.split('.')[1] ?? '', 'base64url').toString();
  return (parseJson(text) as { readonly nonce?: unknown } | null | undefined)?.nonce;
};

const openAttempt = async (cookie: string, key: Uint8Array, now: number): Promise<Attempt> => {
  try {
    const { payload } = await jwtDecrypt(cookie, key, { currentDate: new Date(now), audience: attemptCookie });
    return Attempt.parse(payload);
  } catch (error) {
    throw new InvalidInput('this login was not begun in this browser, or took too long: log in again', [], {
      cause: error,
    });
  }
};

interface Came {
  readonly query: Readonly<Record<string, string | undefined>>;
  /** Value of the cookie; empty without one. */
  readonly cookie: string;
  readonly key: Uint8Array;
  readonly now: number;
}

/** The ID token. Throws InvalidInput if this browser did not begin this login, or the issuer refused it. */
export const finishLogin = async (options: OidcOptions, { query, cookie, key, now }: Came): Promise<string> => {
  const attempt = await openAttempt(cookie, key, now);
  if (!isSame(query['state'] ?? '', attempt.state))
    throw new InvalidInput('the answer belongs to another login: log in again');
  const { code, error } = query;
  if (code === undefined)
    throw new InvalidInput(`the issuer refused the login (${(error ?? 'no code').slice(0, 80)}): log in again`);
  const { token_endpoint: endpoint } = await discover(options);
  const body = new URLSearchParams({
    grant_type: 'authorization_code',
    code,
    redirect_uri: redirectOf(options),
    client_id: options.clientId,
    code_verifier: attempt.verifier,
  });
  const signal = AbortSignal.timeout(requestMs);
  const answer = await ask('the token', TokenAnswer, () =>
    options.fetch(endpoint, {
      method: 'POST',
      body,
      headers: { accept: 'application/json' },
      redirect: 'error',
      signal,
    }),
  );
  if (nonceOf(answer.id_token) !== attempt.nonce)
    throw new InvalidInput('the token belongs to another login: log in again');
  return answer.id_token;
};
