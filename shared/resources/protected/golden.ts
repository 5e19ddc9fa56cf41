// Protects the objects that store a golden image from deletion. Marks on an object only refer to an image; the record of the image itself
// decides, so that marks cannot make an object undeletable.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { annotations, labels } from '#shared/api/names.ts';
import {
  apiVersionOf,
  groupKindOf,
  type KubeObject,
  type Owner,
  ownerOf,
  type ResourceType,
} from '#shared/api/object.ts';
import type { ImageChildren } from '#shared/populate/filled.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { graceOf } from '#shared/resources/deleted-images/record.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import type { Image } from '#shared/backends/backend.ts';

const typeRef = (type: Pick<ResourceType, 'group' | 'version' | 'kind'>) => ({
  apiVersion: apiVersionOf(type),
  kind: type.kind,
});

interface WithStatus extends KubeObject {
  readonly status?: { readonly readyToUse?: boolean; readonly phase?: string };
}

/** A kind that stores images. */
export interface GoldenKind {
  readonly type: ResourceType;
  /** Field of the image that records its name. */
  readonly child: keyof ImageChildren;
  /** Its namespace. Default: that of the image. */
  readonly namespace?: string | undefined;
  /** Whether it is protected before the image is usable; an object that is still being filled is created again after a deletion. */
  readonly holds: (object: WithStatus) => boolean;
}

const golden = (type: unknown, rest: Omit<GoldenKind, 'type'>): GoldenKind => ({ type: type as ResourceType, ...rest });

export const goldenKinds: readonly GoldenKind[] = [
  golden(persistentVolumeClaims, {
    child: 'volume',
    holds: ({ metadata }) => metadata.annotations?.[annotations.populated] !== undefined,
  }),
  golden(dataVolumeKind.type, { child: 'volume', holds: ({ status }) => status?.phase === 'Succeeded' }),
  golden(volumeSnapshots, { child: 'snapshot', holds: ({ status }) => status?.readyToUse === true }),
  golden(storageClasses, { child: 'storageClass', namespace: '', holds: () => true }),
  golden(backingImages, { child: 'backingImage', namespace: longhornNamespace, holds: () => false }),
];

export const goldenTypes: readonly ResourceType[] = goldenKinds.map(({ type }) => type);

const kindOf = ({ apiVersion, kind }: KubeObject): GoldenKind | undefined =>
  goldenKinds.find(
    ({ type }) => type.kind === kind && groupKindOf(typeRef(type)) === groupKindOf({ apiVersion, kind }),
  );

/** The data volume that created a claim. An installed CDI may not copy the marks of a data volume, but the claim refers to it. */
export const makerOf = async ({ kind, metadata }: KubeObject, kube: KubeClient): Promise<DataVolume | undefined> => {
  const { type } = dataVolumeKind;
  const maker = metadata.ownerReferences?.find((one) => one.controller === true && one.kind === type.kind);
  if (kind !== persistentVolumeClaims.kind || maker?.apiVersion !== apiVersionOf(type)) return undefined;
  const found = await kube.get(type, { namespace: metadata.namespace, name: maker.name });
  return found?.metadata.uid === maker.uid ? found : undefined;
};

/** The image, if it exists and is not being deleted. An image with the same name and another UID is another image. */
const readImage = async <T extends ImageObject>(
  dialect: ImageDialect<T>,
  { groupKind, namespace, name, uid }: Owner,
  kube: KubeClient,
): Promise<Image | undefined> => {
  const { type } = dialect.kind;
  if (groupKindOf(typeRef(type)) !== groupKind) return undefined;
  const found = await kube.get(type, { namespace, name });
  const isIt = found?.metadata.uid === uid && found.metadata.deletionTimestamp === undefined;
  return isIt ? dialect.toImage(found) : undefined;
};

const isRecorded = ({ child, namespace }: GoldenKind, { metadata }: KubeObject, { ref, state }: Image): boolean =>
  (metadata.namespace ?? '') === (namespace ?? ref.namespace) && state.children?.[child] === metadata.name;

/** The image that an owner stands for, as its owners wrote it. */
export const imageOf = async ({ groupKind, namespace, name, uid }: Owner, kube: KubeClient) => {
  const types: readonly ResourceType[] = [harvesterImages.kind.type, hyperCloudImages.kind.type];
  const type = types.find((one) => groupKindOf(typeRef(one)) === groupKind);
  const found = type === undefined ? undefined : await kube.get(type, { namespace, name });
  return found?.metadata.uid === uid ? found : undefined;
};

