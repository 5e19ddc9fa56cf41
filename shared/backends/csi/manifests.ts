// The two Jobs of an image. Called by the plans of this folder.
import type { Job, PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { type FetchedSource, type Image, isFetched } from '#shared/backends/image.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { diskBytesIn } from '#shared/populate/sizing.ts';
import { buildTransferJob } from '#shared/populate/transfer-job.ts';
import { inspectedOf, requestedBytes, volumeModeOf } from '#shared/populate/volume.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Images whose spec has faults never get as far as a Job. */
const sourceOf = ({ ref, source, faults }: Image): FetchedSource => {
  if (source === undefined || !isFetched(source))
    throw new InvalidInput(`nothing can be fetched for ${ref.name}`, faults);
  return source;
};

export const buildInspectJob = (image: Image, settings: PopulateSettings): Job =>
  buildTransferJob({ mode: 'inspect', owner: image.ref, source: sourceOf(image), retries: image.retries }, settings);

export const buildImportJob = (image: Image, volume: PersistentVolumeClaim, settings: PopulateSettings): Job => {
  const volumeMode = volumeModeOf(volume);
  return buildTransferJob(
    {
      mode: 'import',
      owner: image.ref,
      source: sourceOf(image),
      checksum: image.checksum,
      expected: inspectedOf(volume),
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
