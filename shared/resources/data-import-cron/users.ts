// Who reads from the versions of a cron: data sources, disks being made, snapshots being taken. A version in use is never collected.
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { CronPolicy, CronResource } from '#shared/resources/data-import-cron/cron.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

interface Named {
  readonly namespace?: string | undefined;
  readonly name: string;
}

export interface VersionUsers {
  /** By name: what reads from a version. */
  readonly used: ReadonlyMap<string, string>;
  /** By name: when the last claim was made that names a version as its source. RFC 3339. */
  readonly lastDisks: ReadonlyMap<string, string>;
}

export const noUsers: VersionUsers = { used: new Map(), lastDisks: new Map() };

/** Takes note of who reads from a version. `from`: the namespace of one that is named without any. */
type Use = (named: Named | undefined, user: KubeObject, from?: string) => void;

const whyKept = ({ kind, metadata }: KubeObject, { name }: Named): string =>
  metadata.name === name
    ? `it has the annotation ${annotations.backup}`
    : `${kind} ${metadata.namespace}/${metadata.name} reads from it`;

/** Who reads from `versions`, and when disks were made that nobody but the storage made. */
export const readUsers = async (
  kube: KubeClient,
  cron: CronResource,
  { versions, policy }: { readonly versions: readonly string[]; readonly policy: CronPolicy | undefined },
): Promise<VersionUsers> => {
  const used = new Map<string, string>();
  const lastDisks = new Map<string, string>();
  const use: Use = (named, user, from = user.metadata.namespace) => {
    if (named !== undefined && (named.namespace ?? from) === cron.namespace) used.set(named.name, whyKept(user, named));
  };
  await each(kube, dataSourceKind.type, {}, (object) => {
    const { source } = object.spec;
    const isOwn = object.metadata.namespace === cron.namespace && object.metadata.name === cron.dataSource;
    if (isOwn && policy === undefined) return;
    use(source.pvc, object);
    use(source.snapshot, object);
  });
  await each(kube, dataVolumes, {}, (disk) => {
    if (disk.status?.phase === 'Succeeded') return;
    use(disk.spec.source?.pvc, disk);
    use(disk.spec.source?.snapshot, disk);
    // It does not state which version it began with: it may be any of them.
    if (isFromOurs(disk, cron)) for (const name of versions) use({ name }, disk, cron.namespace);
  });
  await each(kube, persistentVolumeClaims, { namespace: cron.namespace }, (claim) => {
    observeClaim(claim, use);
    for (const { name } of sourcesOf(claim)) {
      const made = claim.metadata.creationTimestamp ?? '';
      if (made > (lastDisks.get(name) ?? '')) lastDisks.set(name, made);
    }
  });
  await each(kube, volumeSnapshots, { namespace: cron.namespace }, (snapshot) => observeSnapshot(snapshot, use));
  return { used, lastDisks };
};

const observeClaim = (claim: PersistentVolumeClaim, use: Use): void => {
  if (isBackedUp(claim.metadata)) use(claim.metadata, claim);
  // A Job copies from it, which the claim alone tells.
  if (populationOf(claim) === undefined) use(recordOf(claim)?.from, claim);
  if (claim.status?.phase !== 'Bound') for (const source of sourcesOf(claim)) use(source, claim);
};

const observeSnapshot = (snapshot: VolumeSnapshot, use: Use): void => {
  const { metadata, spec, status } = snapshot;
  const { persistentVolumeClaimName: name } = spec.source;
  // A backup of the user's, or a copy in progress: some storage cannot delete a volume that still has snapshots.
  const isOwn = name === metadata.name || (metadata.name.startsWith('clone-') && status?.readyToUse === true);
  if (name !== undefined && !isOwn) use({ name }, snapshot);
  if (isBackedUp(metadata)) use(metadata, snapshot);
};

/** Its user wants it kept, as images say it. */
const isBackedUp = ({ annotations: found }: ObjectMeta): boolean => found?.[annotations.backup] === 'true';

const isFromOurs = ({ spec: { sourceRef }, metadata }: DataVolume, cron: CronResource): boolean =>
  sourceRef?.name === cron.dataSource && (sourceRef.namespace ?? metadata.namespace) === cron.namespace;

/** What a claim names as its source: as long as it is not bound, it is being created from that. */
const sourcesOf = ({ spec }: PersistentVolumeClaim): readonly Named[] =>
  [spec.dataSource, spec.dataSourceRef].filter((source) => source !== undefined);

const each = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  options: { readonly namespace?: string },
  look: (object: T) => void,
): Promise<void> => {
  try {
    for await (const object of kube.listAll(type, options)) look(object);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};
