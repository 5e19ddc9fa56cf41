// Signs of life of the clusters that share a target. What a cluster keeps there is its own for as long as it gives one: only when it has been silent
// for days may another one, which restored from it, take away what its user deletes.
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { BackupDeps } from '#shared/backup/deps.ts';
import { type Memory, remember } from '#shared/backup/memory.ts';
import { mostMetadataBytes } from '#shared/backup/remote.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

const Sign = z.object({
  version: z.literal(1),
  cluster: z.string(),
  /** RFC 3339. */
  seen: z.string(),
});

export const signKey = (cluster: string): string => `harvester/vmimage-clusters/${cluster}.yaml`;

const everyMs = 3_600_000;

const signedAt = ({ signed }: Memory, target: BackupTarget): number | undefined =>
  signed?.target === target.name ? Date.parse(signed.time) : undefined;

/** Whether others may have taken this cluster for lost, and its images out of the target. */
export const wasSilent = ({ now, lostSeconds }: BackupDeps, memory: Memory, target: BackupTarget): boolean =>
  now() - (signedAt(memory, target) ?? now()) >= lostSeconds * 1000;

/** Each hour. Throws what API and store throw. */
export const giveSign = async (deps: BackupDeps, memory: Memory, target: BackupTarget): Promise<void> => {
  const now = deps.now();
  if (now - (signedAt(memory, target) ?? 0) < everyMs) return;
  const cluster = await clusterOf(deps.kube);
  const { store, close } = deps.open(target);
  try {
    const sign: z.infer<typeof Sign> = { version: 1, cluster, seen: isoTime(now) };
    await store.write(signKey(cluster), Buffer.from(stringify(sign)));
  } finally {
    await close();
  }
  await remember(deps, (known) => ({ ...known, signed: { target: target.name, time: isoTime(now) } }));
};

const parseSign = (bytes: Buffer): number | undefined => {
  try {
    const time = Date.parse(Sign.parse(parse(bytes.toString('utf8'), { logLevel: 'error' })).seen);
    return Number.isNaN(time) ? undefined : time;
  } catch {
    return undefined;
  }
};

/** `since`: milliseconds since the epoch, when this was asked first: one that never gave a sign is waited for as long. */
export const isLost = async (deps: BackupDeps, store: Store, cluster: string, since: number): Promise<boolean> => {
  const found = await store.read(signKey(cluster), mostMetadataBytes);
  const observed = found === undefined ? undefined : parseSign(found.bytes);
  return deps.now() - Math.max(since, observed ?? since) >= deps.lostSeconds * 1000;
};

// Which cluster this is, for whoever shares a target with it.

/** UID of the kube-system namespace: it lives as long as the cluster does. */
export const clusterOf = async (kube: KubeClient): Promise<string> => {
  const system = await kube.get(namespaces, { name: 'kube-system' });
  if (system?.metadata.uid === undefined) throw new Unavailable('namespace kube-system cannot be read');
  return system.metadata.uid;
};
