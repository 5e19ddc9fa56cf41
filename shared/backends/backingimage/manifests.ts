// The backing image and the storage class of an image. Called by the plans of this folder.
import { type StorageClass } from '#shared/api/foreign/core.ts';
import { type BackingImage, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { annotations } from '#shared/api/names.ts';
import type { ObjectMeta } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { backingImageNames, storageClassNames } from '#shared/backends/backingimage/names.ts';
import { copiesIn } from '#shared/backends/backingimage/parameters.ts';
import type { Image } from '#shared/backends/image.ts';

/** Back reference that Harvester's own tools read. */
export const imageIdAnnotation = 'harvesterhci.io/imageId';

export const imageIdOf = ({ ref }: Pick<Image, 'ref'>): string => `${ref.namespace ?? ''}/${ref.name}`;

/** An owner reference cannot cross namespaces, so there is no garbage collection: the image removes its children itself. */
export const marksOf = (image: Image, role: string): Pick<ObjectMeta, 'labels' | 'annotations'> => {
  const { labels, annotations: marks } = childMetadata(image.ref, role, '');
  return { labels: labels ?? {}, annotations: { ...marks, [imageIdAnnotation]: imageIdOf(image) } };
};

export interface BackingImageSource {
  readonly sourceType: NonNullable<BackingImage['spec']['sourceType']>;
  readonly parameters: Readonly<Record<string, string>>;
}

export const buildBackingImage = (
  image: Image,
  origin: BackingImageSource,
  { attempt, classParameters }: { readonly attempt: number; readonly classParameters: Record<string, string> },
): BackingImage => {
  const marks = marksOf(image, 'volume');
  return {
    apiVersion: 'longhorn.io/v1beta2',
    kind: 'BackingImage',
    metadata: {
      name: backingImageNames(image).own,
      namespace: longhornNamespace,
      ...marks,
      annotations: {
        ...marks.annotations,
        [annotations.attempt]: String(attempt),
        // The handled retry is recorded here because status is written later, or never after a crash.
        ...(image.retryToken === undefined ? {} : { [annotations.retry]: image.retryToken }),
      },
    },
    spec: {
      sourceType: origin.sourceType,
      sourceParameters: origin.parameters,
      minNumberOfCopies: copiesIn(classParameters) ?? 1,
      ...(image.checksum === undefined ? {} : { checksum: image.checksum.hex }),
    },
  };
};

export const buildStorageClass = (
  image: Image,
  backingImage: string,
  classParameters: Readonly<Record<string, string>>,
): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: storageClassNames(image).own, ...marksOf(image, 'class') },
  provisioner: longhornDriver,
  reclaimPolicy: 'Delete',
  allowVolumeExpansion: true,
  volumeBindingMode: 'Immediate',
  parameters: { ...classParameters, backingImage, ...ofClone(image) },
});

/** Volumes of an encrypted clone need its Secret. */
const ofClone = ({ source }: Image): Readonly<Record<string, string>> =>
  source?.type === 'clone' && source.operation === 'encrypt' ? { backingImageDataSourceType: 'clone' } : {};

/** A backing image without the annotation is the first attempt. */
export const attemptOf = ({ metadata }: BackingImage): number => {
  const attempt = Number(metadata.annotations?.[annotations.attempt]);
  return Number.isInteger(attempt) && attempt > 0 ? attempt : 1;
};
