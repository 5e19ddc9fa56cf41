// A restored image that failed is tried again for as long as it fails: what was missing, or down, may have come since. Called by the tick.
import { annotations } from '#shared/api/names.ts';
import type { BackupDeps } from '#shared/backup/deps.ts';
import type { BackedImage } from '#shared/backup/image.ts';
import { isoTime } from '#shared/backends/state.ts';
import { secrets } from '#shared/api/foreign/core.ts';

/** Each round of attempts is waited for a little longer, up to this many times as long. */
const mostRounds = 32;

/** Milliseconds since the epoch. */
const newest = (...times: readonly (string | undefined)[]): number =>
  Math.max(0, ...times.map((time) => Date.parse(time ?? '')).filter((time) => !Number.isNaN(time)));

export const isRestoreDue = ({ image, object, restored }: BackedImage, now: number, retrySeconds: number): boolean => {
  const { state, faults, deleting, retryToken, retries } = image;
  // What its spec does not say, no other try finds.
  if (restored === undefined || deleting || state.phase !== 'Failed' || faults.length > 0) return false;
  const rounds = Math.min(mostRounds, Math.max(1, Math.floor(state.failures / (retries + 1))));
  const last = newest(retryToken, state.lastFailureTime, object.metadata.creationTimestamp);
  return now - last >= rounds * retrySeconds * 1000;
};

/** Its own message says which one it is. */
const lacksSecret = async ({ kube }: BackupDeps, { object, restored }: BackedImage): Promise<boolean> => {
  const name = restored?.from?.type === 's3' ? restored.from.secretName : undefined;
  if (name === undefined) return false;
  return (await kube.get(secrets, { namespace: object.metadata.namespace, name })) === undefined;
};

/** In the words its user has for it, too. */
export const retryRestored = async (deps: BackupDeps, backed: BackedImage): Promise<void> => {
  const { type, object } = backed;
  if (!isRestoreDue(backed, deps.now(), deps.retrySeconds) || (await lacksSecret(deps, backed))) return;
  const { namespace, name, resourceVersion } = object.metadata;
  const change = { resourceVersion, annotations: { [annotations.retry]: isoTime(deps.now()) } };
  await deps.kube.mergePatch(type, { namespace, name }, { metadata: change });
  deps.log.info('restore is tried again', { image: `${namespace}/${name}`, reason: backed.image.state.reason });
};
