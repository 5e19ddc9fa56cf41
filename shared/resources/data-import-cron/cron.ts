// A DataImportCron as the reconciler sees it.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import type { Grant } from '#shared/access/permissions.ts';
import type { WantedCondition } from '#shared/api/conditions.ts';
import type {
  CronCounts,
  CronRetention,
  DataImportCron,
  DataImportCronStatus,
  PollStatus,
} from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type CronSource, readCronSource } from '#shared/golden/source.ts';
import { parseSchedule } from '#shared/golden/schedule.ts';
import type { PolicyRetention } from '#shared/golden/rollout/policies.ts';
import { shortDigest, versionName } from '#shared/golden/version.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';
import type { SourceFormat } from '#shared/resources/data-source/point.ts';
import { readResource } from '#shared/resources/dialect.ts';
import { faultOf } from '#shared/resources/rule.ts';
import type { KeptStorage, ObservedStorage } from '#shared/resources/data-import-cron/storage.ts';
import type { Note } from '#shared/resources/transitions.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** The forms one version has at the moment. */
export interface ObservedVersion {
  readonly dataVolume?: DataVolume | undefined;
  readonly volume?: PersistentVolumeClaim | undefined;
  readonly snapshot?: VolumeSnapshot | undefined;
  /** Its storage, where that outlives claim and snapshot; read only where the cron's own next step needs it. */
  readonly kept?: readonly KeptStorage[] | undefined;
}

/** A policy, as far as its crons need it. */
export interface CronPolicy {
  readonly name: string;
  /** Whether it takes verified versions only. */
  readonly verifies: boolean;
  /** What of it needs a version; `undefined`: nothing. */
  readonly keeperOf: (version: string) => string | undefined;
  /** In place of what the cron says of its versions; `undefined`: the cron says it. */
  readonly retention: PolicyRetention | undefined;
  /** Fingerprint of what it keeps. */
  readonly rule: string;
  /** Whether a channel points to a version in this form. */
  readonly offers: (version: string, format: SourceFormat) => boolean;
}

export interface ObservedCron {
  /** Left out where a policy decides what it says. */
  readonly dataSource: DataSource | undefined;
  /** The policy that decides which channel has which version, where there is one. */
  readonly policy: CronPolicy | undefined;
  /** The live cron that the data source is labelled with, where that is another one. */
  readonly rival: DataImportCron | undefined;
  /** By name: what carries this cron's label. */
  readonly versions: ReadonlyMap<string, ObservedVersion>;
  /** Names in the namespace that are taken by volumes of others. */
  readonly foreign: ReadonlySet<string>;
  /** Where the next version lies: the class the template names, or the default one. */
  readonly storageClass: StorageClass | undefined;
  readonly profile: StorageProfile | undefined;
  readonly snapshotClasses: readonly VolumeSnapshotClass[];
  /** By name: what keeps a version, such as somebody who reads from it; read only where there is something to collect. */
  readonly inUse: ReadonlyMap<string, string>;
  /** By name: when the last disk was made that names the version itself. RFC 3339. */
  readonly lastDisks: ReadonlyMap<string, string>;
  /** What a policy that is gone has marked as deprecated or obsolete. */
  readonly left: readonly { readonly type: ResourceType; readonly object: KubeObject }[];
  /** Storage of versions, where a policy has it outlive them. */
  readonly storage: ObservedStorage;
  /** Of a source in another namespace: what its service account may clone there; `undefined`: nothing. */
  readonly right: { readonly is: 'not needed' } | { readonly is: 'asked'; readonly grant: Grant | undefined };
}

/** A version by the name of its volume and snapshot. */
export interface NamedVersion {
  readonly name: string;
  /** Verified, once the bytes are there. */
  readonly digest: string;
  /** What stood for the digest before: what was asked for. */
  readonly validator?: string | undefined;
}

/** What a cron asked for to have this version. */
export const askedOf = ({ digest, validator }: NamedVersion): string => validator ?? digest;

export interface CronState extends ReconciledState {
  /**
   * `Waiting`: for a digest or for somebody else; `Importing`; `Ready`: the newest version is in use; `Failed`: it cannot be had, an older one may
   * be in use.
   */
  readonly phase: 'Waiting' | 'Importing' | 'Ready' | 'Failed';
  /** The version asked for. */
  readonly current?: NamedVersion | undefined;
  /** Name of the version in use. */
  readonly offered?: string | undefined;
  readonly format?: SourceFormat | undefined;
  /** Of the snapshot in use. */
  readonly snapshotClass?: string | undefined;
  /** RFC 3339: when the version in use was imported. */
  readonly importedAt?: string | undefined;
  /** RFC 3339: the result of `nextCronTime` at the last reconciliation. */
  readonly nextPoll?: string | undefined;
  readonly lastPoll?: PollStatus | undefined;
  /** For a host that asked to be left alone. */
  readonly waiting?: DataImportCronStatus['waiting'] | undefined;
  readonly handledRetryToken?: string | undefined;
  readonly counts: CronCounts;
  readonly retention?: CronRetention | undefined;
  readonly deleted?: DataImportCronStatus['deleted'] | undefined;
  readonly conditions: readonly WantedCondition[];
  /** What this step is worth telling; never kept. */
  readonly notes?: readonly Note[];
}

