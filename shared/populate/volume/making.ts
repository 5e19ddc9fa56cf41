// The claim of a volume, and the step that creates it together with the Job that fills it. Called by the plans of this folder.
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import {
  type PersistentVolumeClaim,
  type StorageClass,
  type TypedLocalReference,
  type VolumeMode,
  jobs,
  persistentVolumeClaims,
  type Job,
} from '#shared/api/foreign/core.ts';
import { type Action, create, ensure, type Plan, type PlanContext } from '#shared/populate/actions.ts';
import { withJob } from '#shared/populate/job/inspecting.ts';
import { keepSpool } from '#shared/populate/job/spooling.ts';
import { waitingState } from '#shared/populate/state.ts';
import {
  type ClaimProfile,
  claimProfileOf,
  claimSetsOf,
  completeClaim,
  leastBytesOf,
  namedSnapshotClass,
  noModesMessage,
} from '#shared/populate/storage/profile.ts';
import { volumeBytesFor, diskBytesIn } from '#shared/populate/population.ts';
import {
  buildVolume,
  contentLabel,
  holdsFiles,
  inspectedOf,
  requestedBytes,
  volumeModeOf,
} from '#shared/populate/population.ts';
import { type CloneRecord, recordAnnotation, recordOf } from '#shared/populate/clone/strategy.ts';
import { primesOf } from '#shared/populate/volume/prime.ts';
import { isHeldBack, restForConsumer } from '#shared/populate/volume/state.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { type TransferRequest, buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { annotations } from '#shared/api/names.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

interface Class {
  readonly storageClass?: StorageClass | undefined;
  /** The profile of the class; read for claims that are completed from it. */
  readonly profile?: StorageProfile | undefined;
}

/** `undefined`: the class does not define modes that the claim leaves open. */
const profiledModes = (
  { claim }: Volume,
  { storageClass, profile }: Class,
  preferred: Partial<ClaimProfile>,
): ClaimProfile | undefined => {
  const sets = claimSetsOf(storageClass, profile);
  const volumeMode = claim.volumeMode ?? preferred.volumeMode;
  // If the modes of a class are unknown, a copy can use those of its source.
  const accessModes = claim.accessModes ?? (sets.length === 0 ? preferred.accessModes : undefined);
  return completeClaim(sets, {
    ...(volumeMode === undefined ? {} : { volumeMode }),
    ...(accessModes === undefined ? {} : { accessModes }),
  });
};

/** `preferred`: the modes of the source, if there is one. */
export const modesFor = (volume: Volume, described: Class, preferred: Partial<ClaimProfile> = {}): ClaimProfile => {
  const { claim } = volume;
  if (claim.role === 'volume') {
    const { volumeMode, accessModes } = claimProfileOf(described.storageClass, described.profile?.spec);
    return { volumeMode: claim.volumeMode ?? volumeMode, accessModes: claim.accessModes ?? accessModes };
  }
  const profiled = claim.isProfiled === true ? profiledModes(volume, described, preferred) : undefined;
  if (profiled !== undefined) return profiled;
  const usual = claimProfileOf(described.storageClass);
  return {
    volumeMode: claim.volumeMode ?? preferred.volumeMode ?? usual.volumeMode,
    accessModes: claim.accessModes ?? preferred.accessModes ?? usual.accessModes,
  };
};

/** Why the claim cannot be created until its class defines more; `undefined`: it can. */
export const openModes = (
  volume: Volume,
  described: Class & { readonly storageClass: StorageClass },
  preferred: Partial<ClaimProfile> = {},
): string | undefined => {
  const isOpen = volume.claim.isProfiled === true && profiledModes(volume, described, preferred) === undefined;
  return isOpen ? noModesMessage(described.storageClass, volume.claim.volumeMode) : undefined;
};

/** Drivers reject a size below their minimum, or round it up; the size they would provision is requested. */
export const atLeast = (bytes: number, { claim }: Volume, { storageClass, profile }: Class): number =>
  claim.isProfiled === true || (claim.role === 'volume' && claim.bytes === undefined)
    ? Math.max(bytes, leastBytesOf(storageClass, profile))
    : bytes;

