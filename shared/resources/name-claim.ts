// Names that must be unique in a namespace, or in the cluster. Admission rejects the second object; if two were created at the same moment, the
// one that first creates the Lease of the name may start, and the other one fails with a message. Creating a Lease is atomic, so stale reads do
// no harm, and a Lease without its holder is taken over.
import { createHash } from 'node:crypto';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { annotations, systemNamespace } from '#shared/api/names.ts';
import { childMetadata, keyOf, type KubeObject, movedTo } from '#shared/api/object.ts';
import type { Reconciler, Refusal, Resource, UniqueName } from '#shared/resources/reconciler.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';

interface Claim {
  readonly kube: KubeClient;
  readonly reconciler: Reconciler;
  readonly resource: Resource;
}

const leaseName = (name: string): string =>
  `bullion-name-${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;

/** Garbage-collected with its holder; if it is in another namespace, `releaseName` removes it. */
const buildLease = ({ resource }: Claim, { name, isEverywhere }: UniqueName): Lease => {
  const lease: Lease = {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: childMetadata(resource.ref, 'name', leaseName(name)),
    spec: { holderIdentity: resource.ref.uid },
  };
  return isEverywhere === true ? movedTo(lease, systemNamespace) : lease;
};

const holderOf = async ({ kube, reconciler }: Claim, lease: Lease): Promise<KubeObject | undefined> => {
  const { [annotations.ownerName]: name = '', [annotations.ownerNamespace]: namespace } =
    lease.metadata.annotations ?? {};
  const holder = await kube.get(reconciler.kind.type, { namespace: namespace ?? lease.metadata.namespace, name });
  const isThere =
    holder?.metadata.uid === lease.spec.holderIdentity && holder?.metadata.deletionTimestamp === undefined;
  return isThere ? holder : undefined;
};

/** `undefined` if it was created. Throws Conflict if another one was just deleted. */
const createOrGet = async ({ kube }: Claim, wanted: Lease): Promise<Lease | undefined> => {
  try {
    await kube.create(leases, wanted);
    return undefined;
  } catch (error) {
    const lease = isConflict(error) ? await kube.get(leases, keyOf(wanted)) : undefined;
    if (lease === undefined) throw error;
    return lease;
  }
};

/** Called until the first child is created: whether the name is taken. Throws Conflict after a concurrent change: read again and decide again. */
export const claimName = async (claim: Claim): Promise<Refusal | undefined> => {
  const { kube, reconciler, resource } = claim;
  const unique = reconciler.uniqueNameOf?.(resource);
  if (unique?.isDue !== true) return undefined;
  const { name, what, reason } = unique;
  const wanted = buildLease(claim, unique);
  // Few names are taken, so creation is tried before a read.
  const lease = await createOrGet(claim, wanted);
  if (lease === undefined) return undefined;
  if (lease.spec.holderIdentity === resource.ref.uid) return undefined;
  const holder = await holderOf(claim, lease);
  if (holder === undefined) {
    await kube.replace(leases, {
      ...wanted,
      metadata: { ...wanted.metadata, resourceVersion: lease.metadata.resourceVersion ?? '' },
    });
    return undefined;
  }
  const isNear = holder.metadata.namespace === resource.ref.namespace;
  const who = `${holder.kind} ${isNear ? '' : `${holder.metadata.namespace}/`}${holder.metadata.name}`;
  const message =
    `${who} has the ${what} ${JSON.stringify(name)}, and was the first to have it: delete this one, ` +
    'or delete that one and start this one again with the annotation bullion.dev/retry';
  return { reason, message };
};

/** For an object that is about to be deleted: removes what would outlive it. */
export const releaseName = async (claim: Claim): Promise<void> => {
  const { kube, reconciler, resource } = claim;
  const unique = reconciler.uniqueNameOf?.(resource);
  if (unique?.isEverywhere !== true) return;
  const key = keyOf(buildLease(claim, unique));
  const lease = await kube.get(leases, key);
  if (lease?.spec.holderIdentity !== resource.ref.uid) return;
  await kube.delete(leases, key, { uid: lease.metadata.uid ?? '' });
};
