// Creates a DataVolume for claims that users created for an upload. Called when one with the label of `virtctl` changes, and by the tick for
// all others, since claims of others cause no events.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiGroup } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims, type Pod } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, ownerOf, refOf, isOfType } from '#shared/api/object.ts';
import { type Action, create } from '#shared/populate/actions.ts';
import { findWriter } from '#shared/populate/clone/writer.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { execute } from '#shared/resources/execute.ts';
import { recordNote } from '#shared/resources/write.ts';
import { AppError, isConflict, messageOf } from '#shared/runtime/errors.ts';
import { done, type Outcome } from '#shared/runtime/outcome.ts';

// A claim that a user created for an upload (`virtctl image-upload pvc`): detects it, and plans the DataVolume that fills it. Pure.

/** On claims that were created for a DataVolume. */
const madeForVolume = [`${cdiGroup}/storage.populatedFor`, `${cdiGroup}/createdForDataVolume`];

/** Whether a claim waits for an upload without a controller that handles it. */
export const asksForUpload = (claim: PersistentVolumeClaim): boolean => {
  const { annotations = {}, deletionTimestamp } = claim.metadata;
  const { dataSource, dataSourceRef } = claim.spec;
  return (
    annotations[cdiAnnotations.uploadTarget] !== undefined &&
    annotations[cdiAnnotations.podPhase] !== 'Succeeded' &&
    deletionTimestamp === undefined &&
    dataSource === undefined &&
    dataSourceRef === undefined &&
    ownerOf(claim) === undefined &&
    !madeForVolume.some((name) => annotations[name] !== undefined)
  );
};

interface ObservedUploadClaim {
  /** The DataVolume with the name of the claim. */
  readonly dataVolume?: DataVolume | undefined;
  /** A pod that may write to the claim. */
  readonly writer?: Pod | undefined;
}

interface UploadClaimPlan {
  readonly actions: readonly Action[];
  /** Why it is not filled, for users. */
  readonly obstacle?: { readonly reason: string; readonly message: string };
}

export const planUploadClaim = (claim: PersistentVolumeClaim, observed: ObservedUploadClaim): UploadClaimPlan => {
  const { name, uid } = claim.metadata;
  const { dataVolume, writer } = observed;
  if (dataVolume?.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true) return { actions: [] };
  if (dataVolume !== undefined) {
    const message = `claim ${name} is not made an upload target: there is a DataVolume of that name which it was not made for`;
    return { actions: [], obstacle: { reason: 'NameTaken', message } };
  }
  if (writer !== undefined) {
    const message = `claim ${name} is not made an upload target while pod ${writer.metadata.name} may write to it: stop it`;
    return { actions: [], obstacle: { reason: 'TargetInUse', message } };
  }
  return { actions: [create(dataVolumeKind.type, buildDataVolume(claim))] };
};

const passedOn: readonly string[] = [cdiAnnotations.immediateBinding];

/** Deleted with the claim, and never the other way round. */
const buildDataVolume = ({ apiVersion, kind, metadata, spec }: PersistentVolumeClaim): DataVolume => {
  const { namespace, name, uid = '', annotations = {} } = metadata;
  const { accessModes = ['ReadWriteOnce'], volumeMode, storageClassName, resources } = spec;
  const isArchive = annotations[cdiAnnotations.contentType] === 'archive';
  return {
    apiVersion: apiVersionOf(dataVolumeKind.type),
    kind: dataVolumeKind.type.kind,
    metadata: {
      namespace,
      name,
      annotations: Object.fromEntries(Object.entries(annotations).filter(([mark]) => passedOn.includes(mark))),
      ownerReferences: [{ apiVersion, kind, name, uid }],
    },
    spec: {
      source: { upload: {} },
      ...(isArchive ? { contentType: 'archive' } : {}),
      pvc: {
        // A DataVolume has one access mode; the claim keeps all of its own.
        accessModes: accessModes.slice(0, 1),
        ...(volumeMode === undefined ? {} : { volumeMode }),
        ...(storageClassName === undefined ? {} : { storageClassName }),
        ...(resources === undefined ? {} : { resources }),
      },
    },
  } as DataVolume;
};

const serve = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  const { namespace, name } = claim.metadata;
  const dataVolume = await deps.kube.get(dataVolumeKind.type, { namespace, name });
  const writer = dataVolume === undefined ? await findWriter(deps.kube, { namespace, name }) : undefined;
  const { actions, obstacle } = planUploadClaim(claim, { dataVolume, writer });
  await execute(deps.kube, actions);
  if (obstacle !== undefined) await complain(deps, claim, obstacle);
};

const complain = (
  deps: ReconcileDeps,
  claim: PersistentVolumeClaim,
  { reason, message }: { readonly reason: string; readonly message: string },
): Promise<void> => recordNote(deps, refOf(claim), { type: 'Warning', reason, message, occurrence: message });

/** A permanent error of the API is reported on the claim; a transient one is thrown. */
const serveOrRecord = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  try {
    await serve(deps, claim);
  } catch (error) {
    if (isConflict(error)) return;
    if (!(error instanceof AppError) || error.retryable) throw error;
    const { name } = claim.metadata;
    const message = `claim ${name} cannot be uploaded into: ${messageOf(error)}`;
    await complain(deps, claim, { reason: 'UploadRefused', message });
  }
};

/** A failure of one claim must not affect the others. */
const serveQuietly = async (deps: ReconcileDeps, claim: PersistentVolumeClaim): Promise<void> => {
  try {
    await serveOrRecord(deps, claim);
  } catch (error) {
    const { namespace = '', name } = claim.metadata;
    deps.log.warn('claim not made an upload target', { object: `${namespace}/${name}`, error: messageOf(error) });
  }
};

/** An object of any kind was added or changed. Throws transient errors. */
export const serveUploadClaim = async (deps: ReconcileDeps, changed: KubeObject): Promise<Outcome> => {
  if (!isOfType(changed, persistentVolumeClaims) || !asksForUpload(changed) || (await deps.cdi()) === 'use')
    return done;
  const claim = await deps.kube.get(persistentVolumeClaims, refOf(changed));
  if (claim !== undefined && asksForUpload(claim)) await serveOrRecord(deps, claim);
  return done;
};

/** An installed CDI handles them itself. Our own claims have an owner. */
export const serveUploadClaims = async (deps: ReconcileDeps): Promise<void> => {
  const others = { labelSelector: `!${labels.ownerUid}` };
  for await (const claim of deps.kube.listAll(persistentVolumeClaims, others)) {
    if (!asksForUpload(claim)) continue;
    if ((await deps.cdi()) === 'use') return;
    await serveQuietly(deps, claim);
  }
};
