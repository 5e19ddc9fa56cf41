// The original's conditions for each state of a DataVolume, one row each: reasons that KubeVirt and Harvester expect.
import { describe, expect, it } from 'vitest';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { conditionsOf, notesOfDataVolume } from '#shared/resources/data-volume/conditions.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';

const made = { children: { volume: 'disk' } };
const state = (over: Partial<ImageState>): ImageState => ({ ...initialState, ...over });
const failed = (reason: string, message = 'so') => ({ lastFailure: { reason, message }, ...made });
const ofType = (over: Partial<ImageState>, type: string) => conditionsOf(state(over)).find((one) => one.type === type);

describe('the conditions of a DataVolume', () => {
  it.each<[state: Partial<ImageState>, bound: string, running: string, ready: string]>([
    [{}, 'False NotFound', 'False Pending', 'False Pending'],
    [{ phase: 'Cloning', reason: 'Starting', ...made }, 'False Pending', 'False ContainerCreating', 'False Starting'],
    [
      { phase: 'Downloading', reason: 'Downloading', ...made },
      'True Bound',
      'True Pod is running',
      'False TransferRunning',
    ],
    [
      { phase: 'Converting', reason: 'Converting', ...made },
      'True Bound',
      'True Pod is running',
      'False TransferRunning',
    ],
    [{ phase: 'Available', reason: 'Ready', ...made }, 'True Bound', 'False Completed', 'True Ready'],
    [
      { phase: 'Pending', reason: 'SourceUnavailable', attemptsFailed: 1, ...failed('SourceUnavailable') },
      'True Bound',
      'False Error',
      'False SourceUnavailable',
    ],
    [
      { phase: 'Failed', reason: 'SourceNotFound', attemptsFailed: 1, ...failed('SourceNotFound') },
      'True Bound',
      'False Error',
      'False SourceNotFound',
    ],
    [{ phase: 'Failed', reason: 'VolumeLost', ...made }, 'False ClaimLost', 'False Error', 'False VolumeLost'],
    [
      { phase: 'Pending', reason: 'WaitForFirstConsumer', ...made },
      'False Pending',
      'False WaitForFirstConsumer',
      'False WaitForFirstConsumer',
    ],
  ])('of %o', (over, ...expected) => {
    expect(conditionsOf(state(over)).map(({ status, reason }) => `${status} ${reason}`)).toEqual(expected);
  });

  it.each<[phase: ImageState['phase'], bound: string]>([
    ['Pending', 'False Pending PVC disk Pending'],
    ['Downloading', 'False Pending PVC disk Pending'],
    ['Converting', 'False Pending PVC disk Pending'],
    ['Available', 'True Bound PVC disk Bound'],
  ])('of an upload that is %s report the claim as bound only at its end: %s', (phase, bound) => {
    const source = { type: 'transfer', from: { type: 'upload' } } as const;
    const reason = phase === 'Pending' ? 'Starting' : phase;
    const [condition] = conditionsOf(state({ phase, reason, message: 'so', ...made }), source);
    expect(`${condition?.status} ${condition?.reason} ${condition?.message}`).toBe(bound);
  });

  it.each([
    [undefined, 'Import Complete'],
    [{ strategy: 'copy', because: 'so' } as const, 'Clone Complete'],
  ])('of a clone: %o, report it once it is complete: %s', (clone, message) => {
    expect(ofType({ phase: 'Available', reason: 'Ready', clone, ...made }, 'Running')).toMatchObject({ message });
  });

  it.each<[what: string, over: Partial<ImageState>, message: string]>([
    ['bound', { phase: 'Available', ...made }, 'PVC disk Bound'],
    ['on its way', { phase: 'Cloning', reason: 'Starting', ...made }, 'PVC disk Pending'],
    [
      'kept back by its storage',
      { phase: 'Cloning', reason: 'ProvisioningFailed', message: 'claim disk: the pool is full', ...made },
      'PVC disk Pending: claim disk: the pool is full',
    ],
    ['not there', {}, 'No PVC found'],
    ['lost', { phase: 'Failed', reason: 'VolumeLost', ...made }, 'Claim Lost'],
  ])('Bound of a claim that is %s', (_what, over, message) => {
    expect(ofType(over, 'Bound')?.message).toBe(message);
  });

  it.each<[what: string, over: Partial<ImageState>, reason: string, message: RegExp]>([
    ['is done', { phase: 'Available', ...made }, 'Completed', /^Import Complete$/],
    [
      'cannot be placed',
      { reason: 'Unschedulable', message: 'no node', ...made },
      'Unschedulable',
      /^Importer pod cannot be scheduled: no node$/,
    ],
    [
      'has no image',
      { reason: 'ErrImagePull', message: 'denied', ...made },
      'ImagePullFailed',
      /^failed to pull image: denied$/,
    ],
    [
      'has none still',
      { reason: 'ImagePullBackOff', message: 'denied', ...made },
      'ImagePullFailed',
      /^failed to pull image/,
    ],
    ['found another file', failed('ChecksumMismatch', 'is ab'), 'ChecksumError', /^is ab$/],
    ['had no memory', failed('WorkerOutOfMemory', 'more memory'), 'OOMKilled', /more memory/],
    ['failed', failed('SourceNotFound', 'answered 404'), 'Error', /^answered 404$/],
    ['had no room', failed('TargetFull', 'no space left'), 'Error', /^DataVolume too small to contain image: no space/],
    ['found a larger disk', failed('ImageTooLarge', '3 GiB'), 'Error', /^DataVolume too small to contain image: 3 GiB/],
    [
      'never ran for lack of space',
      { phase: 'Failed', reason: 'TargetTooSmall', message: 'too small' },
      'Error',
      /^DataVolume too small to contain image: too small/,
    ],
  ])('Running of a worker that %s', (_what, over, reason, message) => {
    expect(ofType(over, 'Running')).toMatchObject({ status: 'False', reason });
    expect(ofType(over, 'Running')?.message).toMatch(message);
  });

  it.each<[what: string, over: Partial<ImageState>, reason: string]>([
    ['without its source', { phase: 'Pending', reason: 'SourceNotFound', message: 'gone' }, 'CloneWithoutSource'],
    ['that found nothing', { phase: 'Failed', reason: 'SourceNotFound', message: '404' }, 'SourceNotFound'],
    ['that is too small', { phase: 'Failed', reason: 'TargetTooSmall', message: 'small' }, 'CloneValidationFailed'],
    ['of a class that is not there', { phase: 'Pending', reason: 'StorageClassNotFound' }, 'ErrClaimNotValid'],
    ['of a class that offers nothing', { phase: 'Pending', reason: 'ErrClaimNotValid' }, 'ErrClaimNotValid'],
  ])('a volume %s has the reason of the original for not being ready', (_what, over, reason) => {
    expect(ofType(over, 'Ready')).toMatchObject({ status: 'False', reason });
  });

  it('report a complete clone', () => {
    const clone = { strategy: 'copy', because: 'b' } as const;
    expect(ofType({ phase: 'Available', clone }, 'Running')?.message).toBe('Clone Complete');
    expect(ofType({ phase: 'Available' }, 'Running')?.message).toBe('Import Complete');
  });

  it.each<[what: string, source: object, running: string, done: string]>([
    ['an import', { blank: {} }, 'ImportInProgress', 'ImportSucceeded'],
    ['an upload', { upload: {} }, 'UploadReady', 'UploadSucceeded'],
    ['a clone', { pvc: { namespace: 'a', name: 'b' } }, 'CloneInProgress', 'CloneSucceeded'],
  ])('%s has the Events of the original, each once', (_what, source, running, done) => {
    const object = { apiVersion: 'a', kind: 'b', metadata: { name: 'disk' }, spec: { source, storage: {} } };
    const volume = dataVolumes.toVolume(object as unknown as DataVolume);
    const life: readonly Partial<ImageState>[] = [
      {},
      { ...made, reason: 'Starting' },
      { ...made, phase: 'Downloading', reason: 'Downloading' },
      { ...made, phase: 'Converting', reason: 'Converting' },
      { ...made, phase: 'Available', reason: 'Ready' },
    ];
    const states = life.map((over) => ({ ...initialState, ...over }));
    const said = states.slice(1).flatMap((after, at) => notesOfDataVolume(states[at]!, after, volume));
    expect(said.map(({ type, reason }) => `${type} ${reason}`)).toEqual(
      // The claim of an upload is bound once the file is in it.
      (running === 'UploadReady' ? ['Pending', running, 'Bound', done] : ['Pending', 'Bound', running, done]).map(
        (reason) => `Normal ${reason}`,
      ),
    );
    for (const reason of ['TargetTooSmall', 'TargetNotFileSystem', 'ContentTypeDiffers']) {
      const refused = { ...initialState, phase: 'Failed', reason, message: 'request a larger one' } as const;
      const told = { type: 'Warning', reason: 'CloneValidationFailed', message: 'request a larger one' };
      expect(notesOfDataVolume(initialState, refused, volume)).toMatchObject([told]);
      expect(notesOfDataVolume(refused, refused, volume)).toEqual([]);
    }
    const missing = { ...initialState, reason: 'SourceNotFound', message: 'gone' };
    expect(notesOfDataVolume(initialState, missing, volume)).toMatchObject([
      { type: 'Warning', reason: 'CloneWithoutSource', message: 'gone' },
    ]);
  });

  it('report an exceeded quota with the reason that KubeVirt expects', () => {
    const message = 'refused: persistentvolumeclaims "disk" is forbidden: exceeded quota: storage, requested: 1Gi';
    const bound = ofType({ reason: 'ApiForbidden', message }, 'Bound');
    expect(bound).toEqual({ type: 'Bound', status: 'False', reason: 'ErrExceededQuota', message });
  });

  it('lose nothing of the state', () => {
    const object: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'disk', namespace: 'default', uid: 'u' },
      spec: { source: { http: { url: 'https://a/b' } }, pvc: {} },
    };
    const before = state({ phase: 'Converting', reason: 'Converting', message: 'attempt 1 of 4: converting', ...made });
    const volume = dataVolumes.toVolume(object);
    const status = dataVolumes.toStatus(object, volume, before, '2026-01-02T03:04:05Z') as DataVolume['status'] & {};
    expect(dataVolumes.toVolume({ ...object, status }).state).toMatchObject({
      phase: before.phase,
      reason: before.reason,
      message: before.message,
    });
  });
});
