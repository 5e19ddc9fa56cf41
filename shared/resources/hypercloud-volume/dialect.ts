// hypercloud.tmaxanc.com volumes ↔ volume: the states, reasons, texts and claim names of the original, and ours in addition.
import type { DesiredCondition } from '#shared/api/conditions.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import {
  type VirtualMachinePvc,
  type VirtualMachineVolume,
  type VolumeStatus,
  virtualMachinePvcKind,
  virtualMachineVolumeKind,
} from '#shared/api/hypercloud/volume.ts';
import type { ServedKind } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { readMetadata } from '#shared/resources/dialect.ts';
import { phaseOf, readOriginal } from '#shared/resources/hypercloud-image/original.ts';
import { pvcRules, volumeRules } from '#shared/resources/hypercloud-volume/rules.ts';
import { type SpecRule, faultsOf } from '#shared/resources/rule.ts';
import { finishStatus, toOwnConditions } from '#shared/resources/status.ts';
import { toVolumeState, toVolumeStatus } from '#shared/resources/status.ts';
import type { VolumeDialect } from '#shared/resources/volume-reconciler.ts';
import type { ClaimRequest } from '#shared/populate/volume/volume.ts';
import { lookup } from '#shared/runtime/lookup.ts';

/** The kinds have no such field. */
const retries = 3;

export const imageGroupKind = `${hyperCloudImageKind.type.kind}.${hyperCloudImageKind.type.group}`;

interface VolumeObject extends KubeObject {
  readonly status?: VolumeStatus;
}

/** Differences between the two forms. */
interface Shape<T extends VolumeObject> {
  readonly kind: ServedKind<T>;
  readonly rules: readonly SpecRule<T>[];
  readonly imageName: (object: T) => string;
  readonly claim: (object: T) => ClaimRequest;
}

const dialectFor = <T extends VolumeObject>({ kind, rules, imageName, claim }: Shape<T>): VolumeDialect<T> => ({
  kind,
  sourceKinds: [imageGroupKind],
  toVolume: (object) => ({
    ...readMetadata(object),
    faults: faultsOf(rules, object),
    source: {
      type: 'object',
      groupKind: imageGroupKind,
      namespace: object.metadata.namespace ?? 'default',
      name: imageName(object),
    },
    claim: claim(object),
    waitsForConsumer: false,
    retries,
    ...readOriginal(object.status),
    state: toVolumeState(object.status, phaseOf(object.status)),
  }),
  toStatus: (object, volume, state, now) =>
    finishStatus(
      {
        ...object.status,
        ...toVolumeStatus(volume, state),
        state: stateOf(state),
        phase: state.phase,
        claimName: state.children?.volume,
      },
      [toReadyToUse(state), ...toOwnConditions(state)],
      volume,
      now,
    ),
});

/** Pending until the image exists, as in the original; the claim of a volume may stay unbound for a long time while it is Creating. */
const stateOf = ({ phase, children }: ImageState): NonNullable<VolumeStatus['state']> => {
  if (phase === 'Available') return 'Available';
  if (phase === 'Failed') return 'Error';
  return children?.volume === undefined && phase === 'Pending' ? 'Pending' : 'Creating';
};

/** Messages of the original, by our reasons; scripts look for these texts. */
const originalTexts: Readonly<Record<string, string>> = {
  SourceNotFound: 'VirtualMachineImage is not exists',
  SourceDeleted: 'VirtualMachineImage state is not available',
  SourceNotReady: 'VirtualMachineImage state is not available',
  TargetTooSmall: 'VirtualMachineVolume size should be greater than or equal to VirtualMachineImage size',
  VolumeLost: 'PVC is lost',
};

const toReadyToUse = (state: ImageState): DesiredCondition => {
  const type = 'ReadyToUse';
  const message = lookup(originalTexts, state.reason) ?? state.message;
  switch (stateOf(state)) {
    case 'Available':
      return { type, status: 'True', reason: 'SuccessfulCreate', message: 'VirtualMachineVolume is available' };
    case 'Creating':
      return { type, status: 'False', reason: 'CreatingPVC', message: 'VirtualMachineVolume is creating PVC' };
    case 'Pending':
      return { type, status: 'False', reason: 'VmVolumeIsInPending', message };
    case 'Error':
      return { type, status: 'False', reason: 'VmVolumeIsInError', message };
  }
};

const nonEmpty = (text: string | undefined): string | undefined => (text === '' ? undefined : text);

export const virtualMachinePvcs = dialectFor<VirtualMachinePvc>({
  kind: virtualMachinePvcKind,
  rules: pvcRules,
  imageName: ({ spec }) => spec.virtualMachineImageName,
  claim: ({ metadata, spec: { pvc = {} } }) => ({
    name: metadata.name,
    className: nonEmpty(pvc.storageClassName),
    volumeMode: pvc.volumeMode,
    accessModes: pvc.accessModes,
    bytes: parseQuantity(pvc.resources?.requests?.['storage']),
  }),
});

export const virtualMachineVolumes = dialectFor<VirtualMachineVolume>({
  kind: virtualMachineVolumeKind,
  rules: volumeRules,
  imageName: ({ spec }) => spec.virtualMachineImage.name,
  claim: ({ metadata, spec }) => ({
    name: `${metadata.name}-vmv-pvc`,
    bytes: parseQuantity(spec.capacity?.['storage']),
  }),
});