/** Bytes of the claim, if known from the user or an inspection. */
export const bytesFor = ({ claim }: Volume, mode: VolumeMode, { settings }: PlanContext): number | undefined =>
  claim.bytes ??
  (claim.diskBytes === undefined ? undefined : volumeBytesFor(claim.diskBytes, mode, settings.filesystemOverhead));

/** Recorded while it is known, so that the profile need not be read again once the volume is filled. */
const snapshotMark = ({ snapshot }: Volume, profile: StorageProfile | undefined): Readonly<Record<string, string>> => {
  if (snapshot === undefined || snapshot.className !== undefined) return {};
  const named = namedSnapshotClass(profile);
  return named === undefined ? {} : { [annotations.snapshotClass]: named };
};

/** Status may be lost before it is written. */
const fetchMark = (reason: string | undefined): Readonly<Record<string, string>> =>
  reason === undefined ? {} : { [annotations.fetchReason]: reason };

interface Shape {
  /** `undefined` while there is none. */
  readonly className: string | undefined;
  readonly volumeMode: VolumeMode;
  readonly accessModes: NonNullable<PersistentVolumeClaim['spec']['accessModes']>;
  readonly bytes: number;
  /** The label of its content, by which other volumes find it. */
  readonly content?: string | undefined;
  readonly record?: CloneRecord;
  readonly dataSource?: TypedLocalReference | undefined;
  /** What fills it, if no storage does. */
  readonly filledBy?: TypedLocalReference | undefined;
  /** A persistent volume that is reserved for it. */
  readonly volumeName?: string;
  /** The inspection that determined its size. Default: the user requested a size. */
  readonly inspected?: Inspection | undefined;
  /** The profile of its class. */
  readonly profile?: StorageProfile | undefined;
}

export const buildClaim = (volume: Volume, shape: Shape): PersistentVolumeClaim => {
  const { ref, claim } = volume;
  const built = buildVolume({
    owner: ref,
    role: claim.role ?? 'disk',
    name: claim.name,
    storageClassName: shape.className,
    volumeMode: shape.volumeMode,
    accessModes: shape.accessModes,
    bytes: shape.bytes,
    inspected: shape.inspected,
    annotations: {
      ...claim.annotations,
      ...snapshotMark(volume, shape.profile),
      ...fetchMark(volume.state.fetchReason),
      ...(shape.record === undefined ? {} : recordAnnotation(shape.record)),
    },
  });
  return {
    ...built,
    metadata: {
      ...built.metadata,
      labels: {
        ...claim.labels,
        ...(shape.volumeMode === 'Filesystem' ? claim.fileSystemLabels : {}),
        ...built.metadata.labels,
        ...contentLabel(shape.content),
      },
    },
    spec: {
      ...built.spec,
      ...(shape.dataSource === undefined ? {} : { dataSource: shape.dataSource }),
      ...(shape.filledBy === undefined ? {} : { dataSourceRef: shape.filledBy }),
      ...(shape.volumeName === undefined ? {} : { volumeName: shape.volumeName }),
    },
  };
};

interface Made {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass;
  readonly record?: CloneRecord;
  /** The observed spool, if an upload is to fill the claim. */
  readonly spool?: PersistentVolumeClaim | undefined;
  /** The reported reason, for a copy. */
  readonly copying?: { readonly reason: string; readonly message: string } | undefined;
}

const starting = { phase: 'Pending', reason: 'Starting', message: 'the transfer is being started' } as const;

