// Names that only one object of a namespace, or of the cluster, may have. Admission refuses the second of two; of two that were created at one moment, and saw
// nothing of each other, the one that takes the Lease of the name first may begin, and the other says so and ends. A Lease is created or
// not, so nothing that is made for both can remain, whatever was read too early, and one whose holder is gone is taken over.
import { createHash } from 'node:crypto';
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import { annotations, systemNamespace } from '#shared/api/names.ts';
import { type KubeObject, keyOf } from '#shared/api/object.ts';
import { childMetadata, movedTo } from '#shared/api/owner.ts';
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

/** It goes with its holder; where it lies apart from that, `releaseName` takes it away. */
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

/** `undefined` where it was created. Throws Conflict when another one went away just now. */
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

/**
 * Asked until the first child is made: whether the name is another's. Throws Conflict when somebody was quicker just now: read again and
 * decide anew.
 */
export const claimName = async (claim: Claim): Promise<Refusal | undefined> => {
  const { kube, reconciler, resource } = claim;
  const unique = reconciler.uniqueNameOf?.(resource);
  if (unique?.isDue !== true) return undefined;
  const { name, what, reason } = unique;
  const wanted = buildLease(claim, unique);
  // Few names are taken, so it is tried before it is looked at.
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
    `${who} has the ${what} ${JSON.stringify(name)}, and was first: delete this one, ` +
    'or delete that one and start this one again with the annotation bullion.dev/retry';
  return { reason, message };
};

/** Of an object that is about to be gone: what would outlive it. */
export const releaseName = async (claim: Claim): Promise<void> => {
  const { kube, reconciler, resource } = claim;
  const unique = reconciler.uniqueNameOf?.(resource);
  if (unique?.isEverywhere !== true) return;
  const key = keyOf(buildLease(claim, unique));
  const lease = await kube.get(leases, key);
  if (lease?.spec.holderIdentity !== resource.ref.uid) return;
  await kube.delete(leases, key, { uid: lease.metadata.uid ?? '' });
};
