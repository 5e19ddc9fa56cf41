// hypercloud.tmaxanc.com VirtualMachineImage ↔ image: the states, reasons and child names of the original, and ours in addition.
import { type HyperCloudImage, hyperCloudImageKind, hyperCloudSources } from '#shared/api/hypercloud/image.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { DesiredCondition } from '#shared/api/conditions.ts';
import type { ImagePhase, ImageState } from '#shared/populate/filled.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { phaseOf, readOriginal } from '#shared/resources/hypercloud-image/original.ts';
import { type ImageDialect, readMetadata } from '#shared/resources/dialect.ts';
import { readRestored, restoredFrom } from '#shared/populate/restore-source.ts';
import { faultsOfRestored } from '#shared/resources/image-rules.ts';
import { hyperCloudImageRules } from '#shared/resources/hypercloud-image/rules.ts';
import { faultIf, faultsOf } from '#shared/resources/rule.ts';
import { readAccess } from '#shared/resources/source-access.ts';
import type { SourceAccess } from '#shared/populate/sources/servers.ts';
import { finishStatus, toCommonStatus, toOwnConditions, toState } from '#shared/resources/status.ts';
import type { Fault } from '#shared/runtime/errors.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { AskMayUse } from '#shared/access/permissions.ts';
import { type Origin, readClaimOrigin, waitFor } from '#shared/populate/clone/origin.ts';
import type { Image, ImageStorage } from '#shared/backends/backend.ts';

/** The kind has no such field. */
const retries = 3;

const toImage = (object: HyperCloudImage): Image => {
  const { metadata, spec } = object;
  const restored = readRestored(metadata.annotations);
  const from = restoredFrom(restored);
  return {
    ...readMetadata(object),
    backend: 'csi',
    displayName: metadata.name,
    faults: [...faultsOf(hyperCloudImageRules, object), ...unservedSources(spec.source), ...faultsOfRestored(restored)],
    source: from ?? readSource(spec.source),
    // The checksum of the published file does not apply to a backup: its chunks have their own digests.
    checksum: from === undefined ? readChecksum(spec.checksum) : undefined,
    storage: readStorage(spec),
    childNames: { volume: `${metadata.name}-image-pvc`, snapshot: `${metadata.name}-image-snapshot` },
    volumeMarks: { filling: { imported: 'no' }, filled: { imported: 'yes' } },
    retries,
    ...readOriginal(object.status),
    state: toState(object.status, phaseOf(object.status)),
  };
};

type Source = HyperCloudImage['spec']['source'];

const unservedSources = ({ hostPath }: Source): readonly Fault[] => [
  ...faultIf(
    hostPath !== undefined,
    'spec.source.hostPath',
    'is not supported, because it reads files of a node; use http',
  ),
];

type Field = (typeof hyperCloudSources)[number];
type Written = { readonly [F in Field]: NonNullable<Source[F]> };
type MaybeWritten = { readonly [F in keyof Written]?: Written[F] | undefined };

/** Each source as written; `undefined`: refused, and `faults` says why. */
const readers: { readonly [F in keyof Written]: (source: Written[F], access: SourceAccess) => Image['source'] } = {
  http: (text, access) => {
    const parsed = parseSourceUrl(text);
    return 'value' in parsed ? { type: 'http', url: parsed.value, ...access } : undefined;
  },
  objectStore: ({ bucketName, objectName }) => ({ type: 'object', bucket: bucketName, key: objectName }),
  hostPath: () => undefined,
};

const readField = <F extends Field>(source: MaybeWritten, field: F, access: SourceAccess): Image['source'] => {
  const written = source[field];
  return written === undefined ? undefined : readers[field](written, access);
};

/** Only one is set, or the image has a fault. */
const readSource = (source: Source): Image['source'] => {
  const field = hyperCloudSources.find((one) => source[one] !== undefined);
  return field && readField(source, field, readAccess(source));
};

const readChecksum = (text: string | undefined): Image['checksum'] => {
  const parsed = text === undefined ? undefined : parseChecksum(text);
  return parsed !== undefined && 'value' in parsed ? parsed.value : undefined;
};

const readStorage = ({ pvc = {}, ...spec }: HyperCloudImage['spec']): ImageStorage => ({
  className: nonEmpty(spec.storageClassName) ?? nonEmpty(pvc.storageClassName),
  // The released operator supported only block volumes, and its clients restore them as such.
  volumeMode: pvc.volumeMode ?? 'Block',
  accessModes: pvc.accessModes,
  capacityBytes: parseQuantity(pvc.resources?.requests?.['storage']),
  snapshotClassName: nonEmpty(spec.snapshotClassName),
});

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

const states = {
  Pending: 'Creating',
  Cloning: 'Creating',
  Downloading: 'Creating',
  Converting: 'Creating',
  Verifying: 'Creating',
  Snapshotting: 'Creating',
  Exporting: 'Creating',
  Available: 'Available',
  Failed: 'Error',
  Terminating: 'Creating',
} as const satisfies Record<ImagePhase, 'Creating' | 'Available' | 'Error'>;

/** Type, reasons and messages that clients of the original wait for. */
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
      [toReadyToUse(state), ...toOwnConditions(state)],
      image,
      now,
    ),
};

// A golden HyperCloud image as the source of a volume: its claim, and its snapshot if it has one.

export const readImageOrigin = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  mayUse: AskMayUse,
): Promise<Origin> => {
  const what = `image ${key.name}`;
  const object = await kube.get(hyperCloudImageKind.type, key);
  if (object === undefined) return waitFor('SourceNotFound', `${what} does not exist in namespace ${key.namespace}`);
  const { deleting, state } = hyperCloudImages.toImage(object);
  if (deleting) return waitFor('SourceDeleted', `${what} is being deleted`);
  if (state.phase !== 'Available') return waitFor('SourceNotReady', `${what} is not ready: ${state.message}`);
  const snapshot = await readySnapshot(kube, { ...key, name: state.children?.snapshot });
  return readClaimOrigin(kube, { ...key, name: state.children?.volume ?? '' }, { what, snapshot, mayUse });
};

const readySnapshot = async (
  kube: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string | undefined },
): Promise<string | undefined> => {
  const snapshot = name === undefined ? undefined : await kube.get(volumeSnapshots, { namespace, name });
  const isUsable = snapshot?.status?.readyToUse === true && snapshot.metadata.deletionTimestamp === undefined;
  return isUsable ? name : undefined;
};
