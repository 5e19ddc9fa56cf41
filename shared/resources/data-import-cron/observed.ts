// What a cron's next step depends on: its data source, its versions, where the next one is to lie, who uses the old ones.
import { grantFor, serviceAccountRequester } from '#shared/access/permissions.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { type VolumeSnapshot, volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { readClass } from '#shared/populate/reading.ts';
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { isLocked } from '#shared/resources/protected/golden.ts';
import { keeperOf, policyOf, retentionOf, ruleOf } from '#shared/golden/rollout/policies.ts';
import type {
  CronPolicy,
  CronResource,
  ObservedVersion,
  ObservedCron,
} from '#shared/resources/data-import-cron/cron.ts';
import { readStorage } from '#shared/resources/data-import-cron/kept.ts';
import { classNameOf, isForDisk } from '#shared/resources/data-import-cron/template.ts';
import { type VersionUsers, noUsers, readUsers } from '#shared/resources/data-import-cron/users.ts';
import { hasArrived, possibleNames } from '#shared/resources/data-import-cron/version.ts';

/** What keeps each version of a cron. `isDue`: whether who uses them has to be read. */
export const readKept = async (
  kube: KubeClient,
  cron: CronResource,
  { policy, versions, isDue }: Pick<ObservedCron, 'policy' | 'versions'> & { readonly isDue: boolean },
): Promise<Pick<ObservedCron, 'inUse' | 'lastDisks'>> => {
  const users = isDue ? await readUsers(kube, cron, { versions: [...versions.keys()], policy }) : noUsers;
  return keptOf(cron, { policy, versions }, users);
};

export const keptOf = (
  cron: CronResource,
  { policy, versions }: Pick<ObservedCron, 'policy' | 'versions'>,
  { used, lastDisks }: VersionUsers,
): Pick<ObservedCron, 'inUse' | 'lastDisks'> => {
  const kept = [...versions].flatMap(([name, version]): readonly (readonly [string, string])[] => {
    if (!hasArrived(cron, name, version)) return [];
    const lock = formsOf(version).some(isLocked) ? `it has the label ${labels.protected}` : undefined;
    const why = policy?.keeperOf(name) ?? lock;
    return why === undefined ? [] : [[name, why]];
  });
  return { inUse: new Map([...used, ...kept]), lastDisks };
};

export const check = async (kube: KubeClient, cron: CronResource): Promise<ObservedCron> => {
  const policy = await readPolicy(kube, cron);
  const [dataSource, versions, storageClass, snapshotClasses] = await Promise.all([
    policy === undefined
      ? kube.get(dataSourceKind.type, { namespace: cron.namespace, name: cron.dataSource })
      : undefined,
    readVersions(kube, cron),
    readClass(kube, classNameOf(cron), isForDisk(cron)),
    allIfServed(kube, volumeSnapshotClasses),
  ]);
  const className = storageClass?.metadata.name;
  const storage = await readStorage(kube, cron, versions, policy?.retention?.undeleteFor !== undefined);
  const isDue = cron.collects && versions.size > (policy?.retention?.keep ?? cron.keep);
  const [rival, profile, foreign, kept, right] = await Promise.all([
    readRival(kube, cron, dataSource),
    className === undefined ? undefined : kube.get(storageProfiles, { name: className }),
    readForeign(kube, cron, versions),
    readKept(kube, cron, { policy, versions, isDue }),
    readRight(kube, cron),
  ]);
  const left = policy === undefined && cron.state.retention !== undefined ? await readLeft(kube, cron, versions) : [];
  const around = { dataSource, policy, rival, foreign, storageClass, profile, snapshotClasses, storage, right };
  return { ...around, left, ...kept, versions: withStorage(versions, storage) };
};

/** Marks of a policy that is gone, on versions and on the DataSources that it left where they were. */
const readLeft = async (
  kube: KubeClient,
  { namespace, ref }: CronResource,
  versions: ObservedCron['versions'],
): Promise<ObservedCron['left']> => {
  const sources = await allIfServed(kube, dataSourceKind.type, {
    namespace,
    labelSelector: `${cdiLabels.cron}=${ref.name}`,
  });
  const all = [
    ...sources.map((object) => ({ type: dataSourceKind.type as ResourceType, object })),
    ...[...versions.values()].flatMap(({ volume, snapshot }) => [
      ...(volume === undefined ? [] : [{ type: persistentVolumeClaims as ResourceType, object: volume }]),
      ...(snapshot === undefined ? [] : [{ type: volumeSnapshots as ResourceType, object: snapshot }]),
    ]),
  ];
  return all.filter(({ object }) => object.metadata.annotations?.[annotations.deprecation] !== undefined);
};

/** What is removed takes its storage along. */
const withStorage = (versions: ObservedCron['versions'], { kept }: ObservedCron['storage']): ObservedCron['versions'] =>
  kept.length === 0
    ? versions
    : new Map(
        [...versions].map(([name, version]) => [
          name,
          { ...version, kept: kept.filter(({ record, isLive }) => isLive && record.version === name) },
        ]),
      );

