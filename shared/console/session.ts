// Who looks: a sealed cookie with the token that the API server is shown. Nothing is kept here, so that any instance can read it.
import { EncryptJWT, jwtDecrypt } from 'jose';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJson } from '#shared/runtime/json.ts';
import { attemptCookie } from '#shared/console/oidc.ts';
import { AppError, Denied, InvalidInput, isNotFound } from '#shared/runtime/errors.ts';

/** `owner`: of the kubeconfig of this computer, on the local cluster alone. */
export type VisitorIdentity = { readonly token: string } | 'owner';

export interface Session {
  readonly identity: VisitorIdentity;
  /** As the API server calls who looks. */
  readonly user: string;
  /** Milliseconds since the epoch. */
  readonly until: number;
}

export const cookieName = 'bullion_session';

/** Half a day: a day's work ends with it. */
const longestSeconds = 12 * 3600;

/** What browsers keep of one cookie, less its name and attributes. */
const mostCookieBytes = 3900;

export const seal = async ({ identity, user, until }: Session, key: Uint8Array): Promise<string> => {
  const sealed = await new EncryptJWT({ identity, user })
    .setProtectedHeader({ alg: 'dir', enc: 'A256GCM' })
    .setExpirationTime(Math.floor(until / 1000))
    .encrypt(key);
  if (sealed.length <= mostCookieBytes) return sealed;
  throw new InvalidInput(
    'the token is too long for a cookie of the browser: make a shorter one with kubectl create token <service account>',
  );
};

/** `undefined`: there is none, it is over, or it was not sealed here. */
export const unseal = async (sealed: string, key: Uint8Array, now: number): Promise<Session | undefined> => {
  try {
    const { payload } = await jwtDecrypt<Pick<Session, 'identity' | 'user'>>(sealed, key, {
      currentDate: new Date(now),
    });
    // Another cookie of ours is sealed by the same key.
    if (payload.identity === undefined) return undefined;
    return { identity: payload.identity, user: payload.user, until: (payload.exp ?? 0) * 1000 };
  } catch {
    return undefined;
  }
};

/** Attributes of the cookie; without a session it ends at once. */
export const cookieOf = (
  sealed: string,
  { until, now, isSecure }: { readonly until: number; readonly now: number; readonly isSecure: boolean },
): string =>
  [
    `${cookieName}=${sealed}`,
    'Path=/',
    'HttpOnly',
    'SameSite=Strict',
    `Max-Age=${Math.max(0, Math.floor((until - now) / 1000))}`,
    ...(isSecure ? ['Secure'] : []),
  ].join('; ');

/** Of a login that is under way at the issuer, which sends the browser back from another site. */
export const loginCookieOf = (
  sealed: string,
  { isSecure, seconds }: { readonly isSecure: boolean; readonly seconds: number },
): string =>
  [
    `${attemptCookie}=${sealed}`,
    `Path=/login`,
    'HttpOnly',
    'SameSite=Lax',
    `Max-Age=${seconds}`,
    ...(isSecure ? ['Secure'] : []),
  ].join('; ');

interface Claims {
  readonly exp?: number;
  readonly sub?: string;
}

/** What a token says of itself; the API server alone decides whether that is so. */
const claimsOf = (token: string): Claims =>
  (parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Claims | undefined) ?? {};

/** The namespace of a service account: most of them may see no other. */
export const namespaceOf = ({ user }: Session): string | undefined => /^system:serviceaccount:([^:]+):/.exec(user)?.[1];

interface SelfReview {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

/** Asks the API server who shows this. Throws InvalidInput where it is nobody it knows. */
export const openSession = async (kube: KubeClient, identity: VisitorIdentity, now: number): Promise<Session> => {
  const claims = identity === 'owner' ? {} : claimsOf(identity.token);
  const latest = now + longestSeconds * 1000;
  const until = Math.min(latest, claims.exp === undefined ? latest : claims.exp * 1000);
  const group = 'authentication.k8s.io/v1';
  try {
    const { status } = await kube.raw<SelfReview>({
      method: 'POST',
      path: `/apis/${group}/selfsubjectreviews`,
      body: { apiVersion: group, kind: 'SelfSubjectReview' },
    });
    return { identity, until, user: status?.userInfo?.username ?? claims.sub ?? 'unknown' };
  } catch (error) {
    if (error instanceof Denied)
      throw new InvalidInput('the API server does not accept this token: it is unknown, or has expired', [], {
        cause: error,
      });
    // Clusters before Kubernetes 1.28 cannot say it.
    if (!isNotFound(error)) throw error;
    return { identity, until, user: claims.sub ?? 'unknown' };
  }
};

/** Whether a form was sent by a page of ours: browsers name the origin with every POST. */
export const isOwnForm = (headers: Headers): boolean => {
  const [origin, host] = [headers.get('origin'), headers.get('host')];
  return origin !== null && URL.canParse(origin) && new URL(origin).host === host;
};

/** Words for people; what is not ours to explain keeps its own. */
export const wordsOf = (error: unknown): string =>
  error instanceof AppError
    ? error.message.replace(/^Kubernetes API: (?:[A-Z]+ \S+: )?/, '')
    : 'internal error; see the log of the console';
