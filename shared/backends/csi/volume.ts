// An image as the engine's volume: golden, with a snapshot if its driver supports it. Pure except for the readers of its sources.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { Image } from '#shared/backends/backend.ts';
import { readCloned } from '#shared/backends/source-claim.ts';
import { type Origin, readClaimOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import { isCopied, isForJob } from '#shared/populate/source.ts';
import type { OriginReaders } from '#shared/populate/volume/observed.ts';
import type { Volume, VolumeSource } from '#shared/populate/volume/volume.ts';

const { kind, group } = harvesterImageKind.type;
const imageGroupKind = `${kind}.${group}`;

const sourceOf = ({ source }: Image): VolumeSource | undefined => {
  if (source === undefined) return undefined;
  if (isForJob(source)) return { type: 'transfer', from: source };
  if (!isCopied(source)) return undefined;
  const { namespace } = source;
  return source.type === 'clone'
    ? { type: 'object', groupKind: imageGroupKind, namespace, name: source.imageName }
    : { type: 'object', groupKind: persistentVolumeClaims.kind, namespace, name: source.claimName };
};

export const volumeOf = (image: Image): Volume => {
  const { backend: _, displayName: _name, storage, childNames, volumeMarks, ...filled } = image;
  return {
    ...filled,
    source: sourceOf(image),
    claim: {
      name: childNames.volume,
      role: 'volume',
      className: storage.className,
      volumeMode: storage.volumeMode,
      accessModes: storage.accessModes,
      bytes: storage.capacityBytes,
      diskBytes: image.offered?.virtualSize,
      annotations: volumeMarks.filling,
      filled: volumeMarks.filled,
    },
    snapshot: { name: childNames.snapshot, className: storage.snapshotClassName },
    waitsForConsumer: false,
    isBoundAtOnce: true,
  };
};

/** The permissions of its author were checked at admission (`use-image`, `export-claim`); everything else is in the image's own namespace. */
const mayUse = () => true;

const readImage = async (kube: KubeClient, { namespace = '', name }: ObjectKey): Promise<Origin> => {
  const cloned = await readCloned(kube, { namespace, imageName: name });
  if (cloned.is === 'waiting') return waitFor('SourceNotReady', cloned.message);
  const what = `image ${namespace}/${name}`;
  return readClaimOrigin(kube, { namespace, name: cloned.name }, { what, snapshot: cloned.snapshot, mayUse });
};

/** A disk that a guest has written to has no digest, and differs from its original file. */
const readExport = async (kube: KubeClient, key: ObjectKey): Promise<Origin> => {
  const what = `PersistentVolumeClaim ${key.namespace}/${key.name}`;
  const origin = await readClaimOrigin(kube, key, { what, mayUse });
  return origin.is === 'ready' ? { ...origin, population: undefined } : origin;
};

export const originReaders: OriginReaders = {
  [imageGroupKind]: readImage,
  [persistentVolumeClaims.kind]: readExport,
};
