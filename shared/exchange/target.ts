// The observed state of a target: its object, its volume, its progress. Only reads.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import {
  apiVersionOf,
  groupKindOf,
  isOwnedBy,
  type KubeObject,
  type ObjectKey,
  type Owner,
  ownerOf,
  type ResourceType,
} from '#shared/api/object.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import { type TargetName, targetText } from '#shared/exchange/target-name.ts';
import { populationOf } from '#shared/populate/population.ts';
import { uploadPaused } from '#shared/transfer/fault.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

/** The state of an upload. */
export type UploadStage =
  /** It does not accept uploads. */
  | 'no-upload'
  /** An installed CDI receives the upload. */
  | 'theirs'
  /** The file must be announced first: there is no volume yet. */
  | 'unoffered'
  /** A receiver is ready, or will be soon. */
  | 'open'
  | 'done'
  | 'failed';

/** The object whose Job is started again, and the deadline that identifies the pause. */
export interface UploadPause {
  readonly type: ResourceType;
  readonly key: ObjectKey;
  readonly deadline: string;
}

export interface ExchangeTarget {
  readonly name: TargetName;
  /** UID of the object whose Job receives or reads. */
  readonly uid: string;
  readonly stage: UploadStage;
  /** Message of its status, for users. */
  readonly reason: string;
  readonly message: string;
  /** Name for downloaded files, without an extension. */
  readonly displayName: string;
  /** Format of the original file, detected from its content. */
  readonly sourceFormat?: string | undefined;
  /** The claim with its data. */
  readonly claimName: string | undefined;
  readonly isUsable: boolean;
  /** UID of the object whose Job receives an upload; `undefined`: there is none yet. */
  readonly receiver?: string | undefined;
  /** DataVolume that receives the file. */
  readonly volumeName?: string | undefined;
  /** Longhorn's backing image, which receives and stores the file. */
  readonly backingImage?: string | undefined;
  /** Number of failed attempts, and the error of the latest one. */
  readonly failures?: number;
  readonly lastFailure?: string | undefined;
  /** Its unfinished file waits for its client, and no Job runs. */
  readonly pause?: UploadPause | undefined;
  /** Checksum of the uploaded file, from its spec. */
  readonly checksum?: Checksum | undefined;
  readonly isEncrypted?: boolean;
  /** Accepts an archive, and contains its files. */
  readonly holdsFiles?: boolean;
  /** `sha256:<hex>` of the original file, if known. */
  readonly digest?: string | undefined;
}

const missing = (name: TargetName): Problem => new Problem(404, 'NotFound', `${targetText(name)} does not exist`);

const digestOf = (digests: Readonly<Record<string, string>> | undefined): string | undefined =>
  digests?.['sha256'] === undefined ? undefined : `sha256:${digests['sha256']}`;

interface Ready {
  readonly reason: string;
  readonly message: string;
}

const readyOf = (
  conditions: readonly { readonly type: string; reason?: string | undefined; message?: string | undefined }[] = [],
): Ready => {
  const { reason = 'Pending', message = 'waiting to be processed' } =
    conditions.find(({ type }) => type === 'Ready') ?? {};
  return { reason, message };
};

const pauseOf = (
  type: UploadPause['type'],
  { namespace = '', name }: KubeObject['metadata'],
  ready: Ready,
  deadline: string | undefined,
): Pick<ExchangeTarget, 'pause'> =>
  ready.reason === uploadPaused && deadline !== undefined
    ? { pause: { type, key: { namespace, name }, deadline } }
    : {};

const pauseOfVolume = ({ metadata, status }: DataVolume): Pick<ExchangeTarget, 'pause'> =>
  pauseOf(dataVolumeKind.type, metadata, readyOf(status?.conditions), status?.detail?.deadline);

/** Our DataVolumes report detailed progress from the start. */
const stageOfVolume = ({ spec, status }: DataVolume): UploadStage => {
  if (spec.source?.upload === undefined) return 'no-upload';
  if (status?.phase === 'Succeeded') return 'done';
  if (status?.phase !== undefined && status.detail === undefined) return 'theirs';
  return status?.phase === 'Failed' ? 'failed' : 'open';
};

const fromDataVolume = (name: TargetName, object: DataVolume): ExchangeTarget => ({
  name,
  uid: object.metadata.uid ?? '',
  stage: stageOfVolume(object),
  ...readyOf(object.status?.conditions),
  displayName: name.name,
  claimName: object.status?.claimName ?? name.name,
  volumeName: name.name,
  isUsable: object.status?.phase === 'Succeeded',
  holdsFiles: object.spec.contentType === 'archive',
  receiver: object.metadata.uid,
  digest: digestOf(object.status?.detail?.digests),
  sourceFormat: object.status?.detail?.format,
  ...pauseOfVolume(object),
});

