// The Job that fills a volume: from another claim, or from a source of bytes. Called by the plans of this folder.
import type { Job, PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { diskBytesIn } from '#shared/populate/sizing.ts';
import { type TransferRequest, buildTransferJob } from '#shared/populate/transfer-job.ts';
import { holdsFiles, inspectedOf, requestedBytes, volumeModeOf } from '#shared/populate/volume.ts';
import { recordOf } from '#shared/populate/clone-record.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Whatever is copied was held against its digest when it was fetched. Volumes whose spec has faults never get as far as a Job. */
const filledFrom = (
  { ref, source, checksum, faults }: Volume,
  claim: PersistentVolumeClaim,
): Pick<TransferRequest, 'source' | 'checksum' | 'expected'> => {
  const record = recordOf(claim);
  const { name: claimName, volumeMode } = record?.from ?? {};
  if (claimName !== undefined && volumeMode !== undefined)
    return { source: { type: 'claim', claimName, volumeMode, holdsFiles: holdsFiles(record?.population) } };
  if (source?.type === 'transfer') return { source: source.from, checksum, expected: inspectedOf(claim) };
  throw new InvalidInput(`${ref.kind} ${ref.name} has no source of bytes`, faults);
};

/** What is to come into the claim are the files of an archive, or of a volume that holds such. */
const isForFiles = (volume: Volume, claim: PersistentVolumeClaim): boolean =>
  volume.source?.type === 'transfer' ? volume.holdsFiles === true : holdsFiles(recordOf(claim)?.population);

export const buildLookJob = (volume: Volume, settings: PopulateSettings): Job => {
  const { ref, retries, source } = volume;
  if (source?.type !== 'transfer') throw new InvalidInput(`${ref.kind} ${ref.name} has no source of bytes`);
  return buildTransferJob({ mode: 'inspect', owner: ref, source: source.from, retries, pod: volume.pod }, settings);
};

/** The guest's disk becomes as large as the volume lets it. */
export const buildFillJob = (volume: Volume, claim: PersistentVolumeClaim, settings: PopulateSettings): Job => {
  const volumeMode = volumeModeOf(claim);
  const capacityBytes = diskBytesIn(requestedBytes(claim), volumeMode, settings.filesystemOverhead);
  return buildTransferJob(
    {
      mode: 'import',
      owner: volume.ref,
      ...filledFrom(volume, claim),
      pod: volume.pod,
      retries: volume.retries,
      target: {
        claimName: claim.metadata.name,
        volumeMode,
        capacityBytes,
        ...(isForFiles(volume, claim) ? { content: 'archive' as const } : {}),
        ...(volumeMode === 'Filesystem' ? { diskBytes: capacityBytes } : {}),
        preallocated: volume.claim.preallocated !== undefined,
      },
    },
    settings,
  );
};
