// hypercloud.tmaxanc.com VirtualMachineVolumeExport ↔ export: the states, reasons and texts of the original, and ours in addition.
import type { DesiredCondition } from '#shared/api/conditions.ts';
import type { ExportStatus, VirtualMachineVolumeExport } from '#shared/api/hypercloud/volume-export.ts';
import { parseReference, pinReference } from '#shared/clients/registry/reference.ts';
import { phaseOf, readOriginal } from '#shared/resources/hypercloud-image/original.ts';
import { readMetadata } from '#shared/resources/dialect.ts';
import { faultsOf } from '#shared/resources/rule.ts';
import { readAccess } from '#shared/resources/source-access.ts';
import { finishStatus, toCommonStatus, toOwnConditions, toState } from '#shared/resources/status.ts';
import {
  type ExportDestination,
  type ExportSource,
  type ExportState,
  locationOf,
  toExportPlace,
  type VolumeExport,
  volumeExportRules,
} from './rules.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** The kind has no such field. */
const retries = 3;

type Spec = VirtualMachineVolumeExport['spec'];

const readSource = ({ pvcName, virtualMachineVolume }: Spec): ExportSource => {
  if (virtualMachineVolume === undefined) return { is: 'claim', name: pvcName ?? '' };
  const { name } = virtualMachineVolume;
  return { is: 'volume', name, claimName: `${name}-vmv-pvc` };
};

const readDestination = ({ metadata, spec }: VirtualMachineVolumeExport): ExportDestination | undefined => {
  const { objectStore, destination } = spec;
  if (objectStore !== undefined) {
    const { bucketName: bucket, objectName: key } = objectStore;
    return { is: 'store', object: { type: 'object', bucket, key } };
  }
  if (destination?.s3 !== undefined) {
    const parsed = toExportPlace(destination.s3.url);
    if ('problem' in parsed) return undefined;
    return {
      is: 'store',
      object: { type: 's3', ...parsed.value, ...readAccess(destination.s3) },
    };
  }
  if (destination?.registry !== undefined) {
    const { url, secretRef: secretName, certConfigMap: bundleName, ...how } = destination.registry;
    const { compression = 'none', signingSecretRef: signingSecretName } = how;
    return {
      is: 'registry',
      object: { type: 'registry', url, secretName, bundleName },
      compression,
      signingSecretName,
    };
  }
  if (destination?.local === undefined) return undefined;
  return { is: 'local', claimName: `${metadata.name}-export-pvc`, podName: `${metadata.name}-exporter-local` };
};

const readResult = ({ object, image }: ExportStatus): ExportState['object'] => {
  if (image !== undefined) return { size: image.size, digest: image.digest, isConfirmed: true };
  if (object?.size === undefined) return undefined;
  const { size, isConfirmed = false, etag, versionId } = object;
  return {
    size,
    isConfirmed,
    ...(etag === undefined ? {} : { etag }),
    ...(versionId === undefined ? {} : { versionId }),
  };
};

/** By the original operator: what it wrote is not compared. */
const completed = {
  reason: 'Ready',
  message: 'the export was completed by the operator that made it',
  progress: 100,
} as const;

const readState = (status: ExportStatus = {}): ExportState => {
  const { from, failing } = status;
  const object = readResult(status);
  return {
    ...toState(status, phaseOf(status)),
    ...(readOriginal(status).comesFromOriginal === true ? completed : {}),
    ...(from === undefined ? {} : { from }),
    ...(failing === undefined ? {} : { failing }),
    ...(object === undefined ? {} : { object }),
  };
};

export const toExport = (object: VirtualMachineVolumeExport): VolumeExport => ({
  ...readMetadata(object),
  faults: faultsOf(volumeExportRules, object),
  source: readSource(object.spec),
  destination: readDestination(object),
  createdAt: object.metadata.creationTimestamp,
  retries,
  state: readState(object.status),
});

const objectStatus = ({ destination }: VolumeExport, { object }: ExportState): ExportStatus['object'] => {
  if (object === undefined || destination?.is !== 'store') return undefined;
  const { bucket, key } = destination.object;
  return { url: locationOf(destination), bucket, key, ...object };
};

const imageStatus = ({ destination }: VolumeExport, { object }: ExportState): ExportStatus['image'] => {
  if (object?.digest === undefined || destination?.is !== 'registry') return undefined;
  const { size, digest } = object;
  return { reference: pinReference(parseReference(destination.object.url), digest), digest, size };
};

export const toExportStatus = (
  object: VirtualMachineVolumeExport,
  resource: VolumeExport,
  state: ExportState,
  now: string,
): ExportStatus => {
  const { destination } = resource;
  const isHere = destination?.is === 'local' && state.phase === 'Available';
  return finishStatus(
    {
      ...object.status,
      ...toCommonStatus(resource, state),
      state: stateOf(state),
      phase: state.phase,
      from: state.from,
      failing: state.failing,
      object: objectStatus(resource, state),
      image: imageStatus(resource, state),
      claimName: isHere ? destination.claimName : undefined,
      podName: isHere ? destination.podName : undefined,
    },
    [toReadyToUse(resource, state), ...toOwnConditions(state)],
    resource,
    now,
  );
};

/** Pending until something is created for it, as in the original. */
const stateOf = ({ phase, children }: ExportState): NonNullable<ExportStatus['state']> => {
  if (phase === 'Available') return 'Completed';
  if (phase === 'Failed') return 'Error';
  return children === undefined ? 'Pending' : 'Creating';
};

/** Messages of the original, by our reasons; scripts look for these texts. */
const originalTexts: Readonly<Record<string, string>> = {
  SourceNotFound: 'fail to get virtual machine volume',
  SourceNotReady: 'VirtualMachineVolume state is not determined yet',
};

const toReadyToUse = ({ source, destination }: VolumeExport, state: ExportState): DesiredCondition => {
  const type = 'ReadyToUse';
  switch (stateOf(state)) {
    case 'Completed':
      // Two spellings, as in the original.
      return destination?.is === 'local'
        ? { type, status: 'True', reason: 'VmvExportIsReady', message: 'VmvExport is ready to use' }
        : { type, status: 'True', reason: 'vmvExportIsCompleted', message: 'vmvExport is completed' };
    case 'Creating':
      return { type, status: 'False', reason: 'VmvExportIsCreating', message: 'VmvExport is in creating' };
    case 'Pending': {
      const message = source.is === 'volume' ? lookup(originalTexts, state.reason) : undefined;
      return { type, status: 'False', reason: 'VmvExportIsInPending', message: message ?? state.message };
    }
    case 'Error':
      return { type, status: 'False', reason: 'VmvExportIsInError', message: state.message };
  }
};
