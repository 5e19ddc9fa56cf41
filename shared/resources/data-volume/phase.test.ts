// The original's phase for each state of a DataVolume, and back: one row each.
import { describe, expect, it } from 'vitest';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import type { VolumeSource } from '#shared/populate/volume/volume.ts';
import { phaseOf, progressOf, steadyPhase } from '#shared/resources/data-volume/conditions.ts';

const http: VolumeSource = { type: 'transfer', from: { type: 'http', url: 'https://a/b' } };
const upload: VolumeSource = { type: 'transfer', from: { type: 'upload' } };
const claim: VolumeSource = { type: 'object', groupKind: 'PersistentVolumeClaim', namespace: 'default', name: 'a' };
const made = { children: { volume: 'disk' } };
const by = (strategy: 'snapshot' | 'csi-clone' | 'copy') => ({ ...made, clone: { strategy, because: 'so' } });
const state = (over: Partial<ImageState>): ImageState => ({ ...initialState, ...over });

describe('the phase of a DataVolume', () => {
  it.each<[source: VolumeSource, state: Partial<ImageState>, phase: string]>([
    [http, {}, 'Pending'],
    [http, { phase: 'Cloning', ...made }, 'ImportScheduled'],
    [http, { phase: 'Pending', reason: 'Starting', ...made }, 'ImportScheduled'],
    [http, { phase: 'Downloading', ...made }, 'ImportInProgress'],
    [http, { phase: 'Verifying', ...made }, 'ImportInProgress'],
    [http, { reason: 'WaitForFirstConsumer', ...made }, 'WaitForFirstConsumer'],
    [http, { phase: 'Available', ...made }, 'Succeeded'],
    [http, { phase: 'Failed' }, 'Failed'],
    [upload, {}, 'Pending'],
    [upload, { phase: 'Cloning', ...made }, 'UploadScheduled'],
    [upload, { phase: 'Downloading', ...made }, 'UploadReady'],
    [upload, { reason: 'WaitForFirstConsumer', ...made }, 'WaitForFirstConsumer'],
    [upload, { phase: 'Available', ...made }, 'Succeeded'],
    [claim, { reason: 'SourceNotFound' }, 'Pending'],
    [claim, { phase: 'Cloning', reason: 'Snapshotting' }, 'SnapshotForSmartCloneInProgress'],
    [claim, { phase: 'Cloning', reason: 'Binding', ...by('snapshot') }, 'PrepClaimInProgress'],
    [claim, { phase: 'Cloning', reason: 'HandingOver', ...by('copy') }, 'RebindInProgress'],
    [claim, { phase: 'Cloning', ...by('snapshot') }, 'CloneFromSnapshotSourceInProgress'],
    [claim, { phase: 'Cloning', ...by('csi-clone') }, 'CSICloneInProgress'],
    [claim, { phase: 'Cloning', ...by('copy') }, 'CloneScheduled'],
    [claim, { phase: 'Downloading', ...by('copy') }, 'CloneInProgress'],
    [claim, { reason: 'WaitForFirstConsumer', ...by('snapshot') }, 'PendingPopulation'],
    [claim, { reason: 'WaitForFirstConsumer', ...by('copy') }, 'WaitForFirstConsumer'],
  ])('of %o in %o is %s', (source, over, phase) => {
    expect(phaseOf(state(over), source)).toBe(phase);
  });

  it.each<[before: string, failed: number, restarts: number, after: string]>([
    ['UploadReady', 0, 0, 'UploadReady'],
    ['UploadReady', 1, 1, 'UploadReady'],
    ['UploadReady', 1, 0, 'UploadScheduled'],
    ['Pending', 0, 0, 'UploadScheduled'],
    ['Failed', 0, 0, 'UploadScheduled'],
  ])(
    'of an upload that was %s, with %i failures and %i counted before, is %s when no pod is observed',
    (before, ...rest) => {
      const [attemptsFailed, restartCount, after] = rest;
      const now = state({ phase: 'Pending', reason: 'Starting', attemptsFailed, ...made });
      expect(steadyPhase(phaseOf(now, upload), { phase: before, restartCount }, now)).toBe(after);
      expect(steadyPhase('Succeeded', { phase: before, restartCount }, now)).toBe('Succeeded');
    },
  );

  it('recognizes a volume that CDI populated before, and leaves it unchanged', () => {
    const object: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'disk', namespace: 'default', uid: 'u' },
      spec: { source: { http: { url: 'https://a/b' } }, pvc: {} },
      status: { phase: 'Succeeded' },
    };
    expect(dataVolumes.toVolume(object).state.phase).toBe('Available');
    expect(dataVolumes.toVolume({ ...object, status: { phase: 'ImportInProgress' } }).state.phase).toBe('Pending');
  });
});

describe('its progress', () => {
  const transfer = {
    run: 'r',
    startedAt: '',
    reportedAt: '',
    sequence: 1,
    phase: 'Downloading' as const,
    percent: 37.421,
    receivedBytes: 0,
  };
  it.each<[state: Partial<ImageState>, progress: string]>([
    [{}, 'N/A'],
    [{ phase: 'Downloading', transfer }, '37.42%'],
    [{ phase: 'Failed', transfer }, 'N/A'],
    [{ phase: 'Available' }, '100.0%'],
  ])('of %o is %s, and of an upload is unset before its end', (over, progress) => {
    expect(progressOf(state(over), http)).toBe(progress);
    expect(progressOf(state(over), upload)).toBe(over.phase === 'Available' ? progress : 'N/A');
  });
});
