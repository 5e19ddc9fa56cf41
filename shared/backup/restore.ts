// Restores images that are in a target but not in this cluster. Called by the tick, and by `bullion backups` as a dry run.
import { type BackupBackingImage, backupBackingImages } from '#shared/api/foreign/backup.ts';
import { namespaces, storageClasses } from '#shared/api/foreign/core.ts';
import { longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { harvesterImageKind, harvesterLabels } from '#shared/api/harvester/image.ts';
import type { BackupDeps } from './settings.ts';
import { buildRestored } from '#shared/backup/document.ts';
import { type BackedImage, imageTypeOf, readImage } from '#shared/backup/image.ts';
import { type Entry, type Tombstones, isNotedAsDeleted } from '#shared/backup/look.ts';
import type { Deleted } from '#shared/backup/memory.ts';
import type { ImageMetadata } from '#shared/backup/metadata.ts';
import { dataPrefix } from '#shared/backup/place.ts';
import {
  type RestoreDecision,
  type ObservedRestore,
  type StorageBackup,
  decideRestore,
} from '#shared/backup/restore-plan.ts';
import { type MissingSecret, missingAccess, missingOfClass } from '#shared/backup/secret.ts';
import { conflictCondition, recordBackupEvent, reportBackup } from '#shared/backup/report.ts';
import type { BackupTarget } from '#shared/backup/target.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import { registrationOf } from '#shared/backends/registry.ts';
import type { Store } from '#shared/clients/store/store.ts';
import { eachIfServed, ensureNamespace, tolerate } from '#shared/clients/kube/tolerant.ts';
import { AppError, isConflict } from '#shared/runtime/errors.ts';
import { indexKey } from '#shared/transfer/chunks/chunk-index.ts';

export interface RestoreContext {
  readonly deps: BackupDeps;
  readonly target: BackupTarget;
  readonly store: Store;
  readonly cluster: string;
  readonly tombstones: Tombstones;
  readonly deleted: readonly Deleted[];
}

export type Judged =
  | { readonly is: 'unreadable'; readonly message: string; readonly isPassing: boolean }
  | (RestoreDecision & { readonly metadata: ImageMetadata });

const unfitFor = ({ deps, target }: RestoreContext, { image, backend, data }: ImageMetadata): string | undefined => {
  if (imageTypeOf(image) === undefined) return `${image.kind} of ${image.apiVersion} is not served here`;
  const registration = registrationOf(deps.backends, backend);
  if (!registration.served) return `backend "${backend}" is not served here: ${registration.because}`;
  const { sources } = registration.backend.capabilities;
  const needed = data.kept === 'by-storage' ? 'restore' : target.type;
  return sources.includes(needed) ? undefined : `backend "${backend}" cannot be filled from ${target.name}`;
};

const existingOf = async ({ deps }: RestoreContext, { image }: ImageMetadata): Promise<BackedImage | undefined> => {
  const type = imageTypeOf(image);
  const object = type && (await deps.kube.get(type, { namespace: image.namespace, name: image.name }));
  return type && object && readImage(type, object);
};

const pageSize = 50;

/** Display names are unique among Harvester's images of a namespace. */
const nameHolderOf = async (
  { deps }: RestoreContext,
  { image, displayName }: ImageMetadata,
): Promise<BackedImage | undefined> => {
  const type = imageTypeOf(image);
  if (type === undefined || type.group !== harvesterImageKind.type.group) return undefined;
  const labelSelector = `${harvesterLabels.displayName}=${toDisplayNameLabel(displayName)}`;
  const { items } = await deps.kube.list(type, { namespace: image.namespace, labelSelector, limit: pageSize });
  const holder = items.find(
    ({ metadata, spec }) =>
      spec['displayName'] === displayName && metadata.name !== image.name && metadata.deletionTimestamp === undefined,
  );
  return holder && readImage(type, holder);
};

const toStorageBackup = ({ status = {} }: BackupBackingImage): StorageBackup =>
  status.state === 'Completed'
    ? { is: 'completed', checksum: status.checksum }
    : { is: 'unfinished', state: status.state ?? 'not begun' };

const storageBackupOf = async (
  { deps }: RestoreContext,
  { data, children }: ImageMetadata,
): Promise<StorageBackup | undefined> => {
  if (data.kept !== 'by-storage') return undefined;
  for await (const found of eachIfServed(deps.kube, backupBackingImages, { namespace: longhornNamespace })) {
    const name = found.status?.backingImage ?? found.metadata.name;
    if (name === children?.backingImage || found.status?.url === data.url) return toStorageBackup(found);
  }
  return { is: 'absent' };
};

/** A class that the backend creates for the image is restored with it. */
const missingClassOf = async (
  { deps }: RestoreContext,
  { storageClass, data }: ImageMetadata,
): Promise<string | undefined> => {
  if (storageClass === undefined || data.kept === 'by-storage') return undefined;
  const found = await deps.kube.get(storageClasses, { name: storageClass.name });
  return found === undefined ? storageClass.name : undefined;
};

const missingSecretOf = (
  { deps, target }: RestoreContext,
  metadata: ImageMetadata,
): Promise<MissingSecret | undefined> =>
  metadata.data.kept === 'by-storage'
    ? missingOfClass(deps, metadata)
    : missingAccess(deps, target, metadata.image.namespace);

const observe = async (context: RestoreContext, key: string, metadata: ImageMetadata): Promise<ObservedRestore> => {
  const { deps, target, store, cluster, tombstones, deleted } = context;
  const { image, data } = metadata;
  const unfit = unfitFor(context, metadata);
  const existing = await existingOf(context, metadata);
  const isDeleted =
    isNotedAsDeleted(tombstones, metadata, cluster) || deleted.some(({ uids }) => uids.includes(image.uid));
  const base = { key, targetName: target.name, metadata, unfit, existing, isDeleted, isNamespaceLeaving: false };
  if (existing !== undefined || isDeleted || unfit !== undefined) return base;
  const namespace = await deps.kube.get(namespaces, { name: image.namespace });
  return {
    ...base,
    nameHolder: await nameHolderOf(context, metadata),
    isNamespaceLeaving: namespace?.metadata.deletionTimestamp !== undefined,
    missingClass: await missingClassOf(context, metadata),
    missingSecret: await missingSecretOf(context, metadata),
    hasTable: data.kept === 'chunks' ? ((await store.sizeOf(indexKey(dataPrefix, data.disk))) ?? 0) > 0 : undefined,
    storage: await storageBackupOf(context, metadata),
  };
};

/** Only reads. */
export const judgeEntry = async (context: RestoreContext, { key, metadata, ...entry }: Entry): Promise<Judged> => {
  if (metadata === undefined)
    return { is: 'unreadable', message: entry.problem ?? '', isPassing: entry.isPassing ?? false };
  return { ...decideRestore(await observe(context, key, metadata)), metadata };
};

const create = async (context: RestoreContext, key: string, metadata: ImageMetadata): Promise<void> => {
  const { deps, target } = context;
  const type = imageTypeOf(metadata.image);
  if (type === undefined) return;
  const object = buildRestored(metadata, { target, key, secretName: deps.secretName });
  await ensureNamespace(context.deps.kube, metadata.image.namespace);
  const made = await tolerate(deps.kube.create(type, object), isConflict);
  if (made === undefined) return;
  const { apiVersion, kind } = made;
  const { namespace, name, uid = '' } = made.metadata;
  const message = `restored from ${key} in ${target.name}`;
  deps.log.info('image restored', { image: `${namespace}/${name}`, target: target.name, object: key });
  const reported = { reason: 'Restored', message, occurrence: `restored/${uid}` };
  await recordBackupEvent(deps, 'dev.bullion.backup.restored', { apiVersion, kind, namespace, name, uid }, reported);
};

const reportConflict = async ({ deps }: RestoreContext, holder: BackedImage, message: string): Promise<void> =>
  reportBackup(deps, holder, {
    conditions: [{ type: conflictCondition, status: 'True', reason: 'NameTaken', message }],
  });

/** Decides and acts. A failure is the result of this entry only. */
export const restoreEntry = async (context: RestoreContext, entry: Entry): Promise<Judged> => {
  try {
    const judged = await judgeEntry(context, entry);
    if (judged.is === 'create') await create(context, entry.key, judged.metadata);
    if (judged.is === 'conflict' && judged.holder !== undefined)
      await reportConflict(context, judged.holder, judged.message);
    if (judged.is === 'waiting' && judged.reason === 'SecretMissing')
      await ensureNamespace(context.deps.kube, judged.metadata.image.namespace);
    return judged;
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    const { message } = error;
    return entry.metadata === undefined
      ? { is: 'unreadable', message, isPassing: true }
      : { is: 'waiting', reason: 'RestoreFailed', message, metadata: entry.metadata };
  }
};
