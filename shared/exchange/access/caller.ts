// Authenticates a caller: by a token of the cluster (TokenReview), or by a token of the transfer function, which is limited to one target.
import { tokenReviews } from '#shared/api/foreign/authentication.ts';
import type { Requester } from '#shared/access/sources.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { KeyRing } from '#shared/exchange/access/keys.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type TokenClaims, verifyToken } from '#shared/runtime/token.ts';

export type Caller =
  | { readonly by: 'cluster'; readonly requester: Requester }
  | { readonly by: 'token'; readonly claims: TokenClaims };

const challenge = { headers: { 'www-authenticate': 'Bearer' } } as const;

const unauthorized = (message: string): Problem => new Problem(401, 'Unauthorized', message, challenge);

/** In a header, or in the query of a signed URL. */
const tokenOf = (request: Request): string | undefined => {
  const header = headerTokenOf(request);
  return header ?? new URL(request.url).searchParams.get('token') ?? undefined;
};

const headerTokenOf = (request: Request): string | undefined =>
  /^Bearer +(\S+)$/i.exec(request.headers.get('authorization')?.trim() ?? '')?.[1];

const review = async (kube: KubeClient, token: string): Promise<Requester> => {
  const { status } = await kube.create(tokenReviews, {
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'TokenReview',
    metadata: { name: '' },
    spec: { token },
  });
  if (status?.authenticated !== true || status.user === undefined) {
    throw unauthorized(
      'the token is unknown to this cluster or has expired: create a new one with `kubectl create token`',
    );
  }
  return status.user;
};

/** Throws a Problem (401). */
export const authenticate = async (
  request: Request,
  { kube, keys, now }: { readonly kube: KubeClient; readonly keys: KeyRing; readonly now: () => number },
): Promise<Caller> => {
  const token = tokenOf(request);
  if (token === undefined) {
    throw unauthorized(
      'no token: send `Authorization: Bearer <token>`, with a token of `kubectl create token <service account>`',
    );
  }
  const known = verifyToken(await keys.verifying(), token, now());
  // Another instance may have signed it with a new key.
  const verdict =
    known.is === 'unknown-key' ? verifyToken(await keys.verifying({ isFresh: true }), token, now()) : known;
  switch (verdict.is) {
    case 'good':
      return { by: 'token', claims: verdict.claims };
    case 'malformed':
      // URLs appear in logs: only tokens with one target are accepted there.
      if (headerTokenOf(request) === undefined)
        throw unauthorized('send a token of the cluster in the Authorization header');
      return { by: 'cluster', requester: await review(kube, token) };
    case 'expired':
      throw unauthorized('the token has expired: request a new one');
    default:
      throw unauthorized('the token was not issued here');
  }
};
