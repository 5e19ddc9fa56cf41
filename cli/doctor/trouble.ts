// What is wrong with one object, from its own status: it failed, nothing has looked at it, or its deletion does not end. Pure.
import { type StatusCondition, findCondition } from '#shared/api/conditions.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { toSpan } from '#shared/runtime/age.ts';

/** Milliseconds in which a function must have written a status: one that starts from zero takes seconds, and each minute repairs lost events. */
const longestUnobserved = 3 * 60_000;
/** Milliseconds after which a deletion has not ended by itself. */
const longestDeletion = 10 * 60_000;

export interface Trouble {
  readonly is: 'failed' | 'unobserved' | 'deleting';
  /** `datavolume/root -n vms`, as `bullion why` takes it. */
  readonly object: string;
  readonly message: string;
}

type WithStatus = KubeObject & {
  readonly status?: {
    readonly phase?: string;
    readonly state?: string;
    readonly message?: string;
    readonly conditions?: readonly StatusCondition[];
  };
};

const nameOf = ({ kind, metadata: { name, namespace } }: KubeObject): string =>
  `${kind.toLowerCase()}/${name}${namespace === undefined ? '' : ` -n ${namespace}`}`;

const since = (time: string | undefined, now: number): number => now - Date.parse(time ?? '');

/** A claim still held by a running pod is deleted when that ends: the finalizers say who is waited for. */
const deletingOf = ({ metadata }: KubeObject, now: number): string | undefined => {
  const span = since(metadata.deletionTimestamp, now);
  if (!(span > longestDeletion)) return undefined;
  return `is being deleted for ${toSpan(span)}, held by ${metadata.finalizers?.join(', ') ?? 'nothing'}`;
};

const wordsOf = ({ reason, message }: Partial<StatusCondition> = {}): string | undefined =>
  reason === undefined || message === undefined ? (message ?? reason) : `${reason}: ${message}`;

const failureOf = ({ status }: WithStatus): string | undefined => {
  const degraded = findCondition(status?.conditions, 'Degraded');
  if (degraded?.status === 'True') return wordsOf(degraded) ?? 'is degraded';
  const hasFailed = status?.phase === 'Failed' || status?.state === 'Error';
  return hasFailed ? (wordsOf(findCondition(status.conditions, 'Ready')) ?? status.message ?? 'failed') : undefined;
};

/** `undefined`: nothing that its owner would have to look at. `now`: milliseconds since 1970. */
export const troubleOf = (object: KubeObject, now: number): Trouble | undefined => {
  const trouble = (is: Trouble['is'], message: string): Trouble => ({ is, object: nameOf(object), message });
  const deleting = deletingOf(object, now);
  if (deleting !== undefined) return trouble('deleting', deleting);
  const failure = failureOf(object);
  if (failure !== undefined) return trouble('failed', failure);
  const age = since(object.metadata.creationTimestamp, now);
  const isObserved = (object as WithStatus).status !== undefined || object.metadata.deletionTimestamp !== undefined;
  return isObserved || !(age > longestUnobserved)
    ? undefined
    : trouble('unobserved', `was created ${toSpan(age)} ago, and no function has written its status`);
};