export const makeClaim = (volume: Volume, made: Made, context: PlanContext): Plan => {
  const { claim, storageClass, record, spool, copying } = made;
  const isFilledByJob = record === undefined || record.strategy === 'copy';
  const isFilledNow = isFilledByJob && !isHeldBack(volume, storageClass);
  const prime = isFilledNow ? primesOf(volume, claim) : [];
  const job = isFilledNow ? buildFillJob(volume, claim, context.settings, prime[0]) : undefined;
  const kept = keepSpoolOf(volume, { spool, target: claim }, context);
  const actions: readonly Action[] = [
    create(persistentVolumeClaims, claim),
    ...prime.map((second) => ensure(persistentVolumeClaims, second)),
    ...(job === undefined ? [] : [...kept, create(jobs, job)]),
  ];
  const next = {
    ...withJob(volume.state, { volume: claim.metadata.name, ...(job === undefined ? {} : { job: job.metadata.name }) }),
    storageClassName: storageClass.metadata.name,
    clone: record === undefined ? undefined : { strategy: record.strategy, because: record.because },
  };
  // There is no event about a claim that stays as it was created.
  const isLate = storageClass.volumeBindingMode === 'WaitForFirstConsumer' && volume.isBoundAtOnce !== true;
  const isForConsumer = job === undefined && isLate;
  if (isForConsumer) return { ...restForConsumer({ ...volume, state: next }, claim), actions };
  const step = copying === undefined ? starting : ({ phase: 'Cloning', ...copying } as const);
  return { actions, state: waitingState(volume, next, step, context) };
};

// The Job that fills a volume: from another claim, or from a source of bytes.

/** A copied volume was verified when it was fetched. Volumes with faults in their spec never start a Job. */
const filledFrom = (
  { ref, source, checksum, faults }: Volume,
  claim: PersistentVolumeClaim,
): Pick<TransferRequest, 'source' | 'checksum' | 'expected'> => {
  const record = recordOf(claim);
  const { name: claimName, volumeMode } = record?.from ?? {};
  if (claimName !== undefined && volumeMode !== undefined)
    return { source: { type: 'claim', claimName, volumeMode, holdsFiles: holdsFiles(record?.population) } };
  if (source?.type === 'transfer') return { source: source.from, checksum, expected: inspectedOf(claim) };
  throw new InvalidInput(`${ref.kind} ${ref.name} has no source of bytes`, faults);
};

/** The claim is filled with the files of an archive, or from a volume that holds such files. */
const isForFiles = (volume: Volume, claim: PersistentVolumeClaim): boolean =>
  volume.source?.type === 'transfer' ? volume.holdsFiles === true : holdsFiles(recordOf(claim)?.population);

/** Default: the source of bytes is inspected. */
export const buildLookJob = (volume: Volume, settings: PopulateSettings, at = bytesOf(volume)): Job => {
  const { ref, retries, pod } = volume;
  if (at === undefined) throw new InvalidInput(`${ref.kind} ${ref.name} has no source of bytes`);
  return buildTransferJob({ mode: 'inspect', owner: ref, source: at, retries, pod }, settings);
};

/** Keeps an upload until it is a disk. */
export const keepSpoolOf = (
  volume: Volume,
  spooled: Pick<Parameters<typeof keepSpool>[1], 'spool' | 'target'>,
  context: PlanContext,
): readonly Action[] =>
  keepSpool({ ref: volume.ref, source: bytesOf(volume) }, { ...spooled, fileBytes: volume.offered?.size }, context);

/** The guest's disk becomes as large as its volume permits. `target`: the claim it is written to, if not that of the disk. */
export const buildFillJob = (
  volume: Volume,
  claim: PersistentVolumeClaim,
  settings: PopulateSettings,
  target: PersistentVolumeClaim = claim,
): Job => {
  const volumeMode = volumeModeOf(claim);
  const capacityBytes = diskBytesIn(requestedBytes(claim), volumeMode, settings.filesystemOverhead);
  return buildTransferJob(
    {
      mode: 'import',
      owner: volume.ref,
      ...filledFrom(volume, claim),
      pod: volume.pod,
      retries: volume.retries,
      target: {
        claimName: target.metadata.name,
        volumeMode,
        capacityBytes,
        ...(isForFiles(volume, claim) ? { content: 'archive' as const } : {}),
        ...(volumeMode === 'Filesystem' && volume.claim.role !== 'volume' ? { diskBytes: capacityBytes } : {}),
        preallocated: volume.claim.preallocated !== undefined,
      },
    },
    settings,
  );
};