const stageOfImage = ({ spec, status }: HarvesterImage): UploadStage => {
  if (spec.sourceType !== 'upload') return 'no-upload';
  if (status?.phase === 'Imported') return 'done';
  if (status?.phase === 'Failed') return 'failed';
  const { job, volume, backingImage } = status?.children ?? {};
  return [job, volume, backingImage].every((child) => child === undefined) ? 'unoffered' : 'open';
};

const checksumOf = ({ checksum = '' }: HarvesterImage['spec']): Checksum | undefined => {
  const parsed = checksum === '' ? undefined : parseChecksum(checksum, 'sha512');
  return parsed !== undefined && 'value' in parsed ? parsed.value : undefined;
};

/** The object whose Job receives the upload: the target itself, or the DataVolume that stores it. */
const receptionOf = async (
  kube: KubeClient,
  { metadata, status }: HarvesterImage,
): Promise<Partial<Pick<ExchangeTarget, 'receiver' | 'stage' | 'volumeName' | 'pause'>>> => {
  const { job, volume } = status?.children ?? {};
  if (job !== undefined) return { receiver: metadata.uid };
  if (volume === undefined || metadata.namespace === undefined) return {};
  const kept = await kube.get(dataVolumeKind.type, { namespace: metadata.namespace, name: volume });
  if (kept === undefined || !isOwnedBy(kept, metadata.uid ?? '')) return {};
  if (stageOfVolume(kept) === 'theirs') return { stage: 'theirs', volumeName: volume };
  return { receiver: kept.metadata.uid, ...pauseOfVolume(kept) };
};

const fromImage = (name: TargetName, object: HarvesterImage): ExchangeTarget => {
  const { metadata, spec, status = {} } = object;
  return {
    name,
    uid: metadata.uid ?? '',
    stage: stageOfImage(object),
    ...readyOf(status.conditions),
    displayName: spec.displayName,
    claimName: status.children?.volume,
    isUsable: status.phase === 'Imported',
    digest: digestOf(status.digests),
    sourceFormat: status.format,
    backingImage: status.children?.backingImage,
    failures: status.failed ?? 0,
    lastFailure: status.lastFailure?.message,
    ...pauseOf(harvesterImageKind.type, metadata, readyOf(status.conditions), status.deadline),
    checksum: checksumOf(spec),
    isEncrypted: spec.securityParameters?.cryptoOperation === 'encrypt',
  };
};

const volumeKind = groupKindOf({ apiVersion: apiVersionOf(dataVolumeKind.type), kind: dataVolumeKind.type.kind });

/** The author of a claim controls its labels, so they are trusted only if the volume itself names the claim as its own. */
const volumeBehind = async (kube: KubeClient, claim: TargetName, owner: Owner): Promise<DataVolume | undefined> => {
  if (owner.namespace !== claim.namespace) return undefined;
  const volume = await kube.get(dataVolumeKind.type, { namespace: claim.namespace, name: owner.name });
  if (volume === undefined || volume.metadata.uid !== owner.uid) return undefined;
  return (volume.status?.claimName ?? owner.name) === claim.name ? volume : undefined;
};

/** A claim of another owner is a user's disk: it can be downloaded but not filled. */
const fromClaim = async (kube: KubeClient, name: TargetName, claim: PersistentVolumeClaim): Promise<ExchangeTarget> => {
  const owner = ownerOf(claim);
  const volume = owner?.groupKind === volumeKind ? await volumeBehind(kube, name, owner) : undefined;
  if (volume !== undefined) return { ...fromDataVolume({ ...name, name: volume.metadata.name }, volume), name };
  const { phase = 'Pending' } = claim.status ?? {};
  return {
    sourceFormat: populationOf(claim)?.inspection.format,
    name,
    uid: claim.metadata.uid ?? '',
    stage: 'no-upload',
    reason: phase,
    message: `claim ${name.name} is ${phase}`,
    displayName: name.name,
    claimName: name.name,
    isUsable: phase === 'Bound' && (owner === undefined || populationOf(claim) !== undefined),
  };
};

/** Throws a Problem (404). Call `permit` first. */
export const findTarget = async (kube: KubeClient, name: TargetName): Promise<ExchangeTarget> => {
  const key = { namespace: name.namespace, name: name.name };
  switch (name.plural) {
    case 'datavolumes': {
      const object = await kube.get(dataVolumeKind.type, key);
      if (object === undefined) throw missing(name);
      return fromDataVolume(name, object);
    }
    case 'virtualmachineimages': {
      const object = await kube.get(harvesterImageKind.type, key);
      if (object === undefined) throw missing(name);
      const target = fromImage(name, object);
      return target.stage === 'open' ? { ...target, ...(await receptionOf(kube, object)) } : target;
    }
    case 'persistentvolumeclaims': {
      const claim = await kube.get(persistentVolumeClaims, key);
      if (claim === undefined) throw missing(name);
      return fromClaim(kube, name, claim);
    }
  }
};
