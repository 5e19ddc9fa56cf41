// Finds who fetches the requested bytes, and volumes that already hold them. Called before backends and volumes create a claim.
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, type ObjectRef, apiVersionOf } from '#shared/api/object.ts';
import { contentLabels, contentName, isOfContent } from '#shared/populate/singleflight/content.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { type ReadyOrigin, readClaimOrigin, readSnapshotOrigin } from '#shared/populate/clone/origin.ts';
import { listIfServed } from '#shared/populate/reading.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

/** The lease and its holder are read before the kept volumes: the volume of a finished holder is then found. */
export const readSingleflight = async (
  kube: KubeClient,
  ref: ObjectRef,
  { content, className }: { readonly content: string; readonly className: string },
): Promise<ObservedSingleflight> => {
  const name = contentName(content, className);
  const { namespace = 'default' } = ref;
  const lease = await kube.get(leases, { namespace, name });
  const isOurs = lease === undefined || lease.spec.holderIdentity === ref.uid;
  const fetcher = isOurs ? undefined : await readFetcher(kube, namespace, lease);
  const kept = await Promise.all(
    contentLabels(content).map((label) => readKept(kube, { ...ref, namespace }, `${label}=${name}`)),
  );
  // A label alone proves nothing.
  const isRight = ({ population }: ReadyOrigin): boolean => isOfContent(content, population?.digests ?? {});
  return { name, lease, fetcher, kept: kept.flat().filter(isRight) };
};

const readFetcher = async (
  kube: KubeClient,
  namespace: string,
  { metadata, spec }: Lease,
): Promise<KubeObject | undefined> => {
  const [owner] = metadata.ownerReferences ?? [];
  const served = servedKinds.find(({ type }) => type.kind === owner?.kind && apiVersionOf(type) === owner?.apiVersion);
  if (owner === undefined || served === undefined) return undefined;
  const holder = await kube.get(served.type, { namespace, name: owner.name });
  return holder?.metadata.uid === spec.holderIdentity ? holder : undefined;
};

/** Volumes first: they can be copied whatever their size, and refer to their snapshot. */
const readKept = async (
  kube: KubeClient,
  { namespace = '', uid }: ObjectRef,
  labelSelector: string,
): Promise<readonly ReadyOrigin[]> => {
  const labelled = { namespace, labelSelector };
  const { items } = await kube.list(persistentVolumeClaims, labelled);
  const claims = items.filter((claim) => isFilled(claim) && !isOwn(claim, uid));
  const found = await listIfServed(kube, volumeSnapshots, labelled);
  const snapshots = found.filter((snapshot) => snapshot.status?.readyToUse === true && isFilled(snapshot));
  const mayUse = () => true;
  const origins = await Promise.all([
    ...claims.map(({ metadata }) =>
      readClaimOrigin(
        kube,
        { namespace, name: metadata.name },
        {
          what: `PersistentVolumeClaim ${namespace}/${metadata.name}`,
          snapshot: snapshotOf(metadata.name, snapshots),
          mayUse,
        },
      ),
    ),
    ...snapshots.map(({ metadata }) =>
      readSnapshotOrigin(
        kube,
        { namespace, name: metadata.name },
        { what: `VolumeSnapshot ${namespace}/${metadata.name}`, mayUse },
      ),
    ),
  ]);
  return origins.filter((origin) => origin.is === 'ready');
};

/** The volume's own claim, before it is created again. */
const isOwn = ({ metadata: { labels: found = {} } }: PersistentVolumeClaim, uid: string): boolean =>
  found[labels.ownerUid] === uid && found[labels.role] !== 'kept';

const isFilled = (object: PersistentVolumeClaim | VolumeSnapshot): boolean =>
  object.metadata.deletionTimestamp === undefined && populationOf(object) !== undefined;

const snapshotOf = (claim: string, snapshots: readonly VolumeSnapshot[]): string | undefined =>
  snapshots.find(({ spec }) => spec.source.persistentVolumeClaimName === claim)?.metadata.name;
