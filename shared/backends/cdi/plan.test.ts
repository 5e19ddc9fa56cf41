// A DataVolume as an image: phases, errors that CDI would retry for ever, what is deleted and what is kept. One row each.
import { describe, expect, it } from 'vitest';
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import {
  type KubeEvent,
  type PersistentVolumeClaim,
  type StorageClass,
  kubeEvents,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import { buildDataVolume } from '#shared/backends/cdi/manifests.ts';
import type { ObservedCdi } from '#shared/backends/cdi/observed.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import {
  aJob,
  aPod,
  aPopulation,
  aStorageClass,
  aSuccess,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { Image } from '#shared/backends/backend.ts';

const context = { now: testTime, settings: testSettings };
const later = (seconds: number) => ({ ...context, now: testTime + seconds * 1000 });
const storageClass = aStorageClass();
const gib = 2 ** 30;

const image = (over: Parameters<typeof anImage>[0] = {}): Image =>
  anImage({ backend: 'cdi', storage: { className: 'local' }, ...over });
const observed = (over: Partial<ObservedCdi> = {}): ObservedCdi => ({ foreign: [], pods: [], storageClass, ...over });
const made = (status?: DataVolumeStatus): DataVolume => {
  const built = buildDataVolume(image(), { storageClass, diskBytes: gib });
  return { ...built, metadata: { ...built.metadata, uid: 'dv-uid' }, ...(status === undefined ? {} : { status }) };
};
const aClaim = (phase: 'Pending' | 'Bound' | 'Lost', marks: Record<string, string> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'ubuntu', namespace: 'default', uid: 'claim-uid', annotations: marks },
  spec: { storageClassName: 'local' },
  status: { phase, capacity: { storage: '1Gi' } },
});
const leaving = (dataVolume: DataVolume): DataVolume => ({
  ...dataVolume,
  metadata: { ...dataVolume.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' },
});
const condition = (type: string, status: 'True' | 'False', reason: string, message = '') => ({
  type,
  status,
  reason,
  message,
});
const running = (reason: string, message: string) => [condition('Running', 'False', reason, message)];

const stateOf = (state: Partial<ImageState>, what: Partial<ObservedCdi>, over: object = {}) =>
  cdi.initialize(image({ state, ...over }), observed(what), context);

describe('a DataVolume that does not start', () => {
  it('waits with the message of its claim, which CDI does not report', async () => {
    const { kube } = createTestReconciler();
    const dataVolume = kube.seed(dataVolumeKind.type, made({ phase: 'ImportScheduled' }));
    const claim = aClaim('Pending');
    const owner = { apiVersion: dataVolume.apiVersion, kind: dataVolume.kind, name: 'ubuntu', uid: 'dv-uid' };
    kube.seed(persistentVolumeClaims, { ...claim, metadata: { ...claim.metadata, ownerReferences: [owner] } });
    kube.seed(kubeEvents, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'full', namespace: 'default' },
      involvedObject: { kind: 'PersistentVolumeClaim', name: 'ubuntu', uid: 'claim-uid' },
      type: 'Warning',
      reason: 'ProvisioningFailed',
      message: 'the pool is full',
    } as KubeEvent);
    const deadline = new Date(testTime + 600_000).toISOString();
    const waiting = image({
      state: { phase: 'Pending', reason: 'Starting', deadline, children: { volume: 'ubuntu' } },
    });
    const { state } = cdi.initialize(waiting, await cdi.check(kube, waiting), context);
    expect(state).toMatchObject({ reason: 'ProvisioningFailed', message: 'the pool is full' });
  });
});

