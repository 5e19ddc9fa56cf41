// Storage of versions that outlives their claims and snapshots, so that what somebody deletes can be brought back with its bytes: its reclaim policy is
// Retain for that, and its own one is recorded on it, with all that is needed to make claim or snapshot anew.
import { type PersistentVolume, persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import {
  type VolumeSnapshot,
  type VolumeSnapshotContent,
  volumeSnapshotContents,
  volumeSnapshots,
} from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata, childrenOf, type KubeObject, type ObjectMeta, type ResourceType } from '#shared/api/object.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import type { CronResource, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import {
  KeptRecord,
  type KeptStorage,
  type Recipe,
  type ObservedStorage,
  type UnkeptStorage,
  noStorage,
} from '#shared/resources/data-import-cron/storage.ts';
import { hasArrived } from '#shared/resources/data-import-cron/version.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

const recordIn = ({ metadata }: KubeObject): KeptRecord | undefined =>
  parseJsonAs(KeptRecord, metadata.annotations?.[annotations.kept]);

type Storage = Pick<KeptStorage, 'form' | 'object'>;

const change = ({ form, object }: Storage, metadata: object, policy: string): Action =>
  form === 'volume'
    ? patch(persistentVolumes, object as PersistentVolume, {
        metadata,
        spec: { persistentVolumeReclaimPolicy: policy },
      })
    : patch(volumeSnapshotContents, object as VolumeSnapshotContent, { metadata, spec: { deletionPolicy: policy } });

const policyOf = ({ form, object }: Storage): KeptRecord['policy'] =>
  (form === 'volume'
    ? (object as PersistentVolume).spec.persistentVolumeReclaimPolicy
    : (object as VolumeSnapshotContent).spec.deletionPolicy) ?? 'Delete';

const role = 'deleted';

/** Marks of storage: its cron finds it by them. */
export const keptMetadata = (
  cron: CronResource,
  name: string,
  record: KeptRecord,
): Pick<ObjectMeta, 'labels' | 'annotations'> => {
  const { labels, annotations: marks } = childMetadata(cron.ref, role, name);
  return { ...(labels && { labels }), annotations: { ...marks, [annotations.kept]: JSON.stringify(record) } };
};

/** Written by the cluster for this object alone. */
const isPassing = (key: string): boolean =>
  /^(?:pv|volume|volume\.beta|snapshot\.storage|kubectl)\.kubernetes\.io\//.test(key) || key === annotations.deleted;

const manifestOf = ({ metadata }: KubeObject, spec: object): Recipe => ({
  labels: metadata.labels,
  annotations: Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !isPassing(key))),
  spec: { ...spec },
});

const recordOf = (storage: Storage, name: string, { volume, snapshot, dataVolume }: ObservedVersion) => {
  const isVolume = storage.form === 'volume';
  const made = isVolume ? volume : snapshot;
  if (made === undefined) return undefined;
  const { dataSource: _, dataSourceRef: __, source: ___, ...spec } = made.spec as Readonly<Record<string, unknown>>;
  return {
    version: name,
    policy: policyOf(storage),
    made: manifestOf(made, spec),
    ...(isVolume && dataVolume !== undefined ? { import: manifestOf(dataVolume, dataVolume.spec) } : {}),
  } satisfies KeptRecord;
};

/** From now on it outlives its claim or snapshot. */
export const keep = (cron: CronResource, storage: UnkeptStorage, version: ObservedVersion): readonly Action[] => {
  const record = recordOf(storage, storage.name, version);
  if (record === undefined) return [];
  return [change(storage, keptMetadata(cron, storage.object.metadata.name, record), 'Retain')];
};

/** Its record says something else now. */
export const rewrite = (storage: KeptStorage, record: KeptRecord): Action =>
  change(storage, { annotations: { [annotations.kept]: JSON.stringify(record) } }, 'Retain');

const childLabels = childMetadata({ apiVersion: '', kind: '', name: '', uid: '' }, '', '').labels ?? {};

/** It goes with its claim or snapshot again, as it did before. */
export const unkeep = (storage: KeptStorage): Action =>
  change(
    storage,
    {
      labels: Object.fromEntries(Object.keys(childLabels).map((key) => [key, null])),
      annotations: { [annotations.kept]: null, [annotations.ownerName]: null, [annotations.ownerNamespace]: null },
    },
    storage.record.policy,
  );

/** Storage of a snapshot that is there twice, since contents cannot be bound again. */
export const handleOf = ({ form, object }: Storage): string | undefined => {
  if (form === 'volume') return undefined;
  const { spec, status } = object as VolumeSnapshotContent;
  return status?.snapshotHandle ?? spec.source?.snapshotHandle;
};

// Reading.

