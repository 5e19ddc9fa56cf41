// The view of an image for backups: as read by its kind's dialect, and its requested backup. Used throughout this folder.
import { annotations, finalizers } from '#shared/api/names.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { BackupStatus, CommonImageStatus } from '#shared/api/image-status.ts';
import type { KubeObject, ObjectRef, ResourceType } from '#shared/api/object.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { type RestoreMark, readRestored } from '#shared/populate/restore-source.ts';
import { imageReconcilerOf } from '#shared/resources/registry.ts';
import type { Image } from '#shared/backends/backend.ts';

export interface ImageObjectStatus extends CommonImageStatus {
  readonly backup?: BackupStatus | undefined;
}

export interface BackupImageObject extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>> & { readonly backup?: boolean | undefined };
  readonly status?: ImageObjectStatus;
}

/** The kinds whose images are kept in backup targets. */
export const imageTypes: readonly ResourceType<BackupImageObject>[] = [
  harvesterImageKind.type,
  hyperCloudImageKind.type,
];

/** `undefined` for objects of other kinds. */
export const imageTypeOf = (ref: Pick<ObjectRef, 'apiVersion' | 'kind'>): ResourceType<BackupImageObject> | undefined =>
  imageTypes.find((type) => apiVersionOf(type) === ref.apiVersion && type.kind === ref.kind);

export interface BackedImage {
  readonly type: ResourceType<BackupImageObject>;
  readonly object: BackupImageObject;
  readonly image: Image;
  /** Its user requests a backup. */
  readonly isWanted: boolean;
  readonly isHeld: boolean;
  /** The backup it was restored from, if any. */
  readonly restored: RestoreMark | undefined;
}

/** The annotation requests a backup independently of the spec: for users who cannot change the spec, and for VM backups. */
const isWanted = ({ spec, metadata }: BackupImageObject): boolean =>
  spec.backup ?? metadata.annotations?.[annotations.backup] === 'true';

export const readImage = (
  type: ResourceType<BackupImageObject>,
  object: BackupImageObject,
): BackedImage | undefined => {
  const reconciler = imageReconcilerOf(object);
  if (reconciler === undefined) return undefined;
  const restored = readRestored(object.metadata.annotations);
  return {
    type,
    object,
    image: reconciler.read(object),
    isWanted: isWanted(object),
    isHeld: object.metadata.finalizers?.includes(finalizers.backup) ?? false,
    restored: restored.is === 'restored' ? restored.mark : undefined,
  };
};
