// Who else has the bytes of a volume whose place its consumer chose, read once that is known; and who of them can be reached from there.
import { isDeepStrictEqual } from 'node:util';
import { type PersistentVolumeClaim, type StorageClass, persistentVolumes } from '#shared/api/foreign/core.ts';
import type { ObservedSingleflight } from '#shared/backends/singleflight/singleflight.ts';
import { readSingleflight } from '#shared/backends/singleflight/read.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import { contentOfVolume } from '#shared/resources/volume/content.ts';
import { isHeldBack } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

interface Placed {
  readonly claim: PersistentVolumeClaim;
  readonly storageClass: StorageClass | undefined;
}

/** Nothing for a volume that waits for its consumer still, or never did. */
export const readLate = async (
  kube: KubeClient,
  volume: Volume,
  { claim, storageClass }: Placed,
): Promise<{ readonly singleflight?: ObservedSingleflight; readonly outOfReach?: ReadonlySet<string> }> => {
  const content = contentOfVolume(volume);
  const isDecided = claim.status?.phase !== 'Bound' || recordOf(claim) !== undefined;
  if (content === undefined || isDecided || storageClass === undefined || !isHeldBack(volume, storageClass)) return {};
  const singleflight = await readSingleflight(kube, volume.ref, { content, className: storageClass.metadata.name });
  const claims = singleflight.kept.flatMap(({ claim: kept }) => kept ?? []);
  return { singleflight, outOfReach: await readOutOfReach(kube, claim, claims) };
};

/** Nodes that can reach a volume; `undefined`: all of them. */
const readReach = async (kube: KubeClient, { spec }: PersistentVolumeClaim): Promise<unknown> => {
  const name = spec.volumeName ?? '';
  return name === '' ? undefined : (await kube.get(persistentVolumes, { name }))?.spec.nodeAffinity;
};

/** A pod that copies needs both volumes on one node. */
const readOutOfReach = async (
  kube: KubeClient,
  own: PersistentVolumeClaim,
  others: readonly PersistentVolumeClaim[],
): Promise<ReadonlySet<string>> => {
  if (others.length === 0) return new Set();
  const here = await readReach(kube, own);
  const far = await Promise.all(
    others.map(async (other) => {
      const there = await readReach(kube, other);
      return here === undefined || there === undefined || isDeepStrictEqual(here, there) ? [] : [other.metadata.name];
    }),
  );
  return new Set(far.flat());
};