const listed = async (
  kube: KubeClient,
  { ref }: CronResource,
  versions: ReadonlyMap<string, ObservedVersion>,
): Promise<readonly KeptStorage[]> => {
  const options = { labelSelector: childrenOf(ref.uid) };
  const [volumes, contents] = await Promise.all([
    all(kube.listAll(persistentVolumes, options)),
    all(kube.listAll(volumeSnapshotContents, options)),
  ]);
  const found = [
    ...volumes.map((object) => ({ form: 'volume', object, record: recordIn(object) }) as const),
    ...contents.map((object) => ({ form: 'snapshot', object, record: recordIn(object) }) as const),
  ];
  const kept: KeptStorage[] = [];
  for (const one of found) {
    const { record } = one;
    if (record === undefined || one.object.metadata.deletionTimestamp !== undefined) continue;
    const { volume, snapshot } = versions.get(record.version) ?? {};
    const key = { namespace: ref.namespace, name: record.version };
    const isLive =
      one.form === 'volume'
        ? (volume ?? (await kube.get(persistentVolumeClaims, key)))?.spec.volumeName === one.object.metadata.name
        : contentNameOf(snapshot ?? (await kube.get(volumeSnapshots, key))) === one.object.metadata.name;
    kept.push({ ...one, record, isLive } as KeptStorage);
  }
  return kept;
};

const all = async <T extends KubeObject>(objects: AsyncIterable<T>): Promise<readonly T[]> => {
  const items: T[] = [];
  try {
    for await (const item of objects) items.push(item);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
  return items;
};

const contentNameOf = (snapshot: VolumeSnapshot | undefined): string | undefined =>
  snapshot?.status?.boundVolumeSnapshotContentName ?? snapshot?.spec.source.volumeSnapshotContentName;

/** Of versions that were imported, and whose storage nobody else is moving or removing. */
const readUnkept = async (
  kube: KubeClient,
  cron: CronResource,
  versions: ReadonlyMap<string, ObservedVersion>,
  kept: readonly KeptStorage[],
): Promise<readonly UnkeptStorage[]> => {
  const isKept = new Set(kept.map(({ object }) => object.metadata.name));
  const unkept: UnkeptStorage[] = [];
  for (const [name, version] of versions) {
    if (!hasArrived(cron, name, version)) continue;
    const { volume, snapshot } = version;
    const bound = await readFree(kube, persistentVolumes, isKept, { made: volume, storage: volume?.spec.volumeName });
    if (bound !== undefined && bound.spec.claimRef?.uid === volume?.metadata.uid)
      unkept.push({ name, form: 'volume', object: bound });
    const place = { made: snapshot, storage: contentNameOf(snapshot) };
    const content = await readFree(kube, volumeSnapshotContents, isKept, place);
    if (content !== undefined && content.spec.volumeSnapshotRef?.uid === snapshot?.metadata.uid)
      unkept.push({ name, form: 'snapshot', object: content });
  }
  return unkept;
};

const readFree = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  isKept: ReadonlySet<string>,
  { made, storage }: { readonly made: KubeObject | undefined; readonly storage: string | undefined },
): Promise<T | undefined> => {
  if (storage === undefined || isKept.has(storage) || made?.metadata.deletionTimestamp !== undefined) return undefined;
  const object = await kube.get(type, { name: storage });
  return isFree(object) ? object : undefined;
};

const isFree = <T extends KubeObject>(object: T | undefined): object is T =>
  object !== undefined &&
  object.metadata.deletionTimestamp === undefined &&
  object.metadata.annotations?.[annotations.handover] === undefined &&
  // Another pass has recorded it since the listing: what it has now is not its own policy any more.
  object.metadata.annotations?.[annotations.kept] === undefined;

const readTaken = async (
  kube: KubeClient,
  { namespace, wantedBack }: CronResource,
  versions: ReadonlyMap<string, ObservedVersion>,
): Promise<ReadonlySet<string>> => {
  const taken = new Set<string>();
  for (const name of wantedBack.filter((wanted) => !versions.has(wanted)))
    for (const type of [persistentVolumeClaims, volumeSnapshots])
      if ((await kube.get(type as typeof persistentVolumeClaims, { namespace, name })) !== undefined) taken.add(name);
  return taken;
};

/** Nothing is read of crons whose versions go when they go. */
export const readStorage = async (
  kube: KubeClient,
  cron: CronResource,
  versions: ReadonlyMap<string, ObservedVersion>,
  isWanted: boolean,
): Promise<ObservedStorage> => {
  if (!isWanted && cron.state.retention?.keeps !== true) return noStorage;
  const kept = await listed(kube, cron, versions);
  return {
    kept,
    unkept: isWanted && !cron.deleting ? await readUnkept(kube, cron, versions, kept) : [],
    taken: await readTaken(kube, cron, versions),
  };
};
