// Combined state of the copies of a backing image, one on each disk: usable, failed, or in progress. Pure.
import type { BackingImage, BackingImageCopy } from '#shared/api/foreign/longhorn.ts';

export type Copies =
  /** One ready copy is enough: Longhorn makes the others from it. */
  | { readonly is: 'ready' }
  /** No remaining copy can become usable. */
  | { readonly is: 'failed'; readonly message: string; readonly time?: string | undefined }
  | { readonly is: 'running'; readonly step: CopyStep; readonly percent: number; readonly message: string };

/** State of the most advanced copy. */
export type CopyStep = 'waiting' | 'moving' | 'handing-over' | 'unknown';

const failedStates = ['failed', 'failed-and-cleanup'];

/** Most advanced first. */
const steps = [
  ['ready-for-transfer', 'handing-over'],
  ['in-progress', 'moving'],
  ['starting', 'waiting'],
  ['pending', 'waiting'],
] as const;

const isFailed = ({ state = '' }: BackingImageCopy): boolean => failedStates.includes(state);

export const foldCopies = ({ status }: BackingImage): Copies => {
  const copies = Object.values(status?.diskFileStatusMap ?? {});
  if (copies.some(({ state }) => state === 'ready')) return { is: 'ready' };
  if (copies.length > 0 && copies.every(isFailed)) return failureOf(copies);
  const found = steps.find(([state]) => copies.some((copy) => copy.state === state));
  const step = found?.[1] ?? (copies.length === 0 ? 'waiting' : 'unknown');
  const percent = Math.max(0, ...copies.map(({ progress = 0 }) => progress));
  return { is: 'running', step, percent: Math.min(99, percent), message: messageIn(copies) };
};

const messageIn = (copies: readonly BackingImageCopy[]): string => copies.find(({ message }) => message)?.message ?? '';

const failureOf = (copies: readonly BackingImageCopy[]): Copies => {
  const [first] = copies.toSorted((a, b) => timeOf(b).localeCompare(timeOf(a)));
  return {
    is: 'failed',
    message: messageIn(copies) || 'Longhorn reports no reason',
    time: first?.lastStateTransitionTime,
  };
};

const timeOf = ({ lastStateTransitionTime = '' }: BackingImageCopy): string => lastStateTransitionTime;
