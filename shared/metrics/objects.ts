// Metrics of objects: number of objects of every served kind, waiting and failed ones by reason, objects that are not reconciled any more;
// versions of golden images; storage classes.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { outdatedDisks } from '#shared/resources/outdated-disks.ts';
import { type Counter, gauge, createTally, type Metric } from '#shared/metrics/metric.ts';
import type { ReconciledState } from '#shared/resources/reconciler.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type StorageProfile, storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolumeClaim,
  type StorageClass,
  nodes,
  persistentVolumeClaims,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { defaultClassOf, isDefaultClass, isVirtDefaultClass } from '#shared/populate/storage/profile.ts';

/** Both API groups have a VirtualMachineImage, so kinds are distinguished by resource. */
export const resourceOf = ({ plural, group }: ResourceType): string => `${plural}.${group}`;

/** Milliseconds: cron-tick reconciles everything each minute, and may be delayed by a few minutes. */
const grace = 3 * 60_000;

/** Additional fields of images and volumes. */
type Observed = ReconciledState & Partial<Pick<ImageState, 'lastFailure' | 'attemptsFailed' | 'deadline'>>;

const objects = gauge('bullion_objects', 'Objects, by their phase.');
const unsettled = gauge('bullion_unsettled_objects', 'Objects that are not settled.');
const failed = gauge('bullion_failed_objects', 'Objects that failed for good, by reason.');
const retrying = gauge('bullion_retrying_objects', 'Objects whose present transfer has failed and is retried.');
const failures = gauge(
  'bullion_failed_attempts',
  'Failed attempts over the life of the existing objects, by the reason of the newest one.',
);
const overdue = gauge(
  'bullion_overdue_objects',
  'Objects past their deadline that were not marked as failed: they are not being reconciled.',
);

/** A later attempt succeeded, and the reason of earlier failures is not recorded. */
const past = ({ phase, reason }: ReconciledState): string => (phase === 'Failed' ? reason : 'Overcome');

/** `kinds` are present with zero if they have no object. */
export const createObjectCounter = (kinds: readonly ResourceType[], now: number): Counter => {
  const zeroes = kinds.map((type) => ({ resource: resourceOf(type) }));
  const tallies = {
    objects: createTally(objects),
    unsettled: createTally(unsettled),
    failed: createTally(failed),
    retrying: createTally(retrying, zeroes),
    failures: createTally(failures),
    overdue: createTally(overdue, zeroes),
  };
  const visit: Counter['visit'] = (object, reconciler) => {
    if (reconciler === undefined) return;
    const resource = resourceOf(reconciler.kind.type);
    const subject = reconciler.read(object);
    const state: Observed = subject.state;
    const { phase, reason } = state;
    tallies.objects.add({ resource, phase });
    if (phase === 'Failed') tallies.failed.add({ resource, namespace: object.metadata.namespace ?? '', reason });
    const { failures: count = 0, lastFailure } = state;
    if (count > 0) tallies.failures.add({ resource, reason: lastFailure?.reason ?? past(state) }, count);
    if (!reconciler.isSettled(subject)) queue(resource, state);
  };
  const queue = (resource: string, { reason, attemptsFailed = 0, deadline = '' }: Observed): void => {
    tallies.unsettled.add({ resource, reason });
    if (attemptsFailed > 0) tallies.retrying.add({ resource });
    if (Date.parse(deadline) < now - grace) tallies.overdue.add({ resource });
  };
  return { visit, metrics: () => Object.values(tallies).flatMap((tally) => tally.metrics()) };
};

/** Number of versions of each golden image, in whichever form: a data volume, a volume, a snapshot, or several of them. */
const versions = gauge('bullion_golden_image_versions', 'Versions of a golden image that are kept or being imported.');

export const createVersionCounter = (): Counter => {
  const crons = new Map<string, { readonly labels: Metric['labels']; readonly names: Set<string> }>();
  return {
    visit: ({ kind, metadata }) => {
      const cron = metadata.labels?.[cdiLabels.cron];
      // A DataSource has the label as well, and is no version.
      if (cron === undefined || kind === dataSourceKind.type.kind) return;
      const labels = { ns: metadata.namespace ?? '', cron_name: cron };
      const key = `${labels.ns}/${cron}`;
      const entry = crons.get(key) ?? { labels, names: new Set() };
      entry.names.add(metadata.name);
      crons.set(key, entry);
    },
    metrics: () => [...crons.values()].map(({ labels, names }) => versions(names.size, labels)),
  };
};

