// States, reasons and texts of the original, by the state a volume has come to.
import { describe, expect, it } from 'vitest';
import type { VirtualMachineVolume, VolumeStatus } from '#shared/api/hypercloud/volume.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { virtualMachinePvcs, virtualMachineVolumes } from '#shared/resources/hypercloud-volume/dialect.ts';

const object: VirtualMachineVolume = {
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineVolume',
  metadata: { name: 'disk', namespace: 'default', uid: 'uid-1', generation: 3 },
  spec: { virtualMachineImage: { name: 'ubuntu' }, capacity: { storage: '10Gi' } },
};
const volume = virtualMachineVolumes.toVolume(object);
const statusOf = (state: Partial<ImageState>) =>
  virtualMachineVolumes.toStatus(
    object,
    volume,
    { ...initialState, message: 'details', ...state },
    '2026-01-02T03:04:05Z',
  ) as VolumeStatus;

describe('a HyperCloud volume', () => {
  it.each<[state: Partial<ImageState>, summary: string, status: string, reason: string, message: string]>([
    [{ reason: 'SourceNotFound' }, 'Pending', 'False', 'VmVolumeIsInPending', 'VirtualMachineImage is not exists'],
    [
      { reason: 'SourceNotReady' },
      'Pending',
      'False',
      'VmVolumeIsInPending',
      'VirtualMachineImage state is not available',
    ],
    [{ reason: 'SourceInUse' }, 'Pending', 'False', 'VmVolumeIsInPending', 'details'],
    [{ phase: 'Cloning' }, 'Creating', 'False', 'CreatingPVC', 'VirtualMachineVolume is creating PVC'],
    [
      { reason: 'WaitForFirstConsumer', children: { volume: 'c' } },
      'Creating',
      'False',
      'CreatingPVC',
      'VirtualMachineVolume is creating PVC',
    ],
    [
      { phase: 'Available', reason: 'Ready' },
      'Available',
      'True',
      'SuccessfulCreate',
      'VirtualMachineVolume is available',
    ],
    [
      { phase: 'Failed', reason: 'TargetTooSmall' },
      'Error',
      'False',
      'VmVolumeIsInError',
      'VirtualMachineVolume size should be greater than or equal to VirtualMachineImage size',
    ],
    [{ phase: 'Failed', reason: 'VolumeLost' }, 'Error', 'False', 'VmVolumeIsInError', 'PVC is lost'],
    [{ phase: 'Failed', reason: 'Other' }, 'Error', 'False', 'VmVolumeIsInError', 'details'],
  ])('%o is %s', (state, ...[summary, status, reason, message]) => {
    const written = statusOf(state);
    expect(written.state).toBe(summary);
    expect(written.conditions).toContainEqual(
      expect.objectContaining({ type: 'ReadyToUse', status, reason, message, observedGeneration: 3 }),
    );
    expect(written.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status }));
  });

  it('keeps its state, and the reason why its content was fetched', () => {
    const state: ImageState = {
      ...initialState,
      phase: 'Cloning',
      reason: 'Cloning',
      message: 'waiting',
      clone: { strategy: 'snapshot', because: 'it is there' },
      children: { volume: 'disk-vmv-pvc' },
    };
    const status = virtualMachineVolumes.toStatus(object, volume, state, '2026-01-02T03:04:05Z');
    expect(status).toMatchObject({ cloneStrategy: 'snapshot', cloneReason: 'it is there', claimName: 'disk-vmv-pvc' });
    expect(virtualMachineVolumes.toVolume({ ...object, status }).state).toMatchObject(state);
  });

  it('names its claim as clients of each form expect', () => {
    expect(volume.claim).toEqual({ name: 'disk-vmv-pvc', bytes: 10 * 2 ** 30 });
    const pvc = virtualMachinePvcs.toVolume({
      ...object,
      spec: { virtualMachineImageName: 'ubuntu', pvc: { accessModes: ['ReadWriteOnce'], storageClassName: '' } },
    });
    expect(pvc.claim).toMatchObject({ name: 'disk', accessModes: ['ReadWriteOnce'], className: undefined });
  });
});
