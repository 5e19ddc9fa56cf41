// Who reads from the versions of a cron: data sources, disks being made, snapshots being taken. A version in use is never collected.
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
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

/** Names of `versions` that are read from. */
export const readUsers = async (
  kube: KubeClient,
  cron: CronResource,
  { versions, policy }: { readonly versions: readonly string[]; readonly policy: CronPolicy | undefined },
): Promise<ReadonlySet<string>> => {
  const used = new Set<string>();
  const use = (named: Named | undefined, from: string | undefined): void => {
    if (named !== undefined && (named.namespace ?? from) === cron.namespace) used.add(named.name);
  };
  await each(kube, dataSourceKind.type, {}, ({ metadata, spec: { source } }) => {
    const isOwn = metadata.namespace === cron.namespace && metadata.name === cron.dataSource;
    if (isOwn && policy === undefined) return;
    use(source.pvc, metadata.namespace);
    use(source.snapshot, metadata.namespace);
  });
  await each(kube, dataVolumes, {}, (disk) => {
    if (disk.status?.phase === 'Succeeded') return;
    use(disk.spec.source?.pvc, disk.metadata.namespace);
    use(disk.spec.source?.snapshot, disk.metadata.namespace);
    // Which version it began with is not told: it may be any of them.
    if (isFromOurs(disk, cron)) for (const name of versions) used.add(name);
  });
  await each(kube, persistentVolumeClaims, { namespace: cron.namespace }, (claim) => {
    if (isBackedUp(claim.metadata)) use(claim.metadata, cron.namespace);
    // A Job copies from it, which the claim alone tells.
    if (populationOf(claim) === undefined) use(recordOf(claim)?.from, cron.namespace);
    for (const source of sourcesOf(claim)) use(source, cron.namespace);
  });
  await each(kube, volumeSnapshots, { namespace: cron.namespace }, ({ metadata, spec, status }) => {
    const { persistentVolumeClaimName: name } = spec.source;
    // Somebody's backup, or on its way: some storage cannot let go of a volume while there are snapshots of it.
    const isOwn = name === metadata.name || (metadata.name.startsWith('clone-') && status?.readyToUse === true);
    if (name !== undefined && !isOwn) use({ name }, cron.namespace);
    if (isBackedUp(metadata)) use(metadata, cron.namespace);
  });
  return used;
};

/** Its user wants it kept, as images say it. */
const isBackedUp = ({ annotations: found }: ObjectMeta): boolean => found?.[annotations.backup] === 'true';

const isFromOurs = ({ spec: { sourceRef }, metadata }: DataVolume, cron: CronResource): boolean =>
  sourceRef?.name === cron.dataSource && (sourceRef.namespace ?? metadata.namespace) === cron.namespace;

/** What a claim is made from, while it is being made. */
const sourcesOf = ({ spec, status }: PersistentVolumeClaim): readonly Named[] =>
  status?.phase === 'Bound' ? [] : [spec.dataSource, spec.dataSourceRef].filter((source) => source !== undefined);

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
