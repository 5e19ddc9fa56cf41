// The local record of backups in one ConfigMap: which target was scanned, and which images were deleted here. It never causes a change in a
// target by itself.
import { z } from 'zod';
import { configMaps } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { BackupDeps } from './settings.ts';
import { retryConflicts } from '#shared/clients/kube/tolerant.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const name = 'backup-memory';

const Deleted = z.object({
  /** UIDs of the image in the metadata. */
  uids: z.array(z.string()),
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  /** Default: any. Metadata is written before the status that names its target, so a missing target in status proves nothing. */
  target: z.string().optional(),
  /** Targets in which a deletion without a known target is recorded. */
  notedIn: z.array(z.string()).optional(),
  /** Key of the metadata that this cluster must remove. */
  object: z.string().optional(),
  /** Key of the metadata that it was restored from, which may belong to another cluster. */
  from: z.string().optional(),
  /** The deletion is recorded in the target. */
  isNoted: z.boolean(),
  /** RFC 3339: start of the wait for another cluster's metadata, which is removed once that cluster is lost. */
  left: z.string().optional(),
});
export type Deleted = z.infer<typeof Deleted>;

const Item = z.object({
  object: z.string(),
  image: z.string().optional(),
  result: z.string(),
  message: z.string(),
});
export type Item = z.infer<typeof Item>;

export const Memory = z.object({
  /** Target that was scanned completely. */
  target: z.string().optional(),
  /** RFC 3339. */
  looked: z.string().optional(),
  /** Latest heartbeat of this cluster. */
  signed: z.object({ target: z.string(), time: z.string() }).optional(),
  /** Number of consecutive empty scans. */
  emptyLooks: z.int().default(0),
  deleted: z.array(Deleted).default([]),
  /** Entries that are not restored yet, with the reason. */
  pending: z.array(Item).default([]),
});
export type Memory = z.infer<typeof Memory>;

/** Size limits of recorded deletions and of pending entries; a ConfigMap holds 1 MiB. */
const mostDeletedBytes = 600_000;
const mostPendingBytes = 300_000;
const mostPending = 500;
const maxRounds = 5;

const key = { namespace: systemNamespace, name } as const;

const parse = (text: string | undefined): Memory => parseJsonAs(Memory, text) ?? Memory.parse({});

/** The first items in order that fit. */
const fitting = <T>(items: readonly T[], mostBytes: number): readonly T[] => {
  let left = mostBytes;
  // JSON nested in JSON: quotes are escaped twice.
  return items.filter((item) => (left -= Buffer.byteLength(JSON.stringify(JSON.stringify(item)))) >= 0);
};

/** Deletions already recorded in the target are dropped first, the oldest before others. */
const fittingDeleted = (deleted: readonly Deleted[]): Deleted[] => {
  const newest = deleted.toReversed();
  const isUrgent = ({ isNoted, left }: Deleted): boolean => !isNoted || left !== undefined;
  const kept = new Set(
    fitting([...newest.filter(isUrgent), ...newest.filter((one) => !isUrgent(one))], mostDeletedBytes),
  );
  return deleted.filter((one) => kept.has(one));
};

/** Pending entries that do not fit are found by scanning the whole target again. */
export const bounded = (memory: Memory): Memory => {
  const pending = [...fitting(memory.pending.slice(0, mostPending), mostPendingBytes)];
  const looked = pending.length < memory.pending.length ? undefined : memory.looked;
  return { ...memory, deleted: fittingDeleted(memory.deleted), pending, looked };
};

export const readMemory = async ({ kube }: Pick<BackupDeps, 'kube'>): Promise<Memory> =>
  parse((await kube.get(configMaps, key))?.data?.['memory']);

/** Applies `change` to the latest record. */
export const remember = ({ kube }: BackupDeps, change: (memory: Memory) => Memory): Promise<void> =>
  retryConflicts(maxRounds, async () => {
    const present = await kube.get(configMaps, key);
    const before = parse(present?.data?.['memory']);
    const memory = JSON.stringify(bounded(change(before)));
    if (present !== undefined && memory === JSON.stringify(before)) return;
    const next = { apiVersion: 'v1', kind: 'ConfigMap', metadata: present?.metadata ?? key, data: { memory } };
    await (present === undefined ? kube.create(configMaps, next) : kube.replace(configMaps, next));
  });
