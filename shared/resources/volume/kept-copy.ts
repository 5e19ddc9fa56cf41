// A copy of a fetched disk that is kept for those who wait for the same bytes, where no snapshot can be: a Job of ours makes it while nobody uses the
// disk yet. Called by retainedCopy.ts.
import {
  type Job,
  type Pod,
  type PersistentVolumeClaim,
  jobs,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type Action, create, patch, remove, removeJob } from '#shared/backends/actions.ts';
import type { Plan, PlanContext } from '#shared/backends/backend.ts';
import { holderOf } from '#shared/backends/singleflight/hold.ts';
import { readOwn } from '#shared/backends/reading.ts';
import { storageWaitingState } from '#shared/backends/state.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { readTransfer } from '#shared/populate/attempts.ts';
import { diskBytesIn } from '#shared/populate/sizing.ts';
import { buildTransferJob, transferJobName } from '#shared/populate/transfer-job.ts';
import {
  type Population,
  buildVolume,
  contentLabel,
  populatedPatch,
  requestedBytes,
  volumeModeOf,
} from '#shared/populate/volume.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

/** What is left to do for others before a disk is handed over: a step, or what goes with handing over. */
export type Keeping =
  | { readonly is: 'under way'; readonly plan: Plan }
  | { readonly is: 'over'; readonly actions: readonly Action[] };

export interface KeptCopy {
  readonly is: 'copy';
  /** That of the content. */
  readonly name: string;
  /** Whether somebody waits for what is fetched. */
  readonly isAwaited: boolean;
  readonly claim: PersistentVolumeClaim | undefined;
  readonly job: Job | undefined;
}

/** What was fetched. */
export interface Source {
  readonly claim: PersistentVolumeClaim;
  readonly population: Population;
}

export const readCopy = async (
  kube: KubeClient,
  { ref }: Volume,
  found: Pick<KeptCopy, 'name' | 'claim' | 'isAwaited'>,
): Promise<KeptCopy> => ({
  is: 'copy',
  ...found,
  job: (await readOwn(kube, jobs, ref, transferJobName('keep', ref))).own,
});

type Fetched = Source & { readonly pods: readonly Pod[] };

const give = (actions: readonly Action[]): Keeping => ({ is: 'over', actions });

/** What is left of one that comes to nothing. */
const leave = ({ claim, job }: KeptCopy): readonly Action[] => [
  ...removeJob(job),
  ...remove(persistentVolumeClaims, claim),
];

export const planCopy = (volume: Volume, kept: KeptCopy, fetched: Fetched, context: PlanContext): Keeping => {
  const { claim, job, isAwaited } = kept;
  if (claim === undefined && !isAwaited) return give(leave(kept));
  if (claim?.metadata.deletionTimestamp !== undefined) return give(leave(kept));
  const run = job === undefined ? undefined : readTransfer(job, fetched.pods, context.now);
  if (run?.is === 'failed') return give(leave(kept));
  return run?.is === 'succeeded' && claim !== undefined
    ? give([patch(persistentVolumeClaims, claim, populatedPatch(fetched.population, {}))])
    : planMaking(volume, kept, fetched, context);
};

const planMaking = (volume: Volume, kept: KeptCopy, fetched: Fetched, context: PlanContext): Keeping => {
  const { name, claim, job } = kept;
  const wait = {
    phase: 'Verifying',
    reason: 'KeepingContent',
    message: 'copying the disk for others that wait for the same bytes, before anybody writes to it',
    child: claim,
    isComplaining: false,
  } as const;
  const state = storageWaitingState(volume, volume.state, wait, context);
  if (state.phase === 'Failed') return give(leave(kept));
  const wanted = claim ?? buildCopy(volume, name, fetched.claim);
  const actions = [
    ...(claim === undefined ? [create(persistentVolumeClaims, wanted)] : []),
    ...(job === undefined ? [create(jobs, buildJob(volume, wanted, fetched.claim, context))] : []),
  ];
  return { is: 'under way', plan: { actions, state } };
};

/** As the disk is, but nobody's. */
const buildCopy = (
  { ref }: Volume,
  name: string,
  { spec, ...source }: PersistentVolumeClaim,
): PersistentVolumeClaim => {
  const built = buildVolume({
    owner: ref,
    role: 'kept',
    name,
    storageClassName: spec.storageClassName,
    volumeMode: volumeModeOf({ spec, ...source }),
    accessModes: spec.accessModes ?? [],
    bytes: requestedBytes({ spec, ...source }),
    annotations: {},
  });
  const { labels } = built.metadata;
  return {
    ...built,
    metadata: { ...built.metadata, labels: { ...labels, ...contentLabel(name) }, ownerReferences: [holderOf(ref)] },
  };
};

/** Its progress is nobody's: the disk is there. */
const buildJob = (
  { ref, retries, pod }: Volume,
  target: PersistentVolumeClaim,
  source: PersistentVolumeClaim,
  { settings }: PlanContext,
): Job => {
  const volumeMode = volumeModeOf(target);
  const capacityBytes = diskBytesIn(requestedBytes(target), volumeMode, settings.filesystemOverhead);
  return buildTransferJob(
    {
      mode: 'import',
      role: 'keep',
      owner: ref,
      source: { type: 'claim', claimName: source.metadata.name, volumeMode: volumeModeOf(source) },
      retries,
      pod,
      target: { claimName: target.metadata.name, volumeMode, capacityBytes },
    },
    { ...settings, eventSink: undefined },
  );
};