export interface CronResource extends Resource<CronState> {
  readonly object: DataImportCron;
  readonly namespace: string;
  readonly faults: readonly Fault[];
  /** `undefined` only where `faults` says why. */
  readonly source: CronSource | undefined;
  readonly dataSource: string;
  /** The digest to import; empty while nobody knows. */
  readonly digest: string;
  /** Names the version of that digest may have; none while there is no digest that can name one. */
  readonly targets: readonly string[];
  readonly keep: number;
  readonly collects: boolean;
  /** Whether versions and data source stay when the cron goes. */
  readonly retains: boolean;
  readonly retryToken: string | undefined;
  /** Names of deleted versions that somebody wants back. */
  readonly wantedBack: readonly string[];
}

const wantedOf = ({ status }: DataImportCron): readonly WantedCondition[] =>
  (status?.conditions ?? []).map(({ lastTransitionTime: _at, lastHeartbeatTime: _seen, ...wanted }) => wanted);

const phaseOf = (conditions: readonly WantedCondition[]): CronState['phase'] => {
  const statusOf = (type: string) => conditions.find((condition) => condition.type === type);
  if (statusOf('UpToDate')?.status === 'True') return 'Ready';
  if (statusOf('Degraded')?.reason === 'ImportFailed') return 'Failed';
  return statusOf('Progressing')?.status === 'True' ? 'Importing' : 'Waiting';
};

const readState = (object: DataImportCron): CronState => {
  const { status = {} } = object;
  const conditions = wantedOf(object);
  const ready = conditions.find(({ type }) => type === 'Ready');
  const [current] = status.currentImports ?? [];
  return {
    phase: phaseOf(conditions),
    reason: ready?.reason ?? 'Pending',
    message: ready?.message ?? 'waiting to be processed',
    announced: status.announced,
    current: current && { name: current.DataVolumeName, digest: current.Digest, validator: current.Validator },
    offered: status.lastImportedPVC?.name,
    format: status.sourceFormat === 'snapshot' ? 'snapshot' : status.sourceFormat === 'pvc' ? 'pvc' : undefined,
    snapshotClass: status.snapshotClass,
    importedAt: status.lastImportTimestamp,
    nextPoll: status.nextExecutionTimestamp,
    lastPoll: status.lastPoll,
    waiting: status.waiting,
    handledRetryToken: status.retryHandled,
    counts: status.counts ?? {},
    retention: status.retention,
    deleted: status.deleted,
    conditions,
  };
};

const defaultKeep = 3;

const faultsOf = ({ spec }: DataImportCron): readonly Fault[] => {
  const source = readCronSource(spec);
  const schedule = spec.schedule === '' ? [] : faultOf(parseSchedule(spec.schedule), 'spec.schedule');
  return [...('faults' in source ? source.faults : []), ...schedule];
};

const targetsOf = ({ spec, status }: DataImportCron, digest: string): readonly string[] => {
  const short = shortDigest(digest);
  if ('problem' in short) return [];
  const [current] = status?.currentImports ?? [];
  const before = (current?.Validator ?? current?.Digest) === digest ? [current?.DataVolumeName ?? ''] : [];
  return [...new Set([...before, versionName(spec.managedDataSource, short.value)])];
};

export const readCron = (object: DataImportCron): CronResource => {
  const { metadata, spec } = object;
  const source = readCronSource(spec);
  const digest = metadata.annotations?.[cdiAnnotations.desiredDigest] ?? '';
  return {
    ...readResource(object),
    state: readState(object),
    object,
    namespace: metadata.namespace ?? '',
    faults: faultsOf(object),
    source: 'value' in source ? source.value : undefined,
    dataSource: spec.managedDataSource,
    digest,
    targets: targetsOf(object, digest),
    keep: Math.max(1, spec.importsToKeep ?? defaultKeep),
    collects: spec.garbageCollect !== 'Never' && spec.garbageCollectOutdated !== false,
    retains: spec.retentionPolicy !== 'None',
    retryToken: metadata.annotations?.[annotations.retry],
    wantedBack: (metadata.annotations?.[annotations.undelete] ?? '')
      .split(',')
      .map((name) => name.trim())
      .filter((name) => name !== ''),
  };
};

/** The newest version that is known is in use. */
export const isUpToDate = ({ status }: DataImportCron): boolean =>
  status?.conditions?.some((one) => one.type === 'UpToDate' && one.status === 'True') === true;

export const isRetryWanted = ({ retryToken, state }: CronResource): boolean =>
  retryToken !== undefined && retryToken !== state.handledRetryToken;
