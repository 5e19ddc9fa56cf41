// Authenticates the caller of an event function by the OIDC token that Knative's senders attach. Called by functions/*/index.ts. Disabled if no
// audience is configured, because the feature is off by default in Knative.
import type { JSONWebKeySet, JWTPayload } from 'jose';
import { Unavailable, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** An issuer of tokens and the source of its keys. */
export interface Issuer {
  readonly issuer: string;
  readonly keys: JSONWebKeySet;
}

export interface CallerRules {
  /** The audience that tokens must have: the name of this function in the Trigger that calls it. */
  readonly audience: string;
  /** `system:serviceaccount:<namespace>:<name>` of each account that may call. */
  readonly subjects: readonly string[];
}

export interface CallerDeps {
  /** Reads the issuer from the API server; throws AppError. */
  readonly discover: () => Promise<Issuer>;
  readonly log: Logger;
  readonly now?: () => number;
}

/** The caller rules of the settings; undefined if callers are not authenticated. */
export const callerRulesOf = (config: {
  readonly oidcAudience?: string | undefined;
  readonly oidcSubjects: readonly string[];
}): CallerRules | undefined =>
  config.oidcAudience === undefined ? undefined : { audience: config.oidcAudience, subjects: config.oidcSubjects };

type App = { fetch(request: Request): Response | Promise<Response> };

/** Keys are fetched again after this many milliseconds, and no more often than that for an unknown key. */
const keysAgeMs = 300_000;
const keysPauseMs = 10_000;
/** Clock skew allowed between two machines, in seconds. */
const clockTolerance = 30;

/**
 * Authenticates the caller before the app handles the request. A missing or invalid token is answered with 401, another account with 403
 * (Knative does not retry either; the event becomes a dead letter). If the keys are not available the answer is 503, so that the event is
 * retried.
 */
export const withCaller = (app: App, rules: CallerRules | undefined, deps: CallerDeps): App => {
  if (rules === undefined) return app;
  const keysOf = createKeys(deps);
  return {
    fetch: async (request) => {
      const refusal = await refuse(request, rules, keysOf).catch((error: unknown): Refusal => {
        deps.log.error('callers cannot be authenticated', { error });
        return { status: 503, reason: messageOf(error) };
      });
      if (refusal === undefined) return app.fetch(request);
      deps.log.warn('caller refused', { status: refusal.status, reason: refusal.reason });
      const retry = refusal.status === 503 ? { 'retry-after': '5' } : {};
      return new Response(null, { status: refusal.status, headers: retry });
    },
  };
};

interface Refusal {
  readonly status: 401 | 403 | 503;
  readonly reason: string;
}

type KeysOf = (isStale: boolean) => Promise<Issuer>;

const refuse = async (request: Request, rules: CallerRules, keysOf: KeysOf): Promise<Refusal | undefined> => {
  const token = /^Bearer ([\w.-]+)$/i.exec(request.headers.get('authorization') ?? '')?.[1];
  if (token === undefined) return { status: 401, reason: 'no bearer token' };
  const { subject, reason } = await subjectOf(token, rules.audience, keysOf);
  if (subject === undefined) return { status: 401, reason: reason ?? 'no subject' };
  return rules.subjects.some((one) => isMeant(one, subject))
    ? undefined
    : { status: 403, reason: `${subject} may not call` };
};

/** As in Knative's EventPolicy, a trailing `*` matches any suffix. */
const isMeant = (rule: string, subject: string): boolean =>
  rule.endsWith('*') ? subject.startsWith(rule.slice(0, -1)) : subject === rule;

type Judged = { readonly subject?: string | undefined; readonly reason?: string };

/** An unknown key may be a new one: it is looked up at the API server again, then accepted. Throws if the API server does not answer. */
const subjectOf = async (token: string, audience: string, keysOf: KeysOf): Promise<Judged> => {
  const { errors } = await import('jose');
  for (const isStale of [false, true]) {
    const issuer = await keysOf(isStale);
    try {
      return { subject: (await verify(token, audience, issuer)).sub };
    } catch (error) {
      const isUnknownKey = error instanceof errors.JWKSNoMatchingKey;
      if (!isUnknownKey || isStale) return { reason: messageOf(error) };
    }
  }
  return {};
};

const verify = async (token: string, audience: string, { issuer, keys }: Issuer): Promise<JWTPayload> => {
  const { createLocalJWKSet, jwtVerify } = await import('jose');
  const options = { issuer, audience, clockTolerance, requiredClaims: ['exp', 'sub'] };
  return (await jwtVerify(token, createLocalJWKSet(keys), options)).payload;
};

const createKeys = ({ discover, now = () => performance.now() }: CallerDeps): KeysOf => {
  let held: { readonly at: number; readonly issuer: Promise<Issuer> } | undefined;
  return async (isStale) => {
    const age = held === undefined ? Number.POSITIVE_INFINITY : now() - held.at;
    if (held === undefined || age > (isStale ? keysPauseMs : keysAgeMs)) {
      const issuer = discover();
      held = { at: now(), issuer };
      // The next request retries a failed look-up.
      issuer.catch(() => (held = undefined));
    }
    return held.issuer;
  };
};

interface Discovery {
  readonly issuer?: string;
}

interface Asked {
  raw<R>(request: { readonly method: 'GET'; readonly path: string }): Promise<R>;
}

/** The API server as issuer, read with the function's own service account, which may read both paths in every cluster. */
export const discoverIssuer = async (kube: Asked): Promise<Issuer> => {
  const { issuer } = await kube.raw<Discovery>({ method: 'GET', path: '/.well-known/openid-configuration' });
  if (issuer === undefined) throw new Unavailable('the API server reports no token issuer');
  return { issuer, keys: await kube.raw<JSONWebKeySet>({ method: 'GET', path: '/openid/v1/jwks' }) };
};
