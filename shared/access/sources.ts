// What it takes to make something from content of another object: one line a use, the same for every backend. Called at admission, and by
// whoever hands out bytes.
import type { Grant, SourceUse, UsedSource } from '#shared/access/grant.ts';
import { anyName } from '#shared/access/grant.ts';
import { type Requester, type Wish, isAllowed } from '#shared/access/review.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, pods, secrets } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

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
