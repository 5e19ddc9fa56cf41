// harvesterhci.io VirtualMachineImage ↔ image: Harvester's conditions, and ours in addition.
import { readGrants } from '#shared/access/permissions.ts';
import { isTrue, type DesiredCondition } from '#shared/api/conditions.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ImagePhase, ImageState } from '#shared/populate/filled.ts';
import { isOriginal } from '#shared/backends/cdi/original.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { type ImageDialect, readMetadata } from '#shared/resources/dialect.ts';
import { harvesterImageRules } from '#shared/resources/harvester-image/rules.ts';
import { readSource } from '#shared/resources/harvester-image/source.ts';
import { faultsOf } from '#shared/resources/rule.ts';
import { finishStatus, toCommonStatus, toOwnConditions, toState } from '#shared/resources/status.ts';
import { type Restored, readRestored, restoredFrom } from '#shared/populate/restore-source.ts';
import { faultsOfRestored } from '#shared/resources/image-rules.ts';
import { Inspection } from '#shared/transfer/report.ts';
import { annotations } from '#shared/api/names.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import type { Image } from '#shared/backends/backend.ts';
import { isSent } from '#shared/populate/source.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

const defaultRetries = 3;

/** Harvester's phase after a successful import. */
const usablePhase = 'Imported';

const toImage = (object: HarvesterImage): Image => {
  const { metadata, spec } = object;
  const restored = readRestored(metadata.annotations);
  const from = restoredFrom(restored);
  const source = from ?? readSource(object);
  const name = volumeName(object, restored);
  const comesFromOriginal = isOriginal(object);
  const phase = comesFromOriginal || object.status?.phase === usablePhase ? 'Available' : object.status?.phase;
  return {
    ...readMetadata(object),
    backend: spec.backend ?? 'backingimage',
    displayName: spec.displayName,
    faults: [...faultsOf(harvesterImageRules, object), ...faultsOfRestored(restored)],
    source,
    isUpload: isSent(source),
    // The checksum of the published file does not apply to a backup: its chunks have their own digests.
    checksum: from === undefined ? readChecksum(spec.checksum) : undefined,
    offered: readOffer(object),
    grants: readGrants(object),
    storage: {
      className: spec.targetStorageClassName || metadata.annotations?.[harvesterAnnotations.storageClassName],
      classParameters: spec.storageClassParameters,
      ...upgradeModes(metadata.annotations),
    },
    childNames: { volume: name, snapshot: name },
    volumeMarks: { filling: goldenMarks(object), filled: {} },
    retries: spec.retry ?? defaultRetries,
    comesFromOriginal,
    state: toState(object.status, phase),
  };
};

/** Volumes in backups refer to its former name, and a deleted image comes back with its volume. */
const volumeName = ({ metadata, status }: HarvesterImage, restored: Restored): string =>
  status?.children?.volume ??
  metadata.annotations?.[annotations.undelete] ??
  (restored.is === 'restored' ? restored.mark.volume : undefined) ??
  `vmi-${metadata.uid ?? ''}`;

/** An invalid value was not written by Bullion. */
const readOffer = ({ metadata }: HarvesterImage): Image['offered'] =>
  parseJsonAs(Inspection, metadata.annotations?.[annotations.offered]);

/** Back reference that Harvester's tools read on volumes, and the mark by which its UI hides volumes that are not disks. */
const goldenMarks = ({ metadata }: HarvesterImage): Readonly<Record<string, string>> => ({
  [harvesterAnnotations.imageId]: `${metadata.namespace ?? ''}/${metadata.name}`,
  [harvesterAnnotations.goldenImage]: 'true',
});

/** All nodes read the files of an upgrade at the same time. */
const upgradeModes = (marks: HarvesterImage['metadata']['annotations'] = {}): Partial<Image['storage']> =>
  marks[harvesterAnnotations.upgradeImage] === 'True'
    ? { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] }
    : {};

const readChecksum = (text: string | undefined): Image['checksum'] => {
  const parsed = text === undefined || text === '' ? undefined : parseChecksum(text, 'sha512');
  return parsed !== undefined && 'value' in parsed ? parsed.value : undefined;
};

const toPhase = (phase: ImagePhase): string => (phase === 'Available' ? usablePhase : phase);

/** The message of a failure: the text that scripts for Harvester look for, followed by ours. */
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

/** True is Harvester's only sign of a final failure; a failure that is retried is only shown in the message. */
const toRetryLimit = (state: ImageState): DesiredCondition => {
  const type = 'RetryLimitExceeded';
  if (state.phase === 'Failed') return { type, status: 'True', reason: '', message: describeFailure(state.message) };
  const message = state.lastFailure === undefined ? '' : describeFailure(state.lastFailure.message);
  return { type, status: 'False', reason: '', message };
};

/** True once the image has a storage object; stays True, as in Harvester. */
const toInitialized = (object: HarvesterImage, state: ImageState): DesiredCondition => {
  const type = 'Initialized';
  const { job, volume, backingImage } = state.children ?? {};
  const hasBegun = [job, volume, backingImage].some((child) => child !== undefined);
  const isInitialized = hasBegun || isTrue(object.status?.conditions, type);
  if (isInitialized) return { type, status: 'True', reason: 'Initialized', message: '' };
  return state.phase === 'Failed'
    ? { type, status: 'False', reason: '', message: describeFailure(state.message) }
    : { type, status: 'Unknown', reason: '', message: '' };
};

const appliedUrlOf = (image: Image): string | undefined =>
  image.source?.type === 'http' ? redactUrl(image.source.url) : undefined;

/** The class of the golden data volume. A class that was created for the image is used for disks, and is derived from that one. */
const targetClassOf = ({ storage }: Image, { storageClassName, children }: ImageState): string | undefined =>
  storage.className ?? (children?.storageClass === undefined ? storageClassName : undefined);

export const harvesterImages: ImageDialect<HarvesterImage> = {
  kind: harvesterImageKind,
  namesAreUnique: true,
  toImage,
  toStatus: (object, image, state, now) =>
    finishStatus(
      {
        ...object.status,
        ...toCommonStatus(image, state),
        phase: toPhase(state.phase),
        appliedUrl: appliedUrlOf(image),
        targetStorageClassName: targetClassOf(image, state),
      },
      [toInitialized(object, state), toImported(state), toRetryLimit(state), ...toOwnConditions(state)],
      image,
      now,
    ),
};
