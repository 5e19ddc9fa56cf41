// Reads only what the next step of a volume depends on. A Job is read before the claim it fills, because it is created after it.
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  persistentVolumes,
} from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readRestored } from '#shared/populate/clone/restoring.ts';
import { recordOf } from '#shared/populate/clone/strategy.ts';
import { isRetryDue } from '#shared/populate/filled.ts';
import { isFinished, readTransfer } from '#shared/populate/job/attempts.ts';
import { readSpool } from '#shared/populate/job/spooling.ts';
import { populationOf } from '#shared/populate/population.ts';
import { readClass, readMarked, readOwn, readReaders, readWorkers } from '#shared/populate/reading.ts';
import { readSingleflight } from '#shared/populate/singleflight/read.ts';
import type { ObservedSingleflight } from '#shared/populate/singleflight/singleflight.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';
import { needsBinder } from '#shared/populate/volume/binding.ts';
import { readForClaim, readJob, readSourceSnapshot, readWarnings } from '#shared/populate/volume/check-source.ts';
import { mayLieElsewhere, readStage } from '#shared/populate/volume/elsewhere-observed.ts';
import { type ObservedVolume, type SourceReaders, mayBe, nothing } from '#shared/populate/volume/observed.ts';
import { handoverTo, isPrimed, primeName } from '#shared/populate/volume/prime.ts';
import { isDirty } from '#shared/populate/volume/removal.ts';
import { mayBeKept, readRetainedCopy } from '#shared/populate/volume/retained-copy.ts';
import { isSnapshotLast, readSnapshot, readSnapshotting } from '#shared/populate/volume/snapshotting.ts';
import { isHeldBack, isLeft, isWhole, wasFilled } from '#shared/populate/volume/state.ts';
import { type Volume, bytesOf, contentOfVolume } from '#shared/populate/volume/volume.ts';
import { isDeepStrictEqual } from 'node:util';

export const checkVolume = async (
  kube: KubeClient,
  volume: Volume,
  readers: SourceReaders,
): Promise<ObservedVolume> => {
  if (volume.state.phase !== 'Available' && isRetryDue(volume)) return readForRestart(kube, volume, readers);
  if (volume.state.phase === 'Failed') return readFailed(kube, volume);
  if (wasFilled(volume)) return readFilled(kube, volume);
  if (!mayBeMade(volume)) return readForClaim(kube, volume, readers);
  const {
    own: job,
    foreign: [taken],
  } = await readJob(kube, volume, 'import');
  const {
    own: claim,
    foreign: [foreign],
  } = await readClaim(kube, volume);
  const observed = { ...nothing, job, claim, foreign, taken, spool: await readSpoolOf(kube, volume) };
  if (claim !== undefined) return { ...observed, ...(await readWithClaim(kube, volume, { claim, job })) };
  return job === undefined ? { ...observed, ...(await readForClaim(kube, volume, readers)) } : observed;
};

/** A late pass may have started again what failed. */
const readFailed = async (kube: KubeClient, volume: Volume): Promise<ObservedVolume> => ({
  ...nothing,
  job: (await readJob(kube, volume, 'import')).own,
  spool: await readSpoolOf(kube, volume),
});

/** Whether its claim may exist. A claim that another client creates is read each time. */
const mayBeMade = (volume: Volume): boolean => {
  const { adopts, fills, comesFilled } = volume.claim;
  const isOthers = adopts !== undefined || fills !== undefined || comesFilled === true;
  return isOthers || mayBe(volume, volume.state.children?.volume);
};

export const readChildren = async (kube: KubeClient, volume: Volume): Promise<ObservedVolume> => {
  const [inspect, fill, readers] = [
    await readJob(kube, volume, 'inspect'),
    await readJob(kube, volume, 'import'),
    await readReaders(kube, volume.ref),
  ];
  const [snapshot, sourceSnapshot] = [await readSnapshot(kube, volume), await readSourceSnapshot(kube, volume)];
  const { own: claim, foreign } = await readClaim(kube, volume);
  return {
    ...(await readPrime(kube, volume, claim)),
    inspectJob: inspect.own,
    job: fill.own,
    readers,
    ...snapshot,
    sourceSnapshot,
    claim,
    foreign: foreign[0],
    spool: await readSpoolOf(kube, volume),
    restored: claim === undefined ? undefined : await readRestored(kube, volume.ref, claim),
    pods: await readWorkers(kube, volume.ref),
  };
};

