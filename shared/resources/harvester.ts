// harvesterhci.io VirtualMachineImage ↔ image: the original conditions, and ours beside them.
import { isTrue, type DesiredCondition } from '#shared/api/conditions.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { Image, ImagePhase, ImageState } from '#shared/backends/image.ts';
import { parseChecksum } from '#shared/backends/rules/checksum.ts';
import { parseSourceUrl } from '#shared/backends/rules/source-url.ts';
import { type ImageDialect, readMetadata } from '#shared/resources/dialect.ts';
import { finishStatus, toCommonStatus, toReadyCondition, toState } from '#shared/resources/status.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import type { TransferSource } from '#shared/transfer/spec.ts';

const defaultRetries = 3;

/** Harvester's word for the end of an import. */
const usablePhase = 'Imported';

const toImage = (object: HarvesterImage): Image => {
  const { metadata, spec } = object;
  const faults: Fault[] = [];
  const source = readSource(spec, faults);
  const checksum = readChecksum(spec.checksum, faults);
  const phase = object.status?.phase === usablePhase ? 'Available' : object.status?.phase;
  return {
    ...readMetadata(object),
    backend: spec.backend ?? 'backingimage',
    displayName: spec.displayName,
    faults,
    source,
    checksum,
    storage: {
      className: spec.targetStorageClassName || metadata.annotations?.[harvesterAnnotations.storageClassName],
    },
    childNames: { volume: `vmi-${metadata.uid ?? ''}`, snapshot: `vmi-${metadata.uid ?? ''}` },
    volumeMarks: { filling: imageId(object), filled: imageId(object) },
    retries: spec.retry ?? defaultRetries,
    state: toState(object.status, phase),
  };
};

/** Back reference that Harvester's own tools look for on volumes. */
const imageId = ({ metadata }: HarvesterImage): Readonly<Record<string, string>> => ({
  'harvesterhci.io/imageId': `${metadata.namespace ?? ''}/${metadata.name}`,
});

const readSource = (spec: HarvesterImage['spec'], faults: Fault[]): TransferSource | undefined => {
  if (spec.sourceType !== 'download') {
    faults.push({
      field: 'spec.sourceType',
      message: `${JSON.stringify(spec.sourceType)} is not served by this installation: use download`,
    });
    return undefined;
  }
  const parsed = parseSourceUrl(spec.url ?? '');
  if ('value' in parsed) return { type: 'http', url: parsed.value };
  faults.push({ field: 'spec.url', message: parsed.problem });
  return undefined;
};

const readChecksum = (text: string | undefined, faults: Fault[]): Image['checksum'] => {
  if (text === undefined || text.trim() === '') return undefined;
  const parsed = parseChecksum(text, 'sha512');
  if ('value' in parsed) return parsed.value;
  faults.push({ field: 'spec.checksum', message: parsed.problem });
  return undefined;
};

const toPhase = (phase: ImagePhase): string => (phase === 'Available' ? usablePhase : phase);

/** What a failure says: the text scripts of the original look for, in front of ours. */
const describeFailure = (message: string): string => `failed due to error: ${message}`;

const toImported = (state: ImageState): DesiredCondition => {
  const type = 'Imported';
  switch (state.phase) {
    case 'Available':
      return { type, status: 'True', reason: 'Imported', message: '' };
    case 'Failed':
      return { type, status: 'False', reason: 'Importing', message: describeFailure(state.message) };
    default:
      return { type, status: 'Unknown', reason: 'Importing', message: state.message };
  }
};

/** True is the original's one sign of a final failure; a failure that is tried again shows its text here. */
const toRetryLimit = (state: ImageState): DesiredCondition => {
  const type = 'RetryLimitExceeded';
  if (state.phase === 'Failed') return { type, status: 'True', reason: '', message: describeFailure(state.message) };
  const message = state.lastFailure === undefined ? '' : describeFailure(state.lastFailure.message);
  return { type, status: 'False', reason: '', message };
};

/** True once something stands behind the image; stays so, as in the original. */
const toInitialized = (object: HarvesterImage, state: ImageState): DesiredCondition => {
  const type = 'Initialized';
  const hasBegun = state.children?.job !== undefined || state.children?.volume !== undefined;
  const isInitialized = hasBegun || isTrue(object.status?.conditions, type);
  if (isInitialized) return { type, status: 'True', reason: 'Initialized', message: '' };
  return state.phase === 'Failed'
    ? { type, status: 'False', reason: '', message: describeFailure(state.message) }
    : { type, status: 'Unknown', reason: '', message: '' };
};

const appliedUrlOf = (image: Image): string | undefined =>
  image.source?.type === 'http' ? redactUrl(image.source.url) : undefined;

export const harvesterImages: ImageDialect<HarvesterImage> = {
  kind: harvesterImageKind,
  toImage,
  toStatus: (object, image, state, now) =>
    finishStatus(
      {
        ...object.status,
        ...toCommonStatus(image, state),
        phase: toPhase(state.phase),
        appliedUrl: appliedUrlOf(image),
      },
      [toInitialized(object, state), toImported(state), toRetryLimit(state), toReadyCondition(state)],
      image,
      now,
    ),
};
