// What the csi backend reads of the snapshot of a filled volume, and of the classes that could make it. Called by observed.ts.
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import type { ObservedCsi } from '#shared/backends/csi/observed.ts';
import type { Image } from '#shared/backends/image.ts';
import { readClass, readOwn, readSnapshotClasses, readToldClass } from '#shared/backends/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { provisionerOf } from '#shared/populate/volume.ts';

type Part = Partial<ObservedCsi>;

/** Whether it may be there. */
export const mayBe = ({ trustsStatus }: Image, known: string | undefined): boolean =>
  trustsStatus !== true || known !== undefined;

export const readSnapshot = async (kube: KubeClient, image: Image): Promise<Part> => {
  const { own, foreign } = await readOwn(kube, volumeSnapshots, image.ref, image.childNames.snapshot);
  return { snapshot: own, foreign };
};

export const readSnapshotting = async (
  kube: KubeClient,
  image: Image,
  volume: PersistentVolumeClaim | undefined,
): Promise<Part> => {
  const snapshot = mayBe(image, image.state.children?.snapshot) ? await readSnapshot(kube, image) : {};
  if (snapshot.snapshot !== undefined || volume === undefined) return snapshot;
  const marked = markedClass(image, volume);
  if (marked !== undefined) return { ...snapshot, snapshotClass: marked };
  const { storageClassName: className } = volume.spec;
  const [storageClass, snapshotClasses] = await Promise.all([
    provisionerOf(volume) === undefined ? readClass(kube, className) : undefined,
    readSnapshotClasses(kube),
  ]);
  const driver = provisionerOf(volume) ?? storageClass?.provisioner;
  const fitting = snapshotClasses.filter((candidate) => candidate.driver === driver);
  const snapshotClass =
    image.storage.snapshotClassName === undefined ? await readToldClass(kube, fitting, className) : undefined;
  return { ...snapshot, storageClass, snapshotClasses, snapshotClass };
};

/** Told when the volume was made; looked for anew where that came to nothing. */
const markedClass = ({ storage, trustsStatus }: Image, { metadata }: PersistentVolumeClaim): string | undefined =>
  trustsStatus === true && storage.snapshotClassName === undefined
    ? metadata.annotations?.[annotations.snapshotClass]
    : undefined;
