// Heartbeats of the clusters that share a target. The entries of a cluster belong to it as long as it sends heartbeats: only after days of
// silence may another cluster that restored its images remove them.
import { parse, stringify } from 'yaml';
import { z } from 'zod';
import type { BackupDeps } from './settings.ts';
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

/** Whether other clusters may have considered this one lost, and may have removed its images from the target. */
export const wasSilent = ({ now, lostSeconds }: BackupDeps, memory: Memory, target: BackupTarget): boolean =>
  now() - (signedAt(memory, target) ?? now()) >= lostSeconds * 1000;

/** Once per hour. Throws errors of the API and the store. */
export const sendHeartbeat = async (deps: BackupDeps, memory: Memory, target: BackupTarget): Promise<void> => {
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

/** `since`: milliseconds since the epoch of the first check: a cluster that never sent a heartbeat gets the same time. */
export const isLost = async (deps: BackupDeps, store: Store, cluster: string, since: number): Promise<boolean> => {
  const found = await store.read(signKey(cluster), mostMetadataBytes);
  const observed = found === undefined ? undefined : parseSign(found.bytes);
  return deps.now() - Math.max(since, observed ?? since) >= deps.lostSeconds * 1000;
};

// Identifies this cluster in a shared target.

/** UID of the kube-system namespace: it exists as long as the cluster. */
export const clusterOf = async (kube: KubeClient): Promise<string> => {
  const system = await kube.get(namespaces, { name: 'kube-system' });
  if (system?.metadata.uid === undefined) throw new Unavailable('namespace kube-system cannot be read');
  return system.metadata.uid;
};