/** A restart continues with its first step at once if nothing is left. */
const readForRestart = async (kube: KubeClient, volume: Volume, readers: SourceReaders): Promise<ObservedVolume> => {
  const children = await readChildren(kube, volume);
  if (children.claim !== undefined && populationOf(children.claim) !== undefined)
    return { ...children, ...(await readSnapshotting(kube, volume, children.claim)) };
  const stage = mayLieElsewhere(volume) ? await readStage(kube, volume) : undefined;
  const observed = { ...children, stage };
  if (isDirty(volume, observed) || children.claim !== undefined) return observed;
  return { ...observed, ...(await readForClaim(kube, volume, readers)) };
};

/** What its original controller left has a snapshot, too. */
const readLeft = async (kube: KubeClient, volume: Volume, observed: ObservedVolume): Promise<ObservedVolume> =>
  isLeft(volume, observed.foreign) ? { ...observed, ...(await readSnapshot(kube, volume)) } : observed;

/** Its bytes were complete: only the claim and its snapshot matter. */
const readFilled = async (kube: KubeClient, volume: Volume): Promise<ObservedVolume> => {
  const { snapshot } = isSnapshotLast(volume) ? await readSnapshot(kube, volume) : {};
  if (snapshot?.status?.readyToUse === true && !isLeaving(snapshot)) return { ...nothing, completed: snapshot };
  const { own: claim, foreign } = await readClaim(kube, volume);
  const observed = { ...nothing, claim, foreign: foreign[0] };
  if (claim === undefined) return readLeft(kube, volume, observed);
  const isLookedFor = volume.trustsStatus !== true || !isWhole(claim);
  const { own: job } = isLookedFor ? await readJob(kube, volume, 'import') : {};
  if (!isWhole(claim)) return { ...observed, job };
  // A late pass may have restarted what was done.
  const left = isLookedFor
    ? { job, sourceSnapshot: await readSourceSnapshot(kube, volume), ...(await readPrime(kube, volume, claim)) }
    : {};
  const workers = job === undefined ? [] : await readWorkers(kube, volume.ref);
  return { ...observed, ...left, pods: workers, ...(await readSnapshotting(kube, volume, claim)) };
};

type Filling = Pick<ObservedVolume, 'job'> & { readonly claim: PersistentVolumeClaim };

const readWithClaim = async (
  kube: KubeClient,
  volume: Volume,
  { claim: read, job }: Filling,
): Promise<Partial<ObservedVolume>> => {
  const workers = job === undefined ? [] : await readWorkers(kube, volume.ref);
  const claim = await readMarked(kube, volume.ref, { claim: read, job, workers });
  const isFetched = job !== undefined && readTransfer(job, workers, 0).is === 'succeeded';
  const observed = {
    claim,
    pods: workers,
    sourceSnapshot: await readSourceSnapshot(kube, volume),
    ...(await readPrime(kube, volume, claim, isFetched)),
  };
  if (populationOf(claim) !== undefined) return { ...observed, ...(await readSnapshotting(kube, volume, claim)) };
  const around = { ...observed, restored: await readRestored(kube, volume.ref, claim) };
  if (job === undefined) return { ...around, ...(await readWithoutJob(kube, volume, around)) };
  return isFetched
    ? { ...around, ...(await readFetched(kube, volume, claim)) }
    : { ...around, warnings: await readWarnings(kube, volume, [claim, job, ...workers]) };
};

/** Its Job is done: reads the retained copy for others, and the snapshot. */
const readFetched = async (
  kube: KubeClient,
  volume: Volume,
  claim: PersistentVolumeClaim,
): Promise<Partial<ObservedVolume>> => {
  const snapshotting = await readSnapshotting(kube, volume, claim);
  if (!mayBeKept(volume) || recordOf(claim) !== undefined) return snapshotting;
  const storageClass = await readClass(kube, claim.spec.storageClassName);
  const retainedCopy = await readRetainedCopy(kube, volume, storageClass);
  const isCopied = retainedCopy?.is === 'copy' && retainedCopy.job !== undefined && isFinished(retainedCopy.job);
  // Its Job was read after the pods of this pass, and may have ended between.
  const reported = isCopied ? { pods: await readWorkers(kube, volume.ref) } : {};
  return { storageClass, retainedCopy, ...reported, ...snapshotting };
};