describe('a new image', () => {
  it('is inspected, then gets a DataVolume of its name, exactly as large as its disk', () => {
    const first = cdi.initialize(image(), observed(), context);
    expect(first).toMatchObject({
      actions: [{ do: 'create', object: { kind: 'Job' } }],
      state: { reason: 'Inspecting' },
    });
    const job = aJob('inspect', { conditions: [{ type: 'Complete', status: 'True' }] });
    const pod = aPod(job, 'a', 'Succeeded', { report: aSuccess() });
    const second = cdi.initialize(image({ state: first.state }), observed({ inspectJob: job, pods: [pod] }), context);
    expect(second.actions).toMatchObject([
      {
        do: 'create',
        object: {
          kind: 'DataVolume',
          metadata: { name: 'ubuntu', ownerReferences: [{ kind: 'VirtualMachineImage', name: 'ubuntu' }] },
          spec: {
            source: { http: { url: 'https://images.example/ubuntu.img' } },
            storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
          },
        },
      },
    ]);
    expect(second.state).toMatchObject({ inspection: { virtualSize: gib }, children: { volume: 'ubuntu' } });
  });

  it.each<[what: string, over: Parameters<typeof anImage>[0], what: Partial<ObservedCdi>, spec: object]>([
    [
      'a checksum',
      { checksum: { algorithm: 'sha256', hex: 'ab' }, storage: { className: 'local', capacityBytes: gib } },
      {},
      { source: { http: { checksum: 'sha256:ab' } } },
    ],
    [
      'a claim of another namespace',
      { source: { type: 'export-from-volume', namespace: 'other', claimName: 'disk' } },
      {},
      { source: { pvc: { namespace: 'other', name: 'disk' } }, storage: { storageClassName: 'local' } },
    ],
    [
      'another image',
      { source: { type: 'clone', namespace: 'other', imageName: 'a' } },
      { cloned: { is: 'ready', namespace: 'other', name: 'vmi-1' } },
      { source: { pvc: { namespace: 'other', name: 'vmi-1' } } },
    ],
  ])('is created from %s', (_what, over, what, spec) => {
    const { actions } = cdi.initialize(image(over), observed(what), context);
    expect(actions).toMatchObject([{ do: 'create', object: { kind: 'DataVolume', spec } }]);
  });

  it('passes on the grants of its author, and nothing when they are not needed', () => {
    const from = (namespace: string) =>
      buildDataVolume(image({ source: { type: 'export-from-volume', namespace, claimName: 'disk' } }), {
        storageClass,
      });
    expect(from('other').metadata.annotations?.['bullion.dev/granted']).toContain('"namespace":"other"');
    expect(from('default').metadata.annotations).not.toHaveProperty('bullion.dev/granted');
  });

  describe('with additional trusted authorities', () => {
    const trusting = { ...context, settings: { ...testSettings, additionalCa: 'PEM' } };
    const sized = { className: 'local', capacityBytes: gib };

    it('gets a bundle of them, created before the objects that read it', () => {
      const { actions } = cdi.initialize(image({ storage: sized }), observed(), trusting);
      const name = expect.stringMatching(/^ca-/) as string;
      expect(actions).toMatchObject([
        {
          do: 'create',
          mayExist: true,
          object: {
            kind: 'ConfigMap',
            metadata: { name, ownerReferences: [{ kind: 'VirtualMachineImage', name: 'ubuntu' }] },
            data: { 'ca.pem': 'PEM' },
          },
        },
        { do: 'create', object: { kind: 'DataVolume', spec: { source: { http: { certConfigMap: name } } } } },
      ]);
    });

    it.each([
      [
        'the source is not a server',
        { source: { type: 'export-from-volume', namespace: 'a', claimName: 'b' } as const },
        trusting,
      ],
      ['no additional authority is configured', { storage: sized }, context],
    ])('gets none when %s', (_what, over, given) => {
      const { actions } = cdi.initialize(image(over), observed(), given);
      expect(actions).toMatchObject([{ do: 'create', object: { kind: 'DataVolume' } }]);
      expect(JSON.stringify(actions)).not.toContain('certConfigMap');
    });
  });

  it('does not wait for a consumer', () => {
    const late: StorageClass = aStorageClass('late', { volumeBindingMode: 'WaitForFirstConsumer' });
    const key = 'cdi.kubevirt.io/storage.bind.immediate.requested';
    expect(buildDataVolume(image(), { storageClass: late }).metadata.annotations).toHaveProperty([key]);
    expect(buildDataVolume(image(), { storageClass }).metadata.annotations).not.toHaveProperty([key]);
  });

  it.each<[what: string, what: Partial<ObservedCdi>, over: object, reason: string]>([
    ['its class', { storageClass: undefined }, {}, 'StorageClassNotFound'],
    ['its name', { foreign: [made()] }, {}, 'NameTaken'],
    ['the claim of a DataVolume that is gone', { claim: aClaim('Bound') }, {}, 'ChildDeleted'],
  ])('waits for %s, until a deadline', (_what, what, over, reason) => {
    const { actions, state } = stateOf({}, what, over);
    expect({ actions, reason: state.reason }).toEqual({ actions: [], reason });
    const late = cdi.initialize(image({ state, ...over }), observed(what), later(testSettings.childSeconds + 1));
    expect(late.state).toMatchObject({ phase: 'Failed', reason, message: expect.stringContaining('gave up waiting') });
  });

  it('waits without a deadline for the image that it is cloned from, which has deadlines of its own', () => {
    const over = { source: { type: 'clone', namespace: 'other', imageName: 'a' } } as const;
    const { actions, state } = stateOf({}, { cloned: { is: 'waiting', message: 'not ready' } }, over);
    expect({ actions, reason: state.reason }).toEqual({ actions: [], reason: 'SourceNotReady' });
    expect(state.deadline).toBeUndefined();
  });
});

