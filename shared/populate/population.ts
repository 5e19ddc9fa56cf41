// The volume being filled: how it is asked for, and the mark that says its bytes are complete. Called by backends.
import { z } from 'zod';
import { travellingLabels } from '#shared/api/cdi/names.ts';
import type { AccessMode, PersistentVolumeClaim, VolumeMode } from '#shared/api/foreign/core.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject, ObjectRef } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { Inspection, archiveFormat } from '#shared/transfer/report.ts';

/**
 * What a volume was filled from: the value of the populated annotation. It stands on the volume itself, so that a volume tells what it holds
 * even when the image's status was lost, and is never filled twice.
 */
export const Population = z.object({
  inspection: Inspection,
  digests: z.record(z.string(), z.string()),
});
export type Population = z.infer<typeof Population>;

export interface VolumeRequest {
  readonly owner: ObjectRef;
  /** `volume`, or left out: golden, and protected. `disk`: somebody's own. `kept`: for whoever wants the same bytes. */
  readonly role?: 'volume' | 'disk' | 'kept' | 'restored';
  readonly name: string;
  readonly storageClassName: string | undefined;
  readonly volumeMode: VolumeMode;
  readonly accessModes: readonly AccessMode[];
  readonly bytes: number;
  /** What told how large it must be; left out where the user did. */
  readonly inspected?: Inspection | undefined;
  /** Annotations that clients of the owner's kind look for. */
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

/** What a volume, or what makes it, was sized by; `undefined` where the user gave its size. */
export const inspectedOf = (volume: KubeObject): Inspection | undefined =>
  readMark(volume, annotations.inspected, Inspection);

const readMark = <T>(volume: KubeObject | undefined, name: string, schema: z.ZodType<T>): T | undefined => {
  const mark = volume?.metadata.annotations?.[name];
  if (mark === undefined) return undefined;
  try {
    return schema.safeParse(JSON.parse(mark)).data;
  } catch {
    return undefined;
  }
};

/** Bytes a claim asked for; 0 when it does not say. */
export const requestedBytes = (volume: PersistentVolumeClaim): number =>
  parseQuantity(volume.spec.resources?.requests?.['storage']) ?? 0;

/** Kubernetes' own default is Filesystem. */
export const volumeModeOf = (volume: PersistentVolumeClaim): VolumeMode => volume.spec.volumeMode ?? 'Filesystem';

/** The driver that makes the volume, as Kubernetes notes it on the claim; `undefined` before, or where nobody does. */
export const provisionerOf = (volume: PersistentVolumeClaim): string | undefined =>
  volume.metadata.annotations?.['volume.kubernetes.io/storage-provisioner'];

/** `undefined` until the volume is filled, verified and flushed. */
export const populationOf = (volume: KubeObject | undefined): Population | undefined =>
  readMark(volume, annotations.populated, Population);

/** Of files there is no disk. */
export const holdsFiles = (population: Population | undefined): boolean =>
  population?.inspection.format === archiveFormat;

/** By which others find what a golden volume or snapshot holds. */
export const contentLabel = (content: string | undefined): Readonly<Record<string, string>> =>
  content === undefined ? {} : { [labels.content]: content };

/** Merge patch that marks a volume as filled, together with what clients of the owner's kind look for, and says how to run what is in it. */
export const populatedPatch = (
  population: Population,
  marks: Readonly<Record<string, string>>,
  ownLabels: Readonly<Record<string, string>> = {},
): object => {
  const told = { ...guestLabels(population), ...ownLabels };
  return {
    metadata: {
      ...(Object.keys(told).length === 0 ? {} : { labels: told }),
      annotations: { ...populatedMark(population), ...marks },
    },
  };
};

/** Labels that tell consumers how to run the disk, as its image said. Of what else an image may say, nothing is taken. */
export const guestLabels = ({ inspection }: Population): Readonly<Record<string, string>> =>
  travellingLabels(inspection.labels);

/** The mark of a volume that comes filled. */
export const populatedMark = (population: Population): Readonly<Record<string, string>> => ({
  [annotations.populated]: JSON.stringify(population),
});

// How large a volume must be to hold a disk, and how large a disk fits into a volume. Sizes are bytes.

const mebibyte = 2 ** 20;

/** Journals and tables of a file system have a fixed cost too, which dominates on small volumes. */
const fixedOverhead = 64 * mebibyte;

const roundUp = (bytes: number): number => Math.max(1, Math.ceil(bytes / mebibyte)) * mebibyte;

/**
 * Size to ask for so that a disk of `diskBytes` fits: the disk itself on a block device, the disk as a file otherwise. CDI's arithmetic: whole
 * mebibytes of disk, and the overhead as a share of them.
 */
export const volumeBytesFor = (diskBytes: number, mode: VolumeMode, overhead: number): number => {
  const disk = roundUp(diskBytes);
  return mode === 'Block' ? disk : Math.ceil((1 + overhead) * disk);
};

/** Size of a volume of ours that a file of `fileBytes` is written into whole: unlike a disk's, none of it is left out as a hole. */
export const fileVolumeBytesFor = (fileBytes: number, overhead: number): number =>
  Math.max(volumeBytesFor(fileBytes, 'Filesystem', overhead), roundUp(fileBytes) + fixedOverhead);

/** Largest disk to let into a volume of `volumeBytes`: at least what `volumeBytesFor` sized it for, never below one byte. */
export const diskBytesIn = (volumeBytes: number, mode: VolumeMode, overhead: number): number =>
  mode === 'Block'
    ? Math.max(1, volumeBytes)
    : Math.max(1, Math.floor(Math.ceil(volumeBytes / (1 + overhead)) / mebibyte) * mebibyte);