/** Filled by its storage, or not started: its class decides how. */
const readWithoutJob = async (
  kube: KubeClient,
  volume: Volume,
  { claim, prime }: Pick<ObservedVolume, 'prime'> & { readonly claim: PersistentVolumeClaim },
): Promise<Partial<ObservedVolume>> => {
  const storageClass = await readClass(kube, claim.spec.storageClassName);
  const binder = needsBinder(volume, claim, storageClass) ? await readJob(kube, volume, 'inspect') : undefined;
  const isCopied = claim.status?.phase === 'Bound' && (recordOf(claim)?.strategy ?? 'copy') !== 'copy';
  return {
    storageClass,
    inspectJob: binder?.own,
    warnings: await readWarnings(kube, volume, [prime ?? claim]),
    handed: await readHanded(kube, claim),
    ...(await readLate(kube, volume, { claim, place: prime ?? claim, storageClass })),
    ...(isCopied ? await readSnapshotting(kube, volume, claim) : {}),
  };
};

const readHanded = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<PersistentVolume | undefined> => {
  const name = recordOf(claim)?.volume;
  return name === undefined ? undefined : kube.get(persistentVolumes, { name });
};

/** Nothing for a claim that gets its volume from nowhere else. */
const readPrime = async (
  kube: KubeClient,
  { ref }: Volume,
  claim: PersistentVolumeClaim | undefined,
  isFetched = false,
): Promise<Pick<ObservedVolume, 'prime' | 'primeVolume'>> => {
  if (claim === undefined || !isPrimed(claim)) return {};
  const { own: prime } = await readOwn(kube, persistentVolumeClaims, ref, primeName(ref));
  const name = handoverTo(claim)?.volume ?? (isFetched ? prime?.spec.volumeName : undefined);
  const isMoving = name !== undefined && claim.status?.phase !== 'Bound';
  return { prime, ...(isMoving ? { primeVolume: await kube.get(persistentVolumes, { name }) } : {}) };
};

const readClaim = (kube: KubeClient, { ref, claim }: Volume) => readOwn(kube, persistentVolumeClaims, ref, claim.name);

const readSpoolOf = (kube: KubeClient, volume: Volume) => readSpool(kube, { ref: volume.ref, source: bytesOf(volume) });

// Reads other volumes with the bytes of a volume whose place its consumer chose, once that place is known, and which of them can be reached
// from there.

interface Placed {
  readonly claim: PersistentVolumeClaim;
  /** The claim that the Job writes to. */
  readonly place: PersistentVolumeClaim;
  readonly storageClass: StorageClass | undefined;
}

/** Nothing for a volume that still waits for its consumer, or never did. */
const readLate = async (
  kube: KubeClient,
  volume: Volume,
  { claim, place, storageClass }: Placed,
): Promise<{ readonly singleflight?: ObservedSingleflight; readonly outOfReach?: ReadonlySet<string> }> => {
  const content = contentOfVolume(volume);
  const isDecided = place.status?.phase !== 'Bound' || recordOf(claim) !== undefined;
  if (content === undefined || isDecided || storageClass === undefined || !isHeldBack(volume, storageClass)) return {};
  const singleflight = await readSingleflight(kube, volume.ref, { content, className: storageClass.metadata.name });
  const claims = singleflight.kept.flatMap(({ claim: kept }) => kept ?? []);
  return { singleflight, outOfReach: await readOutOfReach(kube, place, claims) };
};

/** Nodes that can reach a volume; `undefined`: all of them. */
const readReach = async (kube: KubeClient, { spec }: PersistentVolumeClaim): Promise<unknown> => {
  const name = spec.volumeName ?? '';
  return name === '' ? undefined : (await kube.get(persistentVolumes, { name }))?.spec.nodeAffinity;
};

/** A pod that copies needs both volumes on one node. */
const readOutOfReach = async (
  kube: KubeClient,
  own: PersistentVolumeClaim,
  others: readonly PersistentVolumeClaim[],
): Promise<ReadonlySet<string>> => {
  if (others.length === 0) return new Set();
  const here = await readReach(kube, own);
  const far = await Promise.all(
    others.map(async (other) => {
      const there = await readReach(kube, other);
      return here === undefined || there === undefined || isDeepStrictEqual(here, there) ? [] : [other.metadata.name];
    }),
  );
  return new Set(far.flat());
};
