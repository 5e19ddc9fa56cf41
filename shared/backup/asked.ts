// Images that a VM backup needs, and images whose data is in a Longhorn backup: their metadata must be kept too. They are annotated as if their
// user had requested a backup.
import {
  type BackupBackingImage,
  type VirtualMachineBackup,
  backupBackingImages,
  virtualMachineBackups,
} from '#shared/api/foreign/backup.ts';
import { storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { BackupDeps } from './settings.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** `<namespace>/<name>` of an image. */
const imageIdOf = ({ metadata }: Pick<KubeObject, 'metadata'>): string | undefined =>
  metadata.annotations?.[harvesterAnnotations.imageId];

const idsOfVmBackup = async ({ kube }: BackupDeps, { status }: VirtualMachineBackup): Promise<readonly string[]> => {
  if (status?.readyToUse !== true) return [];
  const ids = (status.volumeBackups ?? []).map(({ persistentVolumeClaim: claim }) => idOfClaim(kube, claim));
  return (await Promise.all(ids)).filter((id) => id !== undefined);
};

type BackedUpClaim = NonNullable<
  NonNullable<VirtualMachineBackup['status']>['volumeBackups']
>[number]['persistentVolumeClaim'];

/** The claim's own annotation takes precedence over its class. */
const idOfClaim = async (kube: BackupDeps['kube'], claim: BackedUpClaim): Promise<string | undefined> => {
  const written = claim?.metadata?.annotations?.[harvesterAnnotations.imageId];
  if (written) return written;
  const name = claim?.spec?.storageClassName;
  const storageClass = name === undefined ? undefined : await kube.get(storageClasses, { name });
  return (storageClass && imageIdOf(storageClass)) || undefined;
};

const idOfDataBackup = async (
  { kube }: BackupDeps,
  { metadata, status }: BackupBackingImage,
): Promise<readonly string[]> => {
  if (status?.state !== 'Completed') return [];
  const name = status.backingImage || metadata.name;
  const found = await kube.get(backingImages, { namespace: longhornNamespace, name });
  const id = found && imageIdOf(found);
  return id ? [id] : [];
};

/** The setting of its user takes precedence. */
const mark = async ({ kube, log }: BackupDeps, id: string): Promise<void> => {
  const [namespace = '', name = ''] = id.split('/');
  const image = await kube.get(harvesterImageKind.type, { namespace, name });
  if (image === undefined || image.metadata.deletionTimestamp !== undefined) return;
  if (image.metadata.annotations?.[annotations.backup] !== undefined) return;
  await kube.mergePatch(
    harvesterImageKind.type,
    { namespace, name },
    { metadata: { resourceVersion: image.metadata.resourceVersion, annotations: { [annotations.backup]: 'true' } } },
  );
  log.info('image is backed up from now on', { image: id });
};

const isOf = (object: KubeObject, type: { readonly kind: string }): boolean => object.kind === type.kind;

/** No effect for objects of other kinds. */
export const markImagesOf = async (deps: BackupDeps, object: KubeObject): Promise<void> => {
  const ids = isOf(object, virtualMachineBackups)
    ? await idsOfVmBackup(deps, object as VirtualMachineBackup)
    : isOf(object, backupBackingImages)
      ? await idOfDataBackup(deps, object as BackupBackingImage)
      : [];
  for (const id of new Set(ids)) await mark(deps, id);
};

/** Handles objects without an event. The kinds do not exist without Harvester and Longhorn. */
export const markImagesOfBackups = async (deps: BackupDeps): Promise<void> => {
  for (const type of [virtualMachineBackups, backupBackingImages] as readonly unknown[]) {
    try {
      for await (const object of deps.kube.listAll(type as typeof virtualMachineBackups))
        await markImagesOf(deps, object);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
};
