// Which transfers start next: the highest priority first, then the namespace that has the smallest share for its weight, then the oldest. Pure.
import type { QueueLimits } from '#shared/populate/queue/limits.ts';

export interface RunningTransfer {
  readonly namespace: string;
  /** Default: no server, such as a copy within the cluster. */
  readonly host?: string | undefined;
}

export interface WaitingTransfer extends RunningTransfer {
  readonly uid: string;
  /** Of its priority class. */
  readonly priority: number;
  /** RFC 3339: when it was created. */
  readonly since: string;
}

export interface QueueOrder<T extends WaitingTransfer> {
  /** They start now. */
  readonly admitted: readonly T[];
  /** The others, in the order in which they would start. */
  readonly waiting: readonly T[];
}

/** Counts by key, with a limit that applies to each key. */
const createCounts = (limit: number | undefined) => {
  const counts = new Map<string, number>();
  return {
    add: (key: string) => counts.set(key, (counts.get(key) ?? 0) + 1),
    isFull: (key: string) => limit !== undefined && (counts.get(key) ?? 0) >= limit,
  };
};

const oldestFirst = (a: WaitingTransfer, b: WaitingTransfer): number =>
  b.priority - a.priority || a.since.localeCompare(b.since) || a.uid.localeCompare(b.uid);

/**
 * The order is decided as if each transfer started in turn, so that a namespace which asks for many is interleaved with the others. One that a
 * limit of its namespace or host holds back keeps its place and does not hold back those behind it.
 */
export const orderQueue = <T extends WaitingTransfer>(
  limits: QueueLimits,
  waiting: readonly T[],
  running: readonly RunningTransfer[],
): QueueOrder<T> => {
  const total = createCounts(limits.running);
  const byNamespace = createCounts(limits.runningPerNamespace);
  const byHost = createCounts(limits.runningPerHost);
  const shares = new Map<string, number>();
  const take = (namespace: string): void => {
    shares.set(namespace, (shares.get(namespace) ?? 0) + 1 / (limits.weights.get(namespace) ?? 1));
  };
  const start = ({ namespace, host }: RunningTransfer): void => {
    total.add('');
    byNamespace.add(namespace);
    if (host !== undefined) byHost.add(host);
  };
  for (const one of running) {
    start(one);
    take(one.namespace);
  }
  const fits = ({ namespace, host }: RunningTransfer): boolean =>
    !total.isFull('') && !byNamespace.isFull(namespace) && (host === undefined || !byHost.isFull(host));

  const heads = [...Map.groupBy(waiting.toSorted(oldestFirst), ({ namespace }) => namespace).values()].map((line) => ({
    line,
    at: 0,
  }));
  const isBefore = (a: T, b: T): boolean => {
    const share = ({ namespace }: T): number => shares.get(namespace) ?? 0;
    return (b.priority - a.priority || share(a) - share(b) || oldestFirst(a, b)) < 0;
  };
  const order = { admitted: [] as T[], waiting: [] as T[] };
  for (let left = waiting.length; left > 0; left -= 1) {
    let first: { head: (typeof heads)[number]; transfer: T } | undefined;
    for (const head of heads) {
      const transfer = head.line[head.at];
      if (transfer !== undefined && (first === undefined || isBefore(transfer, first.transfer)))
        first = { head, transfer };
    }
    if (first === undefined) break;
    const { head, transfer } = first;
    head.at += 1;
    take(transfer.namespace);
    const isAdmitted = fits(transfer);
    if (isAdmitted) start(transfer);
    order[isAdmitted ? 'admitted' : 'waiting'].push(transfer);
  }
  return order;
};
