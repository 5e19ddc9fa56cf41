// Reads the golden copy of the source of a volume in the class of the volume (golden-copy.ts), while the volume has no claim.
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import type { StorageProfile } from '#shared/api/cdi/storage-profile.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type ReadyOrigin, readClaimOrigin } from '#shared/populate/clone/origin.ts';
import { readSnapshotClass } from '#shared/populate/reading.ts';
import {
  copyNameOf,
  type ObservedCopy,
  type Original,
  originalOf,
  type ReadCopyRight,
} from '#shared/populate/volume/golden-copy.ts';
import { modesFor } from '#shared/populate/volume/making.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

interface Around {
  readonly origin: ReadyOrigin | undefined;
  readonly storageClass: StorageClass | undefined;
  readonly profile: StorageProfile | undefined;
}

/** A copy is not made of a copy, and where the version is already, none is needed. */
const mayHelp = (volume: Volume, origin: ReadyOrigin, { metadata }: StorageClass): boolean =>
  volume.isCopy === undefined && origin.className !== metadata.name;

/** `undefined`: there is none, and none is wanted. */
export const readGoldenCopy = async (
  kube: KubeClient,
  volume: Volume,
  { origin, storageClass, profile }: Around,
  readRight: ReadCopyRight | undefined,
): Promise<ObservedCopy | undefined> => {
  if (readRight === undefined || origin === undefined || storageClass === undefined) return undefined;
  const original = originalOf(origin);
  if (original === undefined || !mayHelp(volume, origin, storageClass)) return undefined;
  const right = await readRight(kube, original, storageClass.metadata.name);
  if (right === 'never') return { original, right };
  const { clone, accessModes } = origin;
  const preferred = { volumeMode: clone.volumeMode, ...(accessModes && { accessModes }) };
  const { volumeMode } = modesFor(volume, { storageClass, profile }, preferred);
  const name = copyNameOf(original, { storageClass, volumeMode });
  const dataVolume = await kube.get(dataVolumes, { namespace: original.metadata.namespace, name });
  if (dataVolume !== undefined && !isSound(dataVolume, original)) return { original, right: 'never' };
  const what = `the copy of ${clone.what} in class ${storageClass.metadata.name}`;
  return {
    original,
    right,
    dataVolume,
    snapshotClass: await readSnapshotClass(kube, storageClass.provisioner, storageClass.metadata.name),
    origin: dataVolume && (await readComplete(kube, dataVolume, what)),
  };
};

/** A name proves nothing: only Bullion may write the label. */
const isSound = ({ metadata }: DataVolume, original: Original): boolean =>
  metadata.labels?.[labels.copyOf] === original.metadata.uid && metadata.deletionTimestamp === undefined;

const readComplete = async (
  kube: KubeClient,
  { metadata: { namespace = '', name, labels: own }, status }: DataVolume,
  what: string,
): Promise<ReadyOrigin | undefined> => {
  if (status?.phase !== 'Succeeded') return undefined;
  const found = await readClaimOrigin(kube, { namespace, name }, { what, mayUse: () => true });
  const isIts = found.is === 'ready' && found.claim?.metadata.labels?.[labels.copyOf] === own?.[labels.copyOf];
  return isIts ? found : undefined;
};
