// A claim that a user created for an upload (`virtctl image-upload pvc`): detects it, and plans the DataVolume that fills it. Pure.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiGroup } from '#shared/api/cdi/names.ts';
import type { PersistentVolumeClaim, Pod } from '#shared/api/foreign/core.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { ownerOf } from '#shared/api/owner.ts';
import { type Action, create } from '#shared/populate/actions.ts';

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

export interface ObservedUploadClaim {
  /** The DataVolume with the name of the claim. */
  readonly dataVolume?: DataVolume | undefined;
  /** A pod that may write to the claim. */
  readonly writer?: Pod | undefined;
}

export interface UploadClaimPlan {
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
