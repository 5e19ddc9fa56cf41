// hypercloud.tmaxanc.com VirtualMachineImage ↔ image: the original states, reasons and child names, and ours beside them.
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { DesiredCondition } from '#shared/api/conditions.ts';
import type { Image, ImagePhase, ImageState, ImageStorage } from '#shared/backends/image.ts';
import { parseChecksum } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';
import { type ImageDialect, readMetadata } from '#shared/resources/dialect.ts';
import { finishStatus, toCommonStatus, toReadyCondition, toState } from '#shared/resources/status.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import type { TransferSource } from '#shared/transfer/spec.ts';

/** The kind has no field for it. */
const retries = 3;

const toImage = (object: HyperCloudImage): Image => {
  const { metadata, spec } = object;
  const faults: Fault[] = [];
  const source = readSource(spec.source, faults);
  const checksum = readChecksum(spec.checksum, faults);
  const storage = readStorage(spec, faults);
  return {
    ...readMetadata(object),
    backend: 'csi',
    displayName: metadata.name,
    faults,
    source,
    checksum,
    storage,
    childNames: { volume: `${metadata.name}-image-pvc`, snapshot: `${metadata.name}-image-snapshot` },
    volumeMarks: { filling: { imported: 'no' }, filled: { imported: 'yes' } },
    retries,
    state: toState(object.status, object.status?.phase),
  };
};

const readSource = (source: HyperCloudImage['spec']['source'], faults: Fault[]): TransferSource | undefined => {
  if (source.objectStore !== undefined) {
    faults.push({ field: 'spec.source.objectStore', message: 'is not served by this installation: use http' });
  }
  if (source.hostPath !== undefined) {
    faults.push({ field: 'spec.source.hostPath', message: 'is not served, since it reads files of a node: use http' });
  }
  if (source.http === undefined) {
    if (faults.length === 0) faults.push({ field: 'spec.source', message: 'names no source: set http' });
    return undefined;
  }
  const parsed = parseSourceUrl(source.http);
  if ('value' in parsed) return { type: 'http', url: parsed.value };
  faults.push({ field: 'spec.source.http', message: parsed.problem });
  return undefined;
};

const readChecksum = (text: string | undefined, faults: Fault[]): Image['checksum'] => {
  if (text === undefined) return undefined;
  const parsed = parseChecksum(text);
  if ('value' in parsed) return parsed.value;
  faults.push({ field: 'spec.checksum', message: parsed.problem });
  return undefined;
};

const readStorage = (spec: HyperCloudImage['spec'], faults: Fault[]): ImageStorage => {
  const { pvc = {} } = spec;
  return {
    className: nonEmpty(spec.storageClassName) ?? nonEmpty(pvc.storageClassName),
    // The released operator knew block volumes alone, and its clients restore them as such.
    volumeMode: pvc.volumeMode ?? 'Block',
    accessModes: pvc.accessModes,
    capacityBytes: readCapacity(pvc, faults),
    snapshotClassName: nonEmpty(spec.snapshotClassName),
  };
};

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

const readCapacity = ({ resources }: NonNullable<HyperCloudImage['spec']['pvc']>, faults: Fault[]) => {
  const request = resources?.requests?.['storage'];
  if (request === undefined) return undefined;
  const bytes = parseQuantity(request);
  if (bytes !== undefined && bytes > 0) return bytes;
  faults.push({ field: 'spec.pvc.resources.requests.storage', message: `is no size: ${JSON.stringify(request)}` });
  return undefined;
};

const states = {
  Pending: 'Creating',
  Downloading: 'Creating',
  Converting: 'Creating',
  Verifying: 'Creating',
  Snapshotting: 'Creating',
  Available: 'Available',
  Failed: 'Error',
  Terminating: 'Creating',
} as const satisfies Record<ImagePhase, 'Creating' | 'Available' | 'Error'>;

/** Type, reasons and texts are those clients of the original wait for. */
const toReadyToUse = (state: ImageState): DesiredCondition => {
  const type = 'ReadyToUse';
  switch (states[state.phase]) {
    case 'Available':
      return { type, status: 'True', reason: 'VmiIsReady', message: 'Vmi is ready to use' };
    case 'Error':
      return { type, status: 'False', reason: 'SeeMessages', message: state.message };
    case 'Creating':
      return { type, status: 'False', reason: 'VmiIsCreating', message: 'VMI is in creating' };
  }
};

export const hyperCloudImages: ImageDialect<HyperCloudImage> = {
  kind: hyperCloudImageKind,
  toImage,
  toStatus: (object, image, state, now) =>
    finishStatus(
      { ...object.status, ...toCommonStatus(image, state), state: states[state.phase], phase: state.phase },
      [toReadyToUse(state), toReadyCondition(state)],
      image,
      now,
    ),
};
