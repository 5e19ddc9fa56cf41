// What a tick knows from those before it, in the memory of its process: what was not settled, when the next poll is due, and whether anything has moved.
// It only spares requests: a process without it begins with a sweep, and so does one whose last tick failed.
import { type Job, kubeEvents } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ObjectRef, type ResourceType, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import type { Reconciler } from '#shared/resources/reconciler.ts';

/** More objects of a kind are found faster by a listing of the kind. */
export const mostRemembered = 50;

/** By kind: objects that were not settled when they were read. */
export type Unsettled = ReadonlyMap<Reconciler, readonly ObjectRef[]>;

export interface Agenda {
  /** Milliseconds since the epoch: when the last sweep began, and how long it took. */
  readonly sweptAt: number;
  readonly tookMs: number;
  /** Of Jobs and news before it. */
  readonly fingerprint: string;
  readonly unsettled: Unsettled;
  /** Milliseconds since the epoch; no cron is due before. */
  readonly nextPoll: number;
  /** Something was written or has come to rest since, which may be work for a sweep. */
  readonly isMoved: boolean;
}

/** Stays the same while Jobs only run, and nothing else happens. */
export const fingerprintOf = (jobs: readonly Job[], news: number): string =>
  [news, ...jobs.map((job) => `${job.metadata.uid} ${isFinished(job)}`).sort()].join();

/** A sweep takes at most this share of the time when something moves all the time: its cost grows with what is there. */
const shareOfSweeps = 1 / 20;

export interface Moment {
  readonly now: number;
  readonly fingerprint: string;
  /** Milliseconds between two sweeps at rest. */
  readonly sweepMs: number;
}

/** Pure. */
export const isSweepDue = (agenda: Agenda, { now, fingerprint, sweepMs }: Moment): boolean => {
  const since = now - agenda.sweptAt;
  // The clock may have been put back.
  if (since < 0 || since >= sweepMs) return true;
  return (agenda.isMoved || fingerprint !== agenda.fingerprint) && since * shareOfSweeps >= agenda.tookMs;
};

export interface UnsettledNotes {
  readonly add: (reconciler: Reconciler, object: KubeObject) => void;
  readonly all: () => Unsettled;
}

export const createUnsettledNotes = (): UnsettledNotes => {
  const found = new Map<Reconciler, ObjectRef[]>();
  return {
    add: (reconciler, object) => {
      const refs = found.get(reconciler) ?? [];
      found.set(reconciler, refs);
      if (refs.length <= mostRemembered) refs.push(refOf(object));
    },
    all: () => found,
  };
};

/** Whether something that was not settled is now, or is gone. */
export const hasSettled = (before: Unsettled, after: Unsettled): boolean =>
  [...before].some(([reconciler, refs]) => (after.get(reconciler)?.length ?? 0) < refs.length);

/** A client that reports writes, whatever becomes of them. Events are no work for anybody. */
export const reportWrites = (kube: KubeClient, onWrite: () => void): KubeClient => {
  const note = ({ plural }: Pick<ResourceType, 'plural'>): void => {
    if (plural !== kubeEvents.plural) onWrite();
  };
  return {
    ...kube,
    create: (type, ...given) => (note(type), kube.create(type, ...given)),
    replace: (type, ...given) => (note(type), kube.replace(type, ...given)),
    mergePatch: (type, ...given) => (note(type), kube.mergePatch(type, ...given)),
    jsonPatch: (type, ...given) => (note(type), kube.jsonPatch(type, ...given)),
    apply: (type, ...given) => (note(type), kube.apply(type, ...given)),
    delete: (type, ...given) => (note(type), kube.delete(type, ...given)),
  };
};
