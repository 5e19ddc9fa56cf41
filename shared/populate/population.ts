// The volume being filled: its claim, and the mark that its bytes are complete. Called by backends.
import { z } from 'zod';
import { travellingLabels } from '#shared/api/cdi/names.ts';
import type { AccessMode, PersistentVolumeClaim, VolumeMode } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { childMetadata, type KubeObject, type ObjectRef } from '#shared/api/object.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { Inspection, archiveFormat } from '#shared/transfer/report.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/**
 * What a volume was filled from: the value of the populated annotation. It is on the volume itself, so that it survives the loss of the image's
 * status and the volume is never filled twice.
 */
export const Population = z.object({
  inspection: Inspection,
  digests: z.record(z.string(), z.string()),
  /** Where the bytes came from, if mirrors were configured. */
  servedFrom: z.string().optional(),
});
export type Population = z.infer<typeof Population>;

export interface VolumeRequest {
  readonly owner: ObjectRef;
  /** `volume` (default): golden, and protected. `disk`: the disk of a user. `kept`: for other volumes with the same bytes. */
  readonly role?: 'volume' | 'disk' | 'kept' | 'restored';
  readonly name: string;
  readonly storageClassName: string | undefined;
  readonly volumeMode: VolumeMode;
  readonly accessModes: readonly AccessMode[];
  readonly bytes: number;
  /** The inspection that determined the size. Default: the user requested a size. */
  readonly inspected?: Inspection | undefined;
  /** Annotations that clients of the owner's kind read. */
  readonly annotations: Readonly<Record<string, string>>;
}

export const buildVolume = (request: VolumeRequest): PersistentVolumeClaim => {
  const metadata = childMetadata(request.owner, request.role ?? 'volume', request.name);
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, ...inspectedMark(request.inspected), ...request.annotations },
    },
    spec: {
      accessModes: request.accessModes,
      volumeMode: request.volumeMode,
      ...(request.storageClassName === undefined ? {} : { storageClassName: request.storageClassName }),
      resources: { requests: { storage: formatQuantity(request.bytes) } },
    },
  };
};

export const inspectedMark = (inspection: Inspection | undefined): Readonly<Record<string, string>> =>
  inspection === undefined ? {} : { [annotations.inspected]: JSON.stringify(inspection) };

/** The inspection that determined the size of a volume; `undefined` if the user requested a size. */
export const inspectedOf = (volume: KubeObject): Inspection | undefined =>
  readMark(volume, annotations.inspected, Inspection);

const readMark = <T>(volume: KubeObject | undefined, name: string, schema: z.ZodType<T>): T | undefined =>
  parseJsonAs(schema, volume?.metadata.annotations?.[name]);

/** Bytes a claim requests; 0 if it requests none. */
export const requestedBytes = (volume: PersistentVolumeClaim): number =>
  parseQuantity(volume.spec.resources?.requests?.['storage']) ?? 0;

/** Kubernetes' own default is Filesystem. */
export const volumeModeOf = (volume: PersistentVolumeClaim): VolumeMode => volume.spec.volumeMode ?? 'Filesystem';

/** The driver that provisions the volume, as Kubernetes records it on the claim; `undefined` before that. */
export const provisionerOf = (volume: PersistentVolumeClaim): string | undefined =>
  volume.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'];

/** `undefined` until the volume is filled, verified and flushed. */
export const populationOf = (volume: KubeObject | undefined): Population | undefined =>
  readMark(volume, annotations.populated, Population);

/** Files of an archive are not a disk. */
export const holdsFiles = (population: Population | undefined): boolean =>
  population?.inspection.format === archiveFormat;

/** The label by which a golden volume or snapshot is found by its content. */
export const contentLabel = (content: string | undefined): Readonly<Record<string, string>> =>
  content === undefined ? {} : { [labels.content]: content };

/** Merge patch that marks a volume as filled, with the annotations that clients of the owner's kind read and the labels that describe its guest. */
export const populatedPatch = (
  population: Population,
  marks: Readonly<Record<string, string>>,
  ownLabels: Readonly<Record<string, string>> = {},
): object => {
  const found = { ...guestLabels(population), ...ownLabels };
  return {
    metadata: {
      ...(Object.keys(found).length === 0 ? {} : { labels: found }),
      annotations: { ...populatedMark(population), ...marks },
    },
  };
};

/** Labels that describe how to run the disk, copied from its image. Other labels of an image are ignored. */
export const guestLabels = ({ inspection }: Population): Readonly<Record<string, string>> =>
  travellingLabels(inspection.labels);

/** The mark of a volume that is created with its data. */
export const populatedMark = (population: Population): Readonly<Record<string, string>> => ({
  [annotations.populated]: JSON.stringify(population),
});

// Size of a volume for a disk, and size of the largest disk for a volume, in bytes.

const mebibyte = 2 ** 20;

/** Journals and tables of a file system also have a fixed size, which dominates on small volumes. */
const fixedOverhead = 64 * mebibyte;

const roundUp = (bytes: number): number => Math.max(1, Math.ceil(bytes / mebibyte)) * mebibyte;

/**
 * Size to request for a disk of `diskBytes`: the disk itself on a block device, the disk as a file otherwise. CDI's arithmetic: whole mebibytes
 * of disk, and the overhead as a share of them.
 */
export const volumeBytesFor = (diskBytes: number, mode: VolumeMode, overhead: number): number => {
  const disk = roundUp(diskBytes);
  return mode === 'Block' ? disk : Math.ceil((1 + overhead) * disk);
};

/** Size of a volume that a file of `fileBytes` is written to: unlike a disk, a file has no holes. */
export const fileVolumeBytesFor = (fileBytes: number, overhead: number): number =>
  Math.max(volumeBytesFor(fileBytes, 'Filesystem', overhead), roundUp(fileBytes) + fixedOverhead);

/** Largest disk for a volume of `volumeBytes`: at least the disk that `volumeBytesFor` sized it for, never below one byte. */
export const diskBytesIn = (volumeBytes: number, mode: VolumeMode, overhead: number): number =>
  mode === 'Block'
    ? Math.max(1, volumeBytes)
    : Math.max(1, Math.floor(Math.ceil(volumeBytes / (1 + overhead)) / mebibyte) * mebibyte);