describe('a DataVolume', () => {
  it.each<[what: string, status: DataVolumeStatus, expected: Partial<ImageState>]>([
    ['without a status', {}, { phase: 'Pending', reason: 'Starting' }],
    ['in progress', { phase: 'ImportInProgress', progress: '37.42%' }, { phase: 'Downloading', progress: 37 }],
    [
      'that does not report its progress',
      { phase: 'ImportInProgress', progress: 'N/A' },
      { phase: 'Downloading', progress: 0 },
    ],
    [
      'at its end, but not done',
      { phase: 'ImportInProgress', progress: '100.0%' },
      { phase: 'Downloading', progress: 98 },
    ],
    [
      'that tries again',
      { phase: 'ImportScheduled', restartCount: 2, conditions: running('Error', 'got 503') },
      { phase: 'Pending', reason: 'Error', message: 'got 503', attempts: 3, attemptsFailed: 2, failures: 2 },
    ],
    [
      'of our own that failed for good at its first attempt',
      { phase: 'Failed', restartCount: 1, detail: { attempts: 1 }, conditions: running('Error', 'got 404') },
      { phase: 'Failed', attempts: 1, attemptsFailed: 1 },
    ],
    [
      'whose claim is rejected because of a quota',
      { phase: 'Pending', conditions: [condition('Bound', 'False', 'ErrExceededQuota', 'exceeded quota: storage')] },
      { phase: 'Pending', reason: 'ErrExceededQuota', message: 'exceeded quota: storage' },
    ],
    ['that changes hands', { phase: 'RebindInProgress' }, { phase: 'Downloading' }],
    [
      'whose worker cannot be placed',
      { phase: 'ImportScheduled', conditions: running('Unschedulable', 'no node') },
      { phase: 'Pending', reason: 'Unschedulable', message: 'no node' },
    ],
    [
      'that failed for good',
      { phase: 'Failed', conditions: running('ChecksumError', 'checksum mismatch') },
      {
        phase: 'Failed',
        reason: 'ChecksumError',
        message: expect.stringContaining('checksum mismatch') as unknown as string,
      },
    ],
    [
      'of our own that failed for good',
      {
        phase: 'Failed',
        conditions: [...running('Error', 'got 404'), condition('Ready', 'False', 'SourceNotFound', 'answered 404')],
      },
      {
        phase: 'Failed',
        reason: 'SourceNotFound',
        message: expect.stringContaining('answered 404') as unknown as string,
      },
    ],
  ])('%s', (_what, status, expected) => {
    const { actions, state } = stateOf({}, { dataVolume: made(status), claim: aClaim('Pending') });
    expect(actions).toEqual([]);
    expect(state).toMatchObject(expected);
  });

  it('is stopped after the allowed attempts, where CDI would retry for ever', () => {
    const status = { phase: 'ImportInProgress', restartCount: 4, conditions: running('Error', 'got 503') };
    const first = stateOf({ attemptsFailed: 3, failures: 3, attempts: 4 }, { dataVolume: made(status) });
    expect(first).toMatchObject({ actions: [], state: { reason: 'Stopping', attemptsFailed: 4, failures: 4 } });
    expect(first.state.lastFailureTime).toBe(new Date(testTime).toISOString().replace('.000', ''));
    const { actions, state } = stateOf(first.state, { dataVolume: made(status) });
    expect(actions).toMatchObject([{ do: 'delete', key: { name: 'ubuntu' }, uid: 'dv-uid' }]);
    expect(state).toMatchObject({ phase: 'Failed', reason: 'Error', failures: 4, attempts: 4, attemptsFailed: 4 });
    // The process may die after it is deleted and before that is written down.
    for (const what of [{}, { dataVolume: leaving(made(status)) }])
      expect(stateOf(first.state, what)).toMatchObject({ actions: [], state: { phase: 'Failed', failures: 4 } });
  });

  it('that is stopped during a retry reports its previous error', () => {
    const lastFailure = { reason: 'Error', message: 'got 503' };
    const status = {
      phase: 'ImportInProgress',
      restartCount: 4,
      conditions: [condition('Running', 'True', 'Pod is running')],
    };
    const first = stateOf({ attemptsFailed: 3, attempts: 4, lastFailure }, { dataVolume: made(status) });
    expect(first.state).toMatchObject({ reason: 'Stopping', message: expect.stringContaining('got 503') });
    const { state } = stateOf(first.state, { dataVolume: made(status) });
    expect(state).toMatchObject({ phase: 'Failed', reason: 'Error', message: expect.stringContaining('got 503') });
  });

  it('that failed finally counts its own attempts only', () => {
    const status = { phase: 'Failed', restartCount: 4, conditions: running('Error', 'got 503') };
    expect(stateOf({}, { dataVolume: made(status) }).state).toMatchObject({
      attempts: 4,
      attemptsFailed: 4,
      failures: 4,
    });
  });

  it('that is stuck is stopped, with the message of its claim', () => {
    const dataVolume = made({ phase: 'Pending' });
    const warning = { reason: 'ProvisioningFailed', message: 'the pool is full' };
    const warnings = [{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e' }, involvedObject: {}, ...warning }];
    const first = stateOf({}, { dataVolume });
    const stuck = cdi.initialize(
      image({ state: first.state }),
      observed({ dataVolume, warnings }),
      later(testSettings.childSeconds + 1),
    );
    expect(stuck.actions).toMatchObject([{ do: 'delete', uid: 'dv-uid' }]);
    expect(stuck.state).toMatchObject({
      phase: 'Failed',
      reason: 'ProvisioningFailed',
      message: expect.stringContaining('pool is full'),
    });
  });

  it('that runs too long is stopped, and its progress does not decrease before', () => {
    const dataVolume = made({ phase: 'ImportInProgress', progress: '50.0%' });
    const first = stateOf({}, { dataVolume });
    const slower = made({ phase: 'ImportInProgress', progress: '20.0%' });
    const second = cdi.initialize(image({ state: first.state }), observed({ dataVolume: slower }), later(60));
    expect(second.state.progress).toBe(50);
    const end = cdi.initialize(
      image({ state: second.state }),
      observed({ dataVolume }),
      later(testSettings.attemptSeconds + testSettings.childSeconds + 1),
    );
    expect(end).toMatchObject({ actions: [{ do: 'delete' }], state: { phase: 'Failed', reason: 'DeadlineExceeded' } });
  });

  it('that succeeded is usable once its claim is bound, with the content that the claim records', () => {
    const dataVolume = made({ phase: 'Succeeded' });
    expect(stateOf({}, { dataVolume, claim: aClaim('Pending') }).state.phase).toBe('Pending');
    const marked = aClaim('Bound', { 'bullion.dev/populated': JSON.stringify(aPopulation) });
    expect(stateOf({}, { dataVolume, claim: marked }).state).toMatchObject({
      phase: 'Available',
      progress: 100,
      inspection: aPopulation.inspection,
      digests: aPopulation.digests,
      children: { volume: 'ubuntu' },
    });
    const inspection = { format: 'qcow2', compression: 'none', virtualSize: gib } as const;
    expect(stateOf({ inspection }, { dataVolume, claim: aClaim('Bound') }).state).toMatchObject({
      phase: 'Available',
      inspection,
    });
  });

  it('that was made from a disk has the virtual size of its guest, whatever the image was before', () => {
    const claim = aClaim('Bound', { 'bullion.dev/populated': JSON.stringify(aPopulation) });
    const metadata = { ...claim.metadata, labels: { ...claim.metadata.labels, 'bullion.dev/role': 'disk' } };
    const status = { ...claim.status, capacity: { storage: '7Gi' } };
    const disk = { ...claim, metadata, status, spec: { ...claim.spec, volumeMode: 'Block' as const } };
    const source = { type: 'export-from-volume', namespace: 'default', claimName: 'root' } as const;
    const virtualSizeOf = (over: Parameters<typeof anImage>[0]) =>
      cdi.initialize(image(over), observed({ dataVolume: made({ phase: 'Succeeded' }), claim: disk }), later(0)).state
        .inspection?.virtualSize;
    expect(virtualSizeOf({ source })).toBe(7 * gib);
    expect(virtualSizeOf({})).toBe(aPopulation.inspection.virtualSize);
  });

  it.each([
    ['is gone', {}],
    ['is being deleted', { dataVolume: leaving(made({ phase: 'Succeeded' })), claim: aClaim('Bound') }],
    ['has no claim any more', { dataVolume: made({ phase: 'Succeeded' }) }],
    ['lost its volume', { dataVolume: made({ phase: 'Failed' }), claim: aClaim('Bound') }],
    ['has lost its claim', { dataVolume: made({ phase: 'Succeeded' }), claim: aClaim('Lost') }],
  ])('that was usable and %s is a loss, not a reason to import again', (_what, what) => {
    expect(stateOf({ phase: 'Available' }, what)).toMatchObject({
      actions: [],
      state: { phase: 'Failed', reason: 'VolumeLost' },
    });
  });
});

describe('a restart', () => {
  const failed = { phase: 'Failed', reason: 'Error', message: 'x', failures: 4 } as const;
  it('deletes what is not populated, DataVolume first', () => {
    const what = { dataVolume: made({ phase: 'Failed' }), claim: aClaim('Pending') };
    const first = stateOf(failed, what, { retryToken: '1' });
    expect(first.actions).toMatchObject([{ do: 'delete', type: { kind: 'DataVolume' } }]);
    expect(stateOf(first.state, { claim: aClaim('Pending') }, { retryToken: '1' }).actions).toMatchObject([
      { do: 'delete', type: { kind: 'PersistentVolumeClaim' } },
    ]);
    expect(stateOf(first.state, {}, { retryToken: '1' })).toMatchObject({
      actions: [{ do: 'create', object: { kind: 'Job' } }],
      state: { failures: 4, handledRetryToken: '1' },
    });
  });

  it('keeps what is populated', () => {
    const what = { dataVolume: made({ phase: 'Succeeded' }), claim: aClaim('Bound') };
    expect(stateOf(failed, what, { retryToken: '1' })).toMatchObject({ actions: [], state: { phase: 'Available' } });
  });
});

describe('removal', () => {
  const removing = (what: Partial<ObservedCdi>) => cdi.delete(image({ deleting: true }), observed(what), context);
  it('deletes the DataVolume before its claim, and waits for both', () => {
    const both = removing({ dataVolume: made(), claim: aClaim('Bound') });
    expect(both).toMatchObject({ removed: false, actions: [{ do: 'delete', type: { kind: 'DataVolume' } }] });
    expect(both.actions).toHaveLength(1);
    const claim = removing({ claim: aClaim('Bound') });
    expect(claim).toMatchObject({
      removed: false,
      actions: [{ do: 'delete', type: { kind: 'PersistentVolumeClaim' } }],
    });
    expect(removing({})).toMatchObject({ removed: true, actions: [] });
  });
});
