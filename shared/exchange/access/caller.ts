// Authenticates a caller: by a token of the cluster (TokenReview), or by a token of the transfer function, which is limited to one target.
import { z } from 'zod';
import { grantFor, isAllowed, type Requester, type Wish } from '#shared/access/permissions.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { tokenReviews } from '#shared/api/foreign/kubernetes.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { KeyRing } from './keys.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { downloaderResource, type TargetName, targetText, uploadTokenResource } from '#shared/exchange/target-name.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { peerNameOf } from '#shared/runtime/serve.ts';
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

// Authorizes a caller for an operation on a target. A token of the transfer function was authorized when it was issued, for its target only.

export type Deed = 'upload' | 'download';

/** An upload changes an image, so it needs that permission; for a volume it needs CDI's. */
const uploadWish = ({ plural, namespace, name }: TargetName): Wish =>
  plural === 'virtualmachineimages'
    ? { verb: 'update', group: 'harvesterhci.io', resource: plural, namespace, name }
    : { verb: 'create', ...uploadTokenResource, namespace };

/** Read access to a disk object does not include its data: a download needs Harvester's permission for downloads, or CDI's for copies. */
const mayDownload = async (
  kube: KubeClient,
  { requester }: Caller & { by: 'cluster' },
  { plural, namespace, name }: TargetName,
): Promise<boolean> => {
  if (plural !== 'virtualmachineimages')
    return (await grantFor(kube, requester, { use: 'clone-claim', namespace, name })) !== undefined;
  return isAllowed(kube, requester, { verb: 'create', ...downloaderResource, namespace });
};

/** Throws a Problem (403). Does not reveal whether the target exists: call it before the look-up. */
export const permit = async (kube: KubeClient, caller: Caller, deed: Deed, target: TargetName): Promise<void> => {
  if (caller.by === 'token') {
    const { verb, target: text } = caller.claims;
    if (verb === deed && text === targetText(target)) return;
    throw new Problem(
      403,
      'Forbidden',
      `this token is for ${verb} of ${text}, not for ${deed} of ${targetText(target)}`,
    );
  }
  const allowed =
    deed === 'upload'
      ? await isAllowed(kube, caller.requester, uploadWish(target))
      : await mayDownload(kube, caller, target);
  if (allowed) return;
  const { username } = caller.requester;
  throw new Problem(
    403,
    'Forbidden',
    `${username} may not ${deed} ${targetText(target)}: ask for a role that allows it`,
  );
};

// The client certificate authority of the cluster's API server as an aggregator, as the API server publishes it.

const key = { namespace: 'kube-system', name: 'extension-apiserver-authentication' } as const;

interface FrontProxy {
  /** PEM of its CA. */
  readonly ca: string;
  readonly isFrontProxy: (request: Request) => boolean;
}

const Names = z.array(z.string());

/** Read once, as by every extension server: a cluster that rotates its CA restarts them. Throws NotFound if there is none. */
export const readFrontProxy = async (kube: KubeClient): Promise<FrontProxy> => {
  const data = (await kube.get(configMaps, key))?.data ?? {};
  const ca = data['requestheader-client-ca-file'];
  if (ca === undefined) {
    throw new NotFound(
      `ConfigMap ${key.name} in ${key.namespace} has no requestheader-client-ca-file: the API server aggregates no APIs; start it with --requestheader-client-ca-file`,
    );
  }
  const allowed = Names.parse(JSON.parse(data['requestheader-allowed-names'] ?? '[]'));
  return {
    ca,
    isFrontProxy: (request) => {
      const name = peerNameOf(request);
      return name !== undefined && (allowed.length === 0 || allowed.includes(name));
    },
  };
};