/** Disks that hold an earlier version of a golden image than its DataSource offers. */
const outdated = gauge(
  'bullion_outdated_disks',
  'Disks that hold another version of a golden image than their DataSource offers.',
);

/** What follows a source, with the policy and the channel that it belongs to: none with zero, so that an alert can tell none from unknown. */
export const createOutdatedCounter = (): Counter => {
  const served = new Map<string, KubeObject>();
  const claims = new Map<string, PersistentVolumeClaim>();
  const snapshots = new Map<string, VolumeSnapshot>();
  const all = { [persistentVolumeClaims.kind]: claims, [volumeSnapshots.kind]: snapshots } as Readonly<
    Record<string, Map<string, KubeObject>>
  >;
  return {
    visit: (object, reconciler) => {
      const kept = reconciler === undefined ? all[object.kind] : served;
      kept?.set(object.metadata.uid ?? '', object);
    },
    metrics: () => {
      const objects = [...served.values()];
      const inventory = { objects, claims: [...claims.values()], snapshots: [...snapshots.values()], machines: [] };
      const sources = objects.filter(isFollowing);
      const tally = createTally(
        outdated,
        sources.map((source) => labelsOf(source, objects)),
      );
      for (const { dataSource } of outdatedDisks(inventory)) tally.add(labelsOf(dataSource, objects));
      return tally.metrics();
    },
  };
};

const isFollowing = ({ kind, metadata }: KubeObject): boolean =>
  kind === dataSourceKind.type.kind && (metadata.labels?.[cdiLabels.cron] ?? '') !== '';

const labelsOf = ({ metadata }: KubeObject, objects: readonly KubeObject[]): Metric['labels'] => {
  const { namespace: ns = '', name } = metadata;
  const policy = objects.find(
    (one): one is GoldenImagePolicy =>
      one.kind === goldenImagePolicyKind.type.kind &&
      one.metadata.namespace === metadata.namespace &&
      one.metadata.name === metadata.labels?.[labels.policy],
  );
  const channel = policy?.spec.channels.find(({ dataSource }) => dataSource === name)?.name;
  return { ns, data_source: name, policy: policy?.metadata.name ?? '', channel: channel ?? '' };
};

/** Storage classes and the objects that wait for one, with the names and labels of the original, whose alerts use them. */
const info = gauge('kubevirt_cdi_storageprofile_info', 'Contents of the profile of a storage class; 1 for each class.');
const pending = gauge('kubevirt_cdi_datavolume_pending', 'DataVolumes that wait for a default storage class.');

const clones = new Set(['snapshot', 'csi-clone']);

/** On a single node, volumes with shared access have no advantage, and their absence is not a problem. */
const infoOf = (storageClass: StorageClass, { status }: StorageProfile, isSingleNode: boolean): Metric => {
  const { claimPropertySets = [], cloneStrategy = '' } = status ?? {};
  const rwx = claimPropertySets.some(({ accessModes }) => accessModes.includes('ReadWriteMany'));
  const smartclone = clones.has(cloneStrategy);
  return info(1, {
    storageclass: storageClass.metadata.name,
    provisioner: storageClass.provisioner,
    complete: String(claimPropertySets.length > 0),
    default: String(isDefaultClass(storageClass)),
    virtdefault: String(isVirtDefaultClass(storageClass)),
    rwx: String(rwx),
    smartclone: String(smartclone),
    degraded: String(!smartclone || (!rwx && !isSingleNode)),
  });
};

/** Without a class and without a volume. */
const isWaiting = ({ spec, status }: DataVolume): boolean =>
  ((spec.pvc ?? spec.storage)?.storageClassName ?? '') === '' && ['', 'Pending'].includes(status?.phase ?? '');

export const createStorageCounter = (): Counter => {
  const profiles = new Map<string, StorageProfile>();
  const classes: StorageClass[] = [];
  let nodeCount = 0;
  let waiting = 0;
  return {
    visit: (object) => {
      if (object.kind === storageProfileKind.type.kind) profiles.set(object.metadata.name, object);
      if (object.kind === storageClasses.kind) classes.push(object as StorageClass);
      if (object.kind === nodes.kind) nodeCount += 1;
      if (object.kind === dataVolumeKind.type.kind && isWaiting(object as DataVolume)) waiting += 1;
    },
    metrics: () => [
      ...classes.flatMap((storageClass) => {
        const profile = profiles.get(storageClass.metadata.name);
        // Without a status it was not reconciled yet: nothing is known.
        return profile?.status === undefined ? [] : [infoOf(storageClass, profile, nodeCount === 1)];
      }),
      pending(defaultClassOf(classes) === undefined ? waiting : 0),
    ],
  };
};
