// Names that only one object of a namespace may have. Admission refuses the second of two; of two that were created at one moment, and saw
// nothing of each other, the one that takes the Lease of the name first may begin, and the other says so and ends. A Lease is created or
// not, so nothing that is made for both can remain, whatever was read too early, and one whose holder is gone is taken over.
import { createHash } from 'node:crypto';
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import type { Driven, Refusal, Subject } from '#shared/resources/driven.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';

interface Claim {
  readonly kube: KubeClient;
  readonly driven: Driven;
  readonly subject: Subject;
}

const leaseName = (name: string): string =>
  `bullion-name-${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;

/** It goes with its holder. */
const buildLease = ({ subject }: Claim, name: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: childMetadata(subject.ref, 'name', leaseName(name)),
  spec: { holderIdentity: subject.ref.uid },
});

const holderOf = async ({ kube, driven }: Claim, lease: Lease): Promise<KubeObject | undefined> => {
  const name = lease.metadata.annotations?.[annotations.ownerName] ?? '';
  const holder = await kube.get(driven.kind.type, { namespace: lease.metadata.namespace, name });
  const isThere =
    holder?.metadata.uid === lease.spec.holderIdentity && holder?.metadata.deletionTimestamp === undefined;
  return isThere ? holder : undefined;
};

/** `undefined` where it was created. Throws Conflict when another one went away just now. */
const createOrGet = async ({ kube, subject }: Claim, wanted: Lease): Promise<Lease | undefined> => {
  try {
    await kube.create(leases, wanted);
    return undefined;
  } catch (error) {
    const key = { namespace: subject.ref.namespace, name: wanted.metadata.name };
    const lease = isConflict(error) ? await kube.get(leases, key) : undefined;
    if (lease === undefined) throw error;
    return lease;
  }
};

/**
 * Asked until the first child is made: whether the name is another's. Throws Conflict when somebody was quicker just now: read again and
 * decide anew.
 */
export const claimName = async (claim: Claim): Promise<Refusal | undefined> => {
  const { kube, driven, subject } = claim;
  const unique = driven.uniqueNameOf?.(subject);
  if (unique === undefined) return undefined;
  const { name, what, reason } = unique;
  const wanted = buildLease(claim, name);
  // Few names are taken, so it is tried before it is looked at.
  const lease = await createOrGet(claim, wanted);
  if (lease === undefined) return undefined;
  if (lease.spec.holderIdentity === subject.ref.uid) return undefined;
  const holder = await holderOf(claim, lease);
  if (holder === undefined) {
    await kube.replace(leases, {
      ...wanted,
      metadata: { ...wanted.metadata, resourceVersion: lease.metadata.resourceVersion ?? '' },
    });
    return undefined;
  }
  const message =
    `${holder.kind} ${holder.metadata.name} has the ${what} ${JSON.stringify(name)}, and was first: delete this one, ` +
    'or delete that one and start this one again with the annotation bullion.dev/retry';
  return { reason, message };
};
