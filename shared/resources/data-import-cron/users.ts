// Who reads from the versions of a cron: data sources, disks being made, snapshots being taken. A version in use is never collected.
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
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

/** The use of a version by one object, or of a DataSource: then it may read from any version of that. */
export interface Use {
  readonly namespace: string | undefined;
  readonly name: string;
  readonly of: 'version' | 'dataSource';
  readonly by: KubeObject;
  /** What keeps the version; `undefined`: nothing. */
  readonly why: string | undefined;
  /** RFC 3339: when a disk was made from it. */
  readonly made?: string | undefined;
}

const whyKept = ({ kind, metadata }: KubeObject): string =>
  `${kind} ${metadata.namespace}/${metadata.name} reads from it`;

const useOf = (named: Named | undefined, by: KubeObject, over: Partial<Use> = {}): readonly Use[] =>
  named === undefined
    ? []
    : [
        {
          namespace: named.namespace ?? by.metadata.namespace,
          name: named.name,
          of: 'version',
          by,
          why: whyKept(by),
          ...over,
        },
      ];

/** A use of itself. */
const backupUse = (object: KubeObject): readonly Use[] =>
  isBackedUp(object.metadata)
    ? useOf(object.metadata, object, { why: `it has the annotation ${annotations.backup}` })
    : [];

/** The uses that an object of each kind causes. */
export const usesOf = {
  dataSource: (object: DataSource): readonly Use[] => {
    const { pvc, snapshot } = object.spec.source;
    return [...useOf(pvc, object), ...useOf(snapshot, object)];
  },
  disk: (disk: DataVolume): readonly Use[] => {
    const { source, sourceRef } = disk.spec;
    if (disk.status?.phase === 'Succeeded') return [];
    return [
      ...useOf(source?.pvc, disk),
      ...useOf(source?.snapshot, disk),
      // It does not state which version it began with: it may be any of them.
      ...useOf(sourceRef, disk, { of: 'dataSource' }),
    ];
  },
  claim: (claim: PersistentVolumeClaim): readonly Use[] => [
    ...backupUse(claim),
    // A Job copies from it, which the claim alone tells.
    ...(populationOf(claim) === undefined ? useOf(recordOf(claim)?.from, claim) : []),
    ...sourcesOf(claim).flatMap((source) =>
      useOf(source, claim, {
        made: claim.metadata.creationTimestamp,
        ...(claim.status?.phase === 'Bound' ? { why: undefined } : {}),
      }),
    ),
  ],
  snapshot: (snapshot: VolumeSnapshot): readonly Use[] => {
    const { metadata, spec, status } = snapshot;
    const { persistentVolumeClaimName: name } = spec.source;
    // A backup of the user's, or a copy in progress: some storage cannot delete a volume that still has snapshots.
    const isOwn = name === metadata.name || (metadata.name.startsWith('clone-') && status?.readyToUse === true);
    return [...(name === undefined || isOwn ? [] : useOf({ name }, snapshot)), ...backupUse(snapshot)];
  },
};

interface Wanted {
  /** Names of the cron's versions. */
  readonly versions: readonly string[];
  readonly policy: Pick<CronPolicy, 'name'> | undefined;
}

const versionsOf = ({ namespace, name, of, by }: Use, cron: CronResource, { versions, policy }: Wanted) => {
  if (namespace !== cron.namespace) return [];
  if (of === 'dataSource') return name === cron.dataSource ? versions : [];
  const isOwn = by.kind === dataSourceKind.type.kind && by.metadata.name === cron.dataSource;
  return isOwn && by.metadata.namespace === cron.namespace && policy === undefined ? [] : [name];
};

/** Collects uses, and keeps those of the cron's versions. */
export const createUsers = (
  cron: CronResource,
  wanted: Wanted,
): VersionUsers & { readonly add: (use: Use) => void } => {
  const used = new Map<string, string>();
  const lastDisks = new Map<string, string>();
  const add = (use: Use): void => {
    const { why, made = '' } = use;
    for (const name of versionsOf(use, cron, wanted)) {
      if (why !== undefined) used.set(name, why);
      if (made > (lastDisks.get(name) ?? '')) lastDisks.set(name, made);
    }
  };
  return { used, lastDisks, add };
};

/** Who reads from `versions`, and when disks were made that nobody but the storage made. */
export const readUsers = async (kube: KubeClient, cron: CronResource, wanted: Wanted): Promise<VersionUsers> => {
  const users = createUsers(cron, wanted);
  const { namespace } = cron;
  const look =
    <T>(uses: (object: T) => readonly Use[]) =>
    (object: T): void =>
      uses(object).forEach(users.add);
  await each(kube, dataSourceKind.type, {}, look(usesOf.dataSource));
  await each(kube, dataVolumes, {}, look(usesOf.disk));
  await each(kube, persistentVolumeClaims, { namespace }, look(usesOf.claim));
  await each(kube, volumeSnapshots, { namespace }, look(usesOf.snapshot));
  return users;
};

/** Its user wants it kept, as images say it. */
const isBackedUp = ({ annotations: found }: ObjectMeta): boolean => found?.[annotations.backup] === 'true';

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
