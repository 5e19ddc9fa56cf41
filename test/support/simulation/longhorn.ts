// Longhorn, as far as it affects images, on the simulation's clock: copies that make progress, fail, and become ready one after the other; a
// finalizer that is removed last.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type BackingImage, type BackingImageCopy, backingImages } from '#shared/api/foreign/longhorn.ts';
import { labels } from '#shared/api/names.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { AttemptScript } from '#test/support/simulation/attempts.ts';

export interface LonghornOptions {
  readonly kube: MemoryKube;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** `attempt` counts from 1 for each image. */
  readonly attempt: (mode: 'import', attempt: number) => AttemptScript;
  /** Requests another step at that time. */
  readonly later: (at: number) => void;
}

export interface SimulatedLonghorn {
  step(): void;
  /** Started backing images, by the UID of their image: each is one transfer of the same bytes. */
  readonly begun: ReadonlyMap<string, number>;
}

const startMs = 1000;
const progressMs = 3000;
const handOverMs = 500;
const spreadMs = 2000;

export const createLonghorn = ({ kube, now, attempt, later }: LonghornOptions): SimulatedLonghorn => {
  const begun = new Map<string, number>();
  const scripts = new Map<string, AttemptScript>();

  const scriptOf = ({ metadata }: BackingImage): AttemptScript => {
    const known = scripts.get(metadata.uid!);
    if (known !== undefined) return known;
    const owner = metadata.labels?.[labels.ownerUid] ?? '';
    const count = (begun.get(owner) ?? 0) + 1;
    begun.set(owner, count);
    const script = attempt('import', count);
    scripts.set(metadata.uid!, script);
    return script;
  };

  const isInUse = ({ metadata }: BackingImage): boolean =>
    kube
      .all(persistentVolumeClaims)
      .some(({ spec }) => spec.storageClassName === metadata.name.replace(/^vmi-/, 'lh-'));

  const remove = (image: BackingImage): void => {
    if (isInUse(image)) return;
    kube.edit(backingImages, image.metadata, (edited) => void (edited.metadata.finalizers = []));
  };

  const step = (image: BackingImage): void => {
    if (image.metadata.deletionTimestamp !== undefined) return remove(image);
    const script = scriptOf(image);
    const begin = Date.parse(image.metadata.creationTimestamp!) + startMs;
    const { at, copies, facts = {} } = stateAt(script, begin, now());
    if (at !== undefined) later(at);
    if (JSON.stringify(image.status?.diskFileStatusMap) === JSON.stringify(copies)) return;
    kube.edit(backingImages, image.metadata, (edited) => {
      edited.status = { ...edited.status, ...facts, diskFileStatusMap: copies };
    });
  };

  return {
    begun,
    step: () => {
      for (const image of kube.all(backingImages)) step(image);
    },
  };
};

interface Moment {
  /** Time of the next change. */
  readonly at?: number;
  readonly copies: Record<string, BackingImageCopy>;
  readonly facts?: Partial<NonNullable<BackingImage['status']>>;
}

const done = { size: 1000, virtualSize: 2 ** 30, uuid: 'uuid' };

const stateAt = (script: AttemptScript, begin: number, time: number): Moment => {
  if (time < begin || script.unschedulable === true) return { at: begin, copies: { a: { state: 'pending' } } };
  const elapsed = time - begin;
  if (script.end === 'never' || elapsed < script.runMs) {
    const steps = Math.floor(elapsed / progressMs);
    const progress = Math.min(99, Math.floor((steps * progressMs * 100) / script.runMs));
    const at = Math.min(begin + (steps + 1) * progressMs, begin + script.runMs);
    return { ...(script.end === 'never' ? {} : { at }), copies: { a: { state: 'in-progress', progress } } };
  }
  if (script.end === 'killed')
    return { copies: { a: { state: 'failed', message: 'the data source was interrupted' } } };
  if (script.end.outcome === 'failed') return { copies: { a: { state: 'failed', message: script.end.message } } };
  return finishing(begin + script.runMs, time);
};

const finishing = (end: number, time: number): Moment => {
  const ready = { state: 'ready', progress: 100 };
  if (time < end + handOverMs) {
    return { at: end + handOverMs, copies: { a: { state: 'ready-for-transfer', progress: 100 } } };
  }
  return time < end + handOverMs + spreadMs
    ? { at: end + handOverMs + spreadMs, copies: { a: ready, b: { state: 'in-progress', progress: 50 } }, facts: done }
    : { copies: { a: ready, b: ready }, facts: done };
};