const formsOf = ({ dataVolume, volume, snapshot }: ObservedVersion): readonly KubeObject[] =>
  [dataVolume, volume, snapshot].filter((form) => form !== undefined);

/** Found anew in each pass, and by nothing but objects: a policy may come and go, and so may the labels of the cron. */
export const readPolicy = async (
  kube: KubeClient,
  { namespace, object }: CronResource,
): Promise<CronPolicy | undefined> => {
  const policy = policyOf(object, await allIfServed(kube, goldenImagePolicyKind.type, { namespace }));
  if (policy === undefined) return undefined;
  const { name } = policy.metadata;
  return cronPolicyOf(
    policy,
    await allIfServed(kube, dataSourceKind.type, { namespace, labelSelector: `${labels.policy}=${name}` }),
  );
};

/** `sources`: its own. */
export const cronPolicyOf = (policy: GoldenImagePolicy, sources: readonly DataSource[]): CronPolicy => {
  return {
    name: policy.metadata.name,
    verifies: policy.spec.verify?.signature !== undefined,
    keeperOf: keeperOf(policy),
    retention: retentionOf(policy),
    rule: ruleOf(policy),
    offers: (version, format) => sources.some(({ spec }) => spec.source[format]?.name === version),
  };
};

const readRight = async (
  kube: KubeClient,
  { source, namespace: own }: CronResource,
): Promise<ObservedCron['right']> => {
  if (source?.type !== 'pvc' || source.namespace === undefined || source.namespace === own) return { is: 'not needed' };
  const { namespace, name, account } = source;
  const used = { use: 'clone-claim', namespace, name } as const;
  return { is: 'asked', grant: await grantFor(kube, serviceAccountRequester(own, account), used) };
};

export interface CronForms {
  readonly imports: readonly DataVolume[];
  readonly volumes: readonly PersistentVolumeClaim[];
  readonly snapshots: readonly VolumeSnapshot[];
}

/** By name: what carries the label of a cron. */
export const readVersions = async (
  kube: KubeClient,
  { namespace, ref }: Pick<CronResource, 'namespace' | 'ref'>,
): Promise<ReadonlyMap<string, ObservedVersion>> => {
  const options = { namespace, labelSelector: `${cdiLabels.cron}=${ref.name}` };
  // A data volume is read before its volume: a volume without one was made before, or by somebody else.
  const imports = await allIfServed(kube, dataVolumes, options);
  const [volumes, snapshots] = await Promise.all([
    allIfServed(kube, persistentVolumeClaims, options),
    allIfServed(kube, volumeSnapshots, options),
  ]);
  const labelled = new Set(volumes.map(({ metadata }) => metadata.name));
  // The volume of an import is its own whether or not it took over the labels.
  const lacking = imports.map(({ metadata }) => metadata.name).filter((name) => !labelled.has(name));
  const others = await Promise.all(lacking.map((name) => kube.get(persistentVolumeClaims, { namespace, name })));
  return versionsFrom({ imports, volumes: [...volumes, ...others.filter((one) => one !== undefined)], snapshots });
};

/** By name: what there is of one cron. */
export const versionsFrom = ({ imports, volumes, snapshots }: CronForms): ReadonlyMap<string, ObservedVersion> => {
  const versions = new Map<string, ObservedVersion>();
  const add = (name: string, form: ObservedVersion) => versions.set(name, { ...versions.get(name), ...form });
  for (const dataVolume of imports) add(dataVolume.metadata.name, { dataVolume });
  for (const volume of volumes) add(volume.metadata.name, { volume });
  for (const snapshot of snapshots) add(snapshot.metadata.name, { snapshot });
  return versions;
};

const readRival = async (
  kube: KubeClient,
  cron: CronResource,
  dataSource: DataSource | undefined,
): Promise<DataImportCron | undefined> => {
  const name = dataSource?.metadata.labels?.[cdiLabels.cron] ?? '';
  if (name === '' || name === cron.ref.name) return undefined;
  const other = await kube.get(dataImportCronKind.type, { namespace: cron.namespace, name });
  return other?.spec.managedDataSource === cron.dataSource ? other : undefined;
};

/** Volumes of the name a version would have, that carry no label of ours. */
const readForeign = async (
  kube: KubeClient,
  cron: CronResource,
  versions: ReadonlyMap<string, ObservedVersion>,
): Promise<ReadonlySet<string>> => {
  const { namespace } = cron;
  const names = possibleNames(cron, versions).filter((name) => !versions.has(name));
  const found = await Promise.all(names.map((name) => kube.get(persistentVolumeClaims, { namespace, name })));
  return new Set(found.flatMap((volume) => (volume === undefined ? [] : [volume.metadata.name])));
};
