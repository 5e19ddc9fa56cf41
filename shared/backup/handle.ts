// Handles events that concern backups. Called by backup-metadata.
import { type KnownEvent, eventTypes } from '#events/catalogue.ts';
import { backupBackingImages, virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import {
  apiVersionOf,
  groupKindOf,
  type KubeObject,
  type ObjectKey,
  ownerOf,
  type ResourceType,
  isOfType,
} from '#shared/api/object.ts';
import { labels } from '#shared/api/names.ts';
import { markImagesOf } from '#shared/backup/asked.ts';
import { clusterOf } from '#shared/backup/clusters.ts';
import type { BackupDeps } from './settings.ts';
import { type BackedImage, type BackupImageObject, imageTypeOf, imageTypes, readImage } from '#shared/backup/image.ts';
import { findCondition } from '#shared/api/conditions.ts';
import { dataCondition } from '#shared/backup/report.ts';
import { hasNews, syncImage } from '#shared/backup/sync.ts';
import { tickBackups } from '#shared/backup/tick.ts';
import { isFinished } from '#shared/populate/job/attempts.ts';
import type { Job } from '#shared/api/foreign/core.ts';
import { type Outcome, done } from '#shared/runtime/outcome.ts';

type Reference = ObjectKey & Pick<KubeObject, 'apiVersion' | 'kind'>;

/** Our own writes cause events too: only a difference between the image and its recorded status matters. */
const ofImage = async (deps: BackupDeps, object: KubeObject): Promise<Outcome> => {
  const type = imageTypeOf(object);
  const backed = type && readImage(type, object as BackupImageObject);
  if (backed === undefined) return done;
  if (backed.image.deleting) return backed.isHeld ? syncImage(deps, refOf(object)) : done;
  if (!backed.isWanted || isSaidAlready(backed)) return done;
  const targetName = backed.object.status?.backup?.target;
  const isSettled = targetName !== undefined && !hasNews(backed, await clusterOf(deps.kube), targetName);
  return isSettled ? done : syncImage(deps, refOf(object));
};

/** An image in progress changes often, and is backed up when it is complete. */
const isSaidAlready = ({ image, object }: BackedImage): boolean =>
  image.state.phase !== 'Available' && findCondition(object.status?.conditions, dataCondition) !== undefined;

const refOf = ({ apiVersion, kind, metadata: { namespace, name } }: KubeObject) => ({
  apiVersion,
  kind,
  namespace,
  name,
});

/** A backup Job has ended. */
const ofJob = async (deps: BackupDeps, job: Job): Promise<Outcome> => {
  const owner = ownerOf(job);
  if (owner === undefined || job.metadata.labels?.[labels.role] !== 'backup' || !isFinished(job)) return done;
  const type = imageTypes.find(
    (one) => groupKindOf({ apiVersion: apiVersionOf(one), kind: one.kind }) === owner.groupKind,
  );
  if (type === undefined) return done;
  const { namespace, name } = owner;
  return syncImage(deps, { apiVersion: apiVersionOf(type), kind: type.kind, namespace, name });
};

const ofObject = (deps: BackupDeps, object: KubeObject): Promise<Outcome> =>
  isOfType(object, jobs) ? ofJob(deps, object) : ofImage(deps, object);

const holderTypes: readonly ResourceType[] = [virtualMachineBackups, backupBackingImages];

/** An object that requests backups of images: its event contains only its name. */
const ofReference = async (deps: BackupDeps, { kind, apiVersion, namespace, name }: Reference): Promise<Outcome> => {
  const type = holderTypes.find((one) => one.kind === kind && apiVersionOf(one) === apiVersion);
  const object = type && (await deps.kube.get(type, { namespace, name }));
  if (object !== undefined) await markImagesOf(deps, object);
  return done;
};

export const handleBackupEvent = async (deps: BackupDeps, event: KnownEvent, signal: AbortSignal): Promise<Outcome> => {
  switch (event.type) {
    case eventTypes.ping:
      return tickBackups(deps, signal);
    case eventTypes.objectAdded:
    case eventTypes.objectUpdated:
      return event.data === undefined ? done : ofObject(deps, event.data as KubeObject);
    case eventTypes.referenceAdded:
    case eventTypes.referenceUpdated:
      return event.data === undefined ? done : ofReference(deps, event.data);
    default:
      return done;
  }
};
