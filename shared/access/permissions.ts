// Checks permissions of a user, and defines the permissions for using the content of another object: one row per use, the same for every
// backend. Called at admission, and by functions that serve bytes.
import { z } from 'zod';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, pods, secrets } from '#shared/api/foreign/core.ts';
import { type SubjectAccessReview, subjectAccessReviews } from '#shared/api/foreign/kubernetes.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, unguardedNamespaces } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

// Permissions of the author of an object, recorded on the object at admission: later passes run with our own service account and without a
// requester, so they use the grant. See README.md for why it cannot be forged.

/** Uses of objects in other namespaces; `sources.ts` lists the permissions for each. */
type SourceUse = 'clone-claim' | 'clone-snapshot' | 'export-claim' | 'use-image' | 'read-secret';

export interface UsedSource {
  readonly use: SourceUse;
  readonly namespace: string;
  readonly name: string;
}

/** Whether the author of an object may use a source in another namespace. */
export type MayUse = (source: UsedSource) => boolean;

/** The same, where something has to be looked up for the answer. */
export type AskMayUse = (source: UsedSource) => boolean | Promise<boolean>;

/** Matches every source of its namespace. */
export const anyName = '*';

const Grants = z.array(z.object({ use: z.string(), namespace: z.string(), name: z.string() }));
export type Grant = z.infer<typeof Grants>[number];

const isGuarded = ({ metadata }: KubeObject): boolean =>
  !(unguardedNamespaces as readonly string[]).includes(metadata.namespace ?? '');

/** The grants recorded by admission, as plain data: they are part of the compared input of a decision. */
export const readGrants = (object: KubeObject): readonly Grant[] => {
  if (!isGuarded(object)) return [];
  return parseJsonAs(Grants, object.metadata.annotations?.[annotations.granted]) ?? [];
};

/** Value of the annotation; `undefined`: no grant is needed. */
export const toGrantText = (grants: readonly Grant[]): string | undefined =>
  grants.length === 0
    ? undefined
    : JSON.stringify(grants.map(({ use, namespace, name }) => ({ use, namespace, name })));

/**
 * Whether an object may be made from a source. The author may use the object's own namespace; any other source must have been granted at
 * admission. Call it with the current source: the target of a reference may have changed since.
 */
export const mayUseOf =
  (own: string | undefined, grants: readonly Grant[] = []): MayUse =>
  ({ use, namespace, name }) =>
    namespace === own ||
    grants.some(
      (grant) => grant.use === use && grant.namespace === namespace && (grant.name === anyName || grant.name === name),
    );

/** The same for an object. */
export const isGranted = (object: KubeObject, source: UsedSource): boolean =>
  mayUseOf(object.metadata.namespace, readGrants(object))(source);

// Asks the API server whether a user has a permission (SubjectAccessReview). Code that acts for users with its own account calls this first;
// `sources.ts` defines the permissions for the content of images and volumes.

/** The requester, as named by the API server: the `userInfo` of an admission review, or the status of a TokenReview. */
export interface Requester {
  readonly username: string;
  readonly uid?: string | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

/** A service account as named by the API server, with its implicit groups. */
export const serviceAccountRequester = (namespace: string, name: string): Requester => ({
  username: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
});

/** A requested operation. Without `name`: on every object of the namespace; without `namespace`: in every namespace. */
export type Wish = SubjectAccessReview['spec']['resourceAttributes'];

/** Throws AppErrors of the client if the API server cannot be asked; access is then denied. */
export const isAllowed = async (
  kube: Pick<KubeClient, 'create'>,
  requester: Requester,
  wish: Wish,
): Promise<boolean> => {
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

/** CDI's permission: who may create this subresource may clone volumes of the namespace. */
const cloneSource: Right = { ...to('create', dataVolumeKind.type), subresource: 'source' };

/**
 * Alternatives: each one is sufficient, and requires all of its permissions. Users who may run pods in a namespace can read its claims anyway;
 * reading a snapshot also requires a claim. Harvester's images and exports require read access to their source, and a Secret that the storage
 * reads for a user must be readable by that user.
 */
const waysOf: Readonly<Record<SourceUse, readonly (readonly Right[])[]>> = {
  'clone-claim': [[cloneSource], [to('create', pods)]],
  'clone-snapshot': [[cloneSource], [to('create', pods), to('create', persistentVolumeClaims)]],
  'export-claim': [[to('get', persistentVolumeClaims)]],
  'use-image': [[to('get', harvesterImageKind.type)]],
  'read-secret': [[to('get', secrets)]],
};

/**
 * The sources that the requester may use: all of the namespace (`*`), this one only, or none (`undefined`). Does not reveal whether the source
 * exists: call it before the look-up. At most six requests, usually one.
 */
export const grantFor = async (
  kube: Pick<KubeClient, 'create'>,
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