/** The image that would be lost with this object; at most two look-ups. */
export const imageHeldIn = async (object: KubeObject, kube: KubeClient): Promise<Owner | undefined> => {
  const kind = kindOf(object);
  const owner = ownerOf((await makerOf(object, kube)) ?? object);
  if (kind === undefined || owner === undefined) return undefined;
  const image = (await readImage(harvesterImages, owner, kube)) ?? (await readImage(hyperCloudImages, owner, kube));
  if (image === undefined || !isRecorded(kind, object, image)) return undefined;
  return image.state.phase === 'Available' || kind.holds(object) ? owner : undefined;
};

export const whatOf = ({ kind, namespace, name }: AdmissionRequest): string =>
  `${kind.kind} ${[namespace, name].filter(Boolean).join('/')}`;

/** What can be locked: every kind that is an image, or stands for one. */
export const lockableTypes: readonly ResourceType[] = [
  harvesterImages.kind.type,
  hyperCloudImages.kind.type,
  dataSourceKind.type,
  dataImportCronKind.type,
  goldenImagePolicyKind.type,
  dataVolumeKind.type,
  persistentVolumeClaims,
  volumeSnapshots,
];

export const isLocked = ({ metadata }: KubeObject): boolean => metadata.labels?.[labels.protected] === 'true';

/** The garbage collector deletes what an image owns before the image in the foreground: nothing would be left to bring it back. */
const keepForUndelete = (request: AdmissionRequest): AdmissionAnswer => {
  const message = `${whatOf(request)} could not be brought back: deleted in the foreground, it loses its volume first. Delete it with --cascade=background, or remove its annotation ${annotations.undeleteFor}`;
  return refused('Forbidden', [], message);
};

const isImage = ({ resource }: AdmissionRequest): boolean =>
  [harvesterImages, hyperCloudImages].some(
    ({ kind: { type } }) => type.group === resource.group && type.plural === resource.resource,
  );

/** Of a data volume: its claim, where that has a lock, since it would be deleted with it, or stay behind as what nobody can use. */
const lockedClaimOf = async ({ kind, metadata }: KubeObject, kube: KubeClient): Promise<KubeObject | undefined> => {
  if (kind !== dataVolumeKind.type.kind) return undefined;
  const claim = await kube.get(persistentVolumeClaims, metadata);
  const isIts =
    claim?.metadata.ownerReferences?.some((one) => one.kind === kind && one.name === metadata.name) === true;
  return isIts && isLocked(claim) ? claim : undefined;
};

const unlockOf = (resource: string, { namespace, name }: Pick<AdmissionRequest, 'namespace' | 'name'>): string =>
  `remove that first (kubectl label ${resource} ${name ?? ''} -n ${namespace ?? ''} ${labels.protected}-)`;

export const keepLocked = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { oldObject, resource, options } = request;
  if (oldObject === undefined) return allowed;
  const isForeground = options?.propagationPolicy === 'Foreground';
  if (isForeground && isImage(request) && graceOf(oldObject) !== undefined) return keepForUndelete(request);
  if (isLocked(oldObject)) {
    const what = `${resource.resource}${resource.group === '' ? '' : `.${resource.group}`}`;
    const message = `${whatOf(request)} is protected from deletion by its label ${labels.protected}: ${unlockOf(what, request)}`;
    return refused('Forbidden', [], message);
  }
  const claim = await lockedClaimOf(oldObject, kube);
  if (claim === undefined) return allowed;
  const message = `${whatOf(request)} is protected from deletion by the label ${labels.protected} of its PersistentVolumeClaim: ${unlockOf(persistentVolumeClaims.plural, claim.metadata)}`;
  return refused('Forbidden', [], message);
};

export const keepGolden = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const image = request.oldObject === undefined ? undefined : await imageHeldIn(request.oldObject, kube);
  if (image === undefined) return allowed;
  const name = `${image.groupKind} ${image.namespace}/${image.name}`;
  return refused('Forbidden', [], `${whatOf(request)} stores the golden image ${name}: delete that image instead`);
};
