// The rest of a cluster, as far as it affects images: Job controller, kubelet, provisioner, snapshotter, garbage collector. Each `step` does
// only what is due now, so that a simulation controls the timing.
import { jobs, persistentVolumeClaims, persistentVolumes, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createJobController } from '#test/support/simulation/jobs.ts';
import { type SimulatedLonghorn, createLonghorn } from '#test/support/simulation/longhorn.ts';
import type { ClusterRecord, VolumeContent } from '#test/support/simulation/record.ts';
import {
  type SnapshotOptions,
  stepPersistentVolume,
  stepSnapshot,
  stepVolume,
} from '#test/support/simulation/storage.ts';
import { type WorkerOptions, createWorkers } from '#test/support/simulation/workers.ts';

export interface ClusterOptions extends WorkerOptions, SnapshotOptions {
  readonly kube: MemoryKube;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Claims are bound to persistent volumes, which are reclaimed. Default: claims alone are modelled. */
  readonly hasVolumes?: boolean | undefined;
}

export interface SimulatedCluster {
  /** Does what is due now; returns whether anything changed. */
  step(): boolean;
  /** Milliseconds since the epoch of the next due action. */
  nextWake(): number;
  /** By claim UID. */
  readonly contents: ReadonlyMap<string, VolumeContent>;
  /** Transfers that started on a volume that was already filled. */
  readonly overwrites: readonly string[];
  readonly longhorn: SimulatedLonghorn;
  /** Content of the object store, by UID of the export. */
  readonly store: { readonly parts: ReadonlySet<string>; readonly objects: ReadonlyMap<string, VolumeContent> };
}

export const createCluster = ({ kube, now, hasVolumes = false, ...options }: ClusterOptions): SimulatedCluster => {
  let changed = false;
  let wakes: number[] = [];
  kube.onChange(() => (changed = true));
  const record: ClusterRecord = {
    kube,
    now,
    later: (at) => void (at > now() && wakes.push(at)),
    contents: new Map(),
    volumes: hasVolumes ? new Map() : undefined,
    snapshotContents: new Map(),
    overwrites: [],
    store: { parts: new Set(), objects: new Map() },
  };
  const stepJob = createJobController(record);
  const stepPod = createWorkers(record, options);
  const longhorn = createLonghorn({ ...record, attempt: options.attempt });
  const { contents, overwrites, store } = record;
  return {
    contents,
    overwrites,
    longhorn,
    store,
    step: () => {
      changed = false;
      wakes = [];
      for (const job of kube.all(jobs)) stepJob(job);
      for (const pod of kube.all(pods)) stepPod(pod);
      for (const claim of kube.all(persistentVolumeClaims)) stepVolume(record, claim);
      for (const volume of kube.all(persistentVolumes)) stepPersistentVolume(record, volume);
      for (const snapshot of kube.all(volumeSnapshots)) stepSnapshot(record, snapshot, options);
      longhorn.step();
      kube.collectGarbage();
      return changed;
    },
    nextWake: () => Math.min(Infinity, ...wakes),
  };
};
