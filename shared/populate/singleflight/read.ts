// Finds who fetches the requested bytes, and volumes that already hold them. Called before backends and volumes create a claim.
import { createHash } from 'node:crypto';
import {
  type PersistentVolumeClaim,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { type Lease, leases } from '#shared/api/foreign/kubernetes.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, type ObjectRef } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { readClaimOrigin, readSnapshotOrigin, type ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { populationOf } from '#shared/populate/population.ts';
import { type ObservedSingleflight, isOut } from './singleflight.ts';
import { isFile, pinOf, type Source } from '#shared/populate/source.ts';
import { rightOf } from '#shared/populate/sources/servers.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

// Identifies equal content of two volumes before either is filled: by a digest that the source is pinned to. Pure.

/** The requested content of a volume. */
export interface Wanted {
  readonly from: Source | undefined;
  readonly checksum?: Checksum | undefined;
}

const strong: readonly string[] = ['sha256', 'sha512'];

/**
 * `undefined`: the content of the source can change or is not verified. Digests of broken algorithms do not count. Bytes that were fetched with
 * credentials are another content than the same ones without.
 */
export const contentOf = ({ from, checksum }: Wanted): string | undefined => {
  if (from === undefined) return undefined;
  const content =
    isFile(from) && checksum !== undefined && strong.includes(checksum.algorithm)
      ? fileContent(`${checksum.algorithm}:${checksum.hex}`)
      : pinOf(from);
  return content && `${content}${rightOf(from)}`;
};

/** `digest`: `<algorithm>:<hex>`, or a validator in its place; followed by the right to it, if it needs one. */
export const fileContent = (digest: string): string => `file ${digest}`;

/** Labels that find volumes with a content: a volume whose digest was determined later still has the label of its validator, too. */
const contentLabels = (content: string): readonly string[] =>
  content.startsWith(fileContent('validator:')) ? [labels.content, labels.askedContent] : [labels.content];

/** Whether a volume was filled with that content, according to its digests. */
const isOfContent = (content: string, digests: Readonly<Record<string, string>>): boolean => {
  const [, algorithm = '', hex = ''] = /^file (sha256|sha512):([0-9a-f]+)(?: |$)/.exec(content) ?? [];
  return algorithm === '' || digests[algorithm] === hex;
};

/** Identifies one content in one storage class: name of the Lease of its fetcher, and label of every golden volume and snapshot that holds it. */
export const contentName = (content: string, className: string): string =>
  `content-${createHash('sha256').update(`${content} ${className}`).digest('hex').slice(0, 40)}`;

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
  const right = kept.flat().filter(isRight);
  const mayLead = right.length === 0 && (lease === undefined || (!isOurs && isOut(fetcher)));
  const others = mayLead ? await readOtherClasses(kube, { ...ref, namespace }, { content, className }) : [];
  return { name, lease, fetcher, kept: right, ofOtherClasses: others.filter(isRight) };
};

/**
 * Complete volumes of other classes that a Job can read wherever it runs: one that only some nodes reach might be out of reach of the node with the new
 * volume.
 */
const readOtherClasses = async (
  kube: KubeClient,
  { namespace = '', uid }: ObjectRef,
  { content, className }: { readonly content: string; readonly className: string },
): Promise<readonly ReadyOrigin[]> => {
  const { items: classes } = await kube.list(storageClasses);
  const others = classes.filter(({ metadata }) => metadata.name !== className);
  if (others.length === 0) return [];
  const names = others.map(({ metadata }) => contentName(content, metadata.name));
  const labelSelector = `${labels.content} in (${names.join(',')})`;
  const found: ReadyOrigin[] = [];
  for await (const claim of kube.listAll(persistentVolumeClaims, { namespace, labelSelector })) {
    const isOne = isFilled(claim) && !isOwn(claim, uid);
    const origin = isOne && (await isReachable(kube, claim)) ? await readLabelled(kube, claim, undefined) : undefined;
    if (origin?.is === 'ready') found.push(origin);
  }
  return found;
};

const isReachable = async (
  kube: KubeClient,
  { spec: { volumeName = '' } }: PersistentVolumeClaim,
): Promise<boolean> => {
  const volume = volumeName === '' ? undefined : await kube.get(persistentVolumes, { name: volumeName });
  return volume?.spec.nodeAffinity === undefined;
};

/** Of the same namespace: nobody need be asked. */
const readLabelled = (kube: KubeClient, { metadata }: PersistentVolumeClaim, snapshot: string | undefined) => {
  const { namespace = '', name } = metadata;
  const what = `PersistentVolumeClaim ${namespace}/${name}`;
  return readClaimOrigin(kube, { namespace, name }, { what, snapshot, mayUse: () => true });
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
    ...claims.map((claim) => readLabelled(kube, claim, snapshotOf(claim.metadata.name, snapshots))),
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
