// What is wrong with one object, from its own status: it failed, nothing has looked at it, or its deletion does not end. Pure.
import { type StatusCondition, findCondition } from '#shared/api/conditions.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { whyName } from '#cli/output.ts';
import { type Found, hasFailed, readyOf } from '#shared/catalogue/image.ts';
import { toSpan } from '#shared/runtime/age.ts';

/** Milliseconds in which a function must have written a status: one that starts from zero takes seconds, and each minute repairs lost events. */
const longestUnobserved = 3 * 60_000;
/** Milliseconds after which a deletion has not ended by itself. */
const longestDeletion = 10 * 60_000;

export interface Trouble {
  readonly is: 'failed' | 'unobserved' | 'deleting';
  /** `hypercloud/jammy -n vms`, `datavolume/root -n vms`: as `bullion why` takes it. */
  readonly object: string;
  readonly message: string;
}

const nameOf = (found: Found): string => {
  const { namespace } = found.image.metadata;
  return `${whyName(found)}${namespace === undefined ? '' : ` -n ${namespace}`}`;
};

const since = (time: string | undefined, now: number): number => now - Date.parse(time ?? '');

/** A claim still held by a running pod is deleted when that ends: the finalizers say who is waited for. */
const deletingOf = ({ metadata }: KubeObject, now: number): string | undefined => {
  const span = since(metadata.deletionTimestamp, now);
  if (!(span > longestDeletion)) return undefined;
  return `is being deleted for ${toSpan(span)}, held by ${metadata.finalizers?.join(', ') ?? 'nothing'}`;
};

const wordsOf = ({ reason, message }: Partial<StatusCondition> = {}): string | undefined =>
  reason === undefined || message === undefined ? (message ?? reason) : `${reason}: ${message}`;

const failureOf = (found: Found): string | undefined => {
  const degraded = findCondition(found.image.status?.conditions, 'Degraded');
  if (degraded?.status === 'True') return wordsOf(degraded) ?? 'is degraded';
  return hasFailed(found) ? (wordsOf(readyOf(found)) ?? 'failed') : undefined;
};

/** `undefined`: nothing that its owner would have to look at. `now`: milliseconds since 1970. */
export const troubleOf = (found: Found, now: number): Trouble | undefined => {
  const { image } = found;
  const trouble = (is: Trouble['is'], message: string): Trouble => ({ is, object: nameOf(found), message });
  const deleting = deletingOf(image, now);
  if (deleting !== undefined) return trouble('deleting', deleting);
  const failure = failureOf(found);
  if (failure !== undefined) return trouble('failed', failure);
  const age = since(image.metadata.creationTimestamp, now);
  const isObserved = image.status !== undefined || image.metadata.deletionTimestamp !== undefined;
  return isObserved || !(age > longestUnobserved)
    ? undefined
    : trouble('unobserved', `was created ${toSpan(age)} ago, and no function has written its status`);
};
