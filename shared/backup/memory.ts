// What this cluster remembers of backups, in one ConfigMap: which target it has looked through, and which images were deleted here. Nothing remote
// is decided by it alone.
import { z } from 'zod';
import { configMaps } from '#shared/api/foreign/core.ts';
import { systemNamespace } from '#shared/api/names.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import { isConflict } from '#shared/runtime/errors.ts';

const name = 'backup-memory';

const Deleted = z.object({
  /** Of the image that metadata names. */
  uids: z.array(z.string()),
  apiVersion: z.string(),
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  /** Default: any. Metadata is written before the status that names its target, so a status without one proves nothing. */
  target: z.string().optional(),
  /** Targets that know of a deletion whose target is not known. */
  notedIn: z.array(z.string()).optional(),
  /** Key of the metadata, where it is this cluster's to remove. */
  object: z.string().optional(),
  /** Key of the metadata that it was restored from, which may be another cluster's. */
  from: z.string().optional(),
  /** The target knows. */
  isNoted: z.boolean(),
  /** RFC 3339: since when another cluster's metadata of it is waited for, which goes once that cluster is lost. */
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
  /** Target that was looked through to its end. */
  target: z.string().optional(),
  /** RFC 3339. */
  looked: z.string().optional(),
  /** Newest sign of life of this cluster. */
  signed: z.object({ target: z.string(), time: z.string() }).optional(),
  /** Looks in a row that found nothing at all. */
  emptyLooks: z.int().default(0),
  deleted: z.array(Deleted).default([]),
  /** What is not restored yet, and why. */
  pending: z.array(Item).default([]),
});
export type Memory = z.infer<typeof Memory>;

/** Bytes that deletions may have, and what is pending; a ConfigMap takes 1 MiB. */
const mostDeletedBytes = 600_000;
const mostPendingBytes = 300_000;
const mostPending = 500;
const maxRounds = 5;

const key = { namespace: systemNamespace, name } as const;

const parse = (text: string | undefined): Memory => {
  try {
    return Memory.parse(JSON.parse(text ?? '{}'));
  } catch {
    return Memory.parse({});
  }
};

/** From the first on, in their order, as long as there is room. */
const fitting = <T>(items: readonly T[], mostBytes: number): readonly T[] => {
  let left = mostBytes;
  // What is JSON once is a text in JSON then: its quotes count twice.
  return items.filter((item) => (left -= Buffer.byteLength(JSON.stringify(JSON.stringify(item)))) >= 0);
};

/** What the target knows already is forgotten first, and the oldest. */
const fittingDeleted = (deleted: readonly Deleted[]): Deleted[] => {
  const newest = deleted.toReversed();
  const isUrgent = ({ isNoted, left }: Deleted): boolean => !isNoted || left !== undefined;
  const kept = new Set(
    fitting([...newest.filter(isUrgent), ...newest.filter((one) => !isUrgent(one))], mostDeletedBytes),
  );
  return deleted.filter((one) => kept.has(one));
};

/** What is pending and does not fit is found by looking through the whole target again. */
export const bounded = (memory: Memory): Memory => {
  const pending = [...fitting(memory.pending.slice(0, mostPending), mostPendingBytes)];
  const looked = pending.length < memory.pending.length ? undefined : memory.looked;
  return { ...memory, deleted: fittingDeleted(memory.deleted), pending, looked };
};

export const readMemory = async ({ kube }: Pick<BackupDeps, 'kube'>): Promise<Memory> =>
  parse((await kube.get(configMaps, key))?.data?.['memory']);

/** Applies `change` to what is remembered by then. */
export const remember = async ({ kube }: BackupDeps, change: (memory: Memory) => Memory): Promise<void> => {
  for (let round = 1; ; round += 1) {
    const present = await kube.get(configMaps, key);
    const before = parse(present?.data?.['memory']);
    const memory = JSON.stringify(bounded(change(before)));
    if (present !== undefined && memory === JSON.stringify(before)) return;
    try {
      const next = { apiVersion: 'v1', kind: 'ConfigMap', metadata: present?.metadata ?? key, data: { memory } };
      await (present === undefined ? kube.create(configMaps, next) : kube.replace(configMaps, next));
      return;
    } catch (error) {
      if (!isConflict(error) || round === maxRounds) throw error;
    }
  }
};
