// The golden volume of an image, and the Jobs that look at its source and fill it. Called by the plans of this folder.
import type { Job, PersistentVolumeClaim, TypedLocalReference, VolumeMode } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { ClassAndProfile } from '#shared/populate/reading.ts';
import { type CloneRecord, recordAnnotation, recordOf } from '#shared/populate/clone/strategy.ts';
import { type ClaimProfile, claimProfileOf, namedSnapshotClass } from '#shared/populate/storage/profile.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { diskBytesIn } from '#shared/populate/population.ts';
import { type JobSource, isForJob } from '#shared/populate/source.ts';
import { type TransferRequest, buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { buildVolume, contentLabel, inspectedOf, requestedBytes, volumeModeOf } from '#shared/populate/population.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Image } from '#shared/backends/image.ts';

/** Images whose spec has faults never get as far as a Job. */
const sourceOf = ({ ref, source, faults }: Image): JobSource => {
  if (!isForJob(source)) throw new InvalidInput(`nothing can be fetched for ${ref.name}`, faults);
  return source;
};

export const buildInspectJob = (image: Image, settings: PopulateSettings): Job =>
  buildTransferJob({ mode: 'inspect', owner: image.ref, source: sourceOf(image), retries: image.retries }, settings);

/** Whatever is copied was held against its digest when it was fetched. */
const filledFrom = (
  image: Image,
  volume: PersistentVolumeClaim,
): Pick<TransferRequest, 'source' | 'checksum' | 'expected'> => {
  const from = recordOf(volume)?.from;
  const copied: JobSource | undefined = from && { type: 'claim', claimName: from.name, volumeMode: from.volumeMode };
  return copied === undefined
    ? { source: sourceOf(image), checksum: image.checksum, expected: inspectedOf(volume) }
    : { source: copied };
};

export const buildImportJob = (image: Image, volume: PersistentVolumeClaim, settings: PopulateSettings): Job => {
  const volumeMode = volumeModeOf(volume);
  return buildTransferJob(
    {
      mode: 'import',
      owner: image.ref,
      ...filledFrom(image, volume),
      retries: image.retries,
      target: {
        claimName: volume.metadata.name,
        volumeMode,
        capacityBytes: diskBytesIn(requestedBytes(volume), volumeMode, settings.filesystemOverhead),
      },
    },
    settings,
  );
};

/** Which modes the golden volume has: the user's, else those its class prefers. */
export const modesOf = ({ storage }: Image, { storageClass, profile }: ClassAndProfile): ClaimProfile => {
  const { volumeMode, accessModes } = claimProfileOf(storageClass, profile?.spec);
  return { volumeMode: storage.volumeMode ?? volumeMode, accessModes: storage.accessModes ?? accessModes };
};

/** Noted while it is known: nobody need be asked again once the volume is filled. */
const snapshotMark = ({ storage }: Image, { profile }: ClassAndProfile): Readonly<Record<string, string>> => {
  const told = storage.snapshotClassName === undefined ? namedSnapshotClass(profile) : undefined;
  return told === undefined ? {} : { [annotations.snapshotClass]: told };
};

interface Shape extends ClassAndProfile {
  /** Bytes to ask for, in the mode of the volume. */
  readonly bytes: (mode: VolumeMode) => number;
  /** What told its size; left out where the user did. */
  readonly inspected?: Inspection | undefined;
  /** What it is to hold, by the name others find it under. */
  readonly content: string | undefined;
  /** Of a volume that begins as a copy of another one. */
  readonly record?: CloneRecord;
  readonly dataSource?: TypedLocalReference | undefined;
}

export const buildGoldenVolume = (image: Image, shape: Shape): PersistentVolumeClaim => {
  const { storageClass, record, dataSource } = shape;
  const modes = modesOf(image, shape);
  const built = buildVolume({
    owner: image.ref,
    name: image.childNames.volume,
    storageClassName: storageClass?.metadata.name,
    ...modes,
    bytes: shape.bytes(modes.volumeMode),
    inspected: shape.inspected,
    annotations: {
      ...image.volumeMarks.filling,
      ...snapshotMark(image, shape),
      ...(record === undefined ? {} : recordAnnotation(record)),
    },
  });
  return {
    ...built,
    metadata: { ...built.metadata, labels: { ...built.metadata.labels, ...contentLabel(shape.content) } },
    spec: { ...built.spec, ...(dataSource === undefined ? {} : { dataSource }) },
  };
};
