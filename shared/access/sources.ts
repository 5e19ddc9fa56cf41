// Whether a user may do something, and what it takes to make something from content of another object: one line a use, the same for every backend.
// Called at admission, and by whoever hands out bytes.
import { type Grant, type SourceUse, type UsedSource, anyName } from '#shared/access/grant.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, pods, secrets } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type SubjectAccessReview, subjectAccessReviews } from '#shared/api/foreign/authorization.ts';

// Asks the API server whether a user may do something (SubjectAccessReview). Whoever acts for users under an account of its own asks this
// first; `sources.ts` knows what to ask for the content of images and volumes.

/** Who asks, as the API server names users: the `userInfo` of an admission review, or the status of a TokenReview. */
export interface Requester {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** A service account as the API server names it, with the groups it is always of. */
export const serviceAccountRequester = (namespace: string, name: string): Requester => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** What a user would do. Without `name`: to every object of the namespace; without `namespace`: in every namespace. */
export type Wish = SubjectAccessReview['spec']['resourceAttributes'];

/** Throws the AppErrors of the client when the API server cannot be asked; nobody may anything then. */
export const isAllowed = async (kube: KubeClient, requester: Requester, wish: Wish): Promise<boolean> => {
  const { username, uid, groups, extra } = requester;
  const { status } = await kube.create(subjectAccessReviews, {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    metadata: { name: '' },
    spec: {
      user: username,
      ...(uid === undefined ? {} : { uid }),
      ...(groups === undefined ? {} : { groups }),
      ...(extra === undefined ? {} : { extra }),
      resourceAttributes: wish,
    },
  });
  return status?.allowed === true;
};

type Right = Omit<Wish, 'namespace' | 'name'>;
interface Resource {
  readonly group: string;
  readonly plural: string;
}

const to = (verb: string, { group, plural }: Resource): Right => ({ verb, group, resource: plural });

/** CDI's word for it: whoever may create it may clone what is in the namespace. */
const cloneSource: Right = { ...to('create', dataVolumeKind.type), subresource: 'source' };

/**
 * Ways to be allowed: any of them is enough, and takes all of its rights. Who may run pods in a namespace reads its claims anyway; to
 * read a snapshot takes a claim as well. Harvester's images and exports are for whoever may see what they are made from, and a Secret that
 * the storage reads for somebody is one that they may read themselves.
 */
const waysOf: Readonly<Record<SourceUse, readonly (readonly Right[])[]>> = {
  'clone-claim': [[cloneSource], [to('create', pods)]],
  'clone-snapshot': [[cloneSource], [to('create', pods), to('create', persistentVolumeClaims)]],
  'export-claim': [[to('get', persistentVolumeClaims)]],
  'use-image': [[to('get', harvesterImageKind.type)]],
  'read-secret': [[to('get', secrets)]],
};

/**
 * What the requester may do about a source: use everything of its namespace (`*`), this one alone, or `undefined`: nothing. Says nothing
 * of whether the source exists: ask it before you look. Six questions at most, one as a rule.
 */
export const grantFor = async (
  kube: KubeClient,
  requester: Requester,
  { use, namespace, name }: UsedSource,
): Promise<Grant | undefined> => {
  const may = async (rights: readonly Right[], where: Pick<Wish, 'namespace' | 'name'>): Promise<boolean> => {
    for (const right of rights) if (!(await isAllowed(kube, requester, { ...right, ...where }))) return false;
    return true;
  };
  for (const rights of waysOf[use]) {
    if (await may(rights, { namespace })) return { use, namespace, name: anyName };
    if (name !== anyName && (await may(rights, { namespace, name }))) return { use, namespace, name };
  }
  return undefined;
};
