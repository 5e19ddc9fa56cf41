// The decisions of the backend csi, one row per situation. Plans are pure, so a row is an image, the observed state, and the expected result.
import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { csi } from '#shared/backends/csi/index.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import {
  aFault,
  aJob,
  aPod,
  aPopulation,
  aSnapshot,
  aSnapshotClass,
  aStorageClass,
  aStorageProfile,
  aSuccess,
  aVolume,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import type { Plan } from '#shared/populate/actions.ts';
import type { Image } from '#shared/backends/backend.ts';

const context = { now: testTime, settings: testSettings };
const observed = (over: Partial<ObservedVolume> = {}): ObservedVolume => ({ pods: [], ...over });
const filled = (over: Partial<PersistentVolumeClaim> = {}) =>
  aVolume({
    ...over,
    metadata: {
      ...aVolume().metadata,
      annotations: { [annotations.populated]: JSON.stringify(aPopulation) },
      ...over.metadata,
    },
  });

/** `create Job import-…` and the like. */
const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) => {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    return `${action.do} ${action.type.kind} ${name.replace(/[0-9a-f-]{36}$/, '<uid>')}`;
  });

const unsized = (state: Partial<ImageState> = {}) =>
  anImage({ storage: { className: 'local', volumeMode: 'Block' }, state });

const active = aJob('import', { active: 1 });
const complete = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const exhausted = aJob('import', {
  failed: 4,
  conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'no more' }],
});
const inspected = aJob('inspect', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const success = aPod(complete, 'a', 'Succeeded', { report: aSuccess() });
const storageClass = aStorageClass();

interface Row {
  readonly name: string;
  readonly image?: Image;
  readonly observed: ObservedVolume;
  readonly actions: readonly string[];
  readonly state: Partial<Record<keyof ImageState, unknown>>;
}

const rows: readonly Row[] = [
  {
    name: 'a size is requested: volume and Job are created at once',
    observed: observed({ storageClass }),
    actions: ['create PersistentVolumeClaim ubuntu-image-pvc', 'create Job import-<uid>'],
    state: { phase: 'Pending', reason: 'Starting', storageClassName: 'local', deadline: '2026-01-02T03:14:05Z' },
  },
  {
    name: 'no size is requested: the source is inspected first',
    image: unsized(),
    observed: observed({ storageClass }),
    actions: ['create Job inspect-<uid>'],
    state: { phase: 'Pending', reason: 'Inspecting' },
  },
  {
    name: 'the size is known: the volume is created as large as the disk',
    image: unsized(),
    observed: observed({
      storageClass,
      inspectJob: inspected,
      pods: [aPod(inspected, 'a', 'Succeeded', { report: aSuccess() })],
    }),
    actions: ['create PersistentVolumeClaim ubuntu-image-pvc', 'create Job import-<uid>'],
    state: { phase: 'Pending', inspection: { format: 'qcow2', compression: 'none', size: 1000, virtualSize: 2 ** 30 } },
  },
  {
    name: 'the source does not report the size: the image fails and says what to do',
    image: unsized(),
    observed: observed({
      storageClass,
      inspectJob: inspected,
      pods: [
        aPod(inspected, 'a', 'Succeeded', { report: aSuccess({ inspection: { format: 'raw', compression: 'gz' } }) }),
      ],
    }),
    actions: [],
    state: { phase: 'Failed', reason: 'SizeUnknown' },
  },
  {
    name: 'the storage class does not exist: it is waited for',
    observed: observed(),
    actions: [],
    state: {
      phase: 'Pending',
      reason: 'StorageClassNotFound',
      message: expect.stringContaining('"local" does not exist'),
    },
  },
  {
    name: 'the storage class never comes: the image fails with the same reason',
    image: anImage({ state: { phase: 'Pending', deadline: '2026-01-02T03:04:04Z' } }),
    observed: observed(),
    actions: [],
    state: { phase: 'Failed', reason: 'StorageClassNotFound', deadline: undefined },
  },
  {
    name: 'a volume of that name belongs to another owner: it is never changed',
    observed: observed({ storageClass, foreign: aVolume() }),
    actions: [],
    state: { phase: 'Pending', reason: 'NameTaken' },
  },
  {
    name: 'a crash came between volume and Job: the Job is made',
    observed: observed({ claim: aVolume() }),
    actions: ['create Job import-<uid>'],
    state: { phase: 'Pending', children: { volume: 'ubuntu-image-pvc', job: expect.stringMatching(/^import-/) } },
  },
  {
    name: 'the worker runs',
    observed: observed({ claim: aVolume(), job: active, pods: [aPod(active, 'a', 'Running')] }),
    actions: [],
    state: { phase: 'Downloading', attempts: 1, attemptsFailed: 0, message: 'attempt 1 of 4: downloading' },
  },
  {
    name: 'the worker has no node: the image reports it',
    observed: observed({
      claim: aVolume(),
      job: active,
      pods: [
        {
          ...aPod(active, 'a', 'Pending'),
          status: {
            phase: 'Pending',
            conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' }],
          },
        },
      ],
    }),
    actions: [],
    state: { phase: 'Pending', reason: 'Unschedulable', message: 'transfer pod cannot be placed: 0/3 nodes' },
  },
  {
    name: 'the worker was stuck too long: the image fails, and the Job is stopped',
    image: anImage({
      state: {
        phase: 'Pending',
        deadline: '2026-01-02T03:04:05Z',
        attempts: 1,
        children: { job: active.metadata.name },
      },
    }),
    observed: observed({ claim: aVolume(), job: active, pods: [aPod(active, 'a', 'Pending')] }),
    actions: ['delete Job import-<uid>'],
    state: { phase: 'Failed', reason: 'Starting' },
  },
  {
    name: 'an attempt failed: the time of the next one is reported',
    observed: observed({
      claim: aVolume(),
      job: aJob('import', { failed: 1 }),
      pods: [aPod(active, 'a', 'Failed', { exitCode: 1, report: aFault(), finishedAt: '2026-01-02T03:04:00Z' })],
    }),
    actions: [],
    state: {
      phase: 'Pending',
      reason: 'SourceUnavailable',
      attempts: 1,
      attemptsFailed: 1,
      failures: 1,
      lastFailureTime: '2026-01-02T03:04:00Z',
      nextAttemptTime: '2026-01-02T03:04:10Z',
      message: 'attempt 1 of 4 failed: the server answered 503; the next starts at 2026-01-02T03:04:10Z',
    },
  },
  {
    name: 'the second attempt runs: the failure of the first is still reported',
    image: anImage({ state: { phase: 'Pending', attempts: 1, attemptsFailed: 1, failures: 1, progress: 40 } }),
    observed: observed({
      claim: aVolume(),
      job: aJob('import', { failed: 1, active: 1 }),
      pods: [aPod(active, 'a', 'Failed', { report: aFault() }), aPod(active, 'b', 'Running')],
    }),
    actions: [],
    state: {
      phase: 'Downloading',
      attempts: 2,
      failures: 1,
      progress: 0,
      message: 'attempt 2 of 4: downloading; the attempt before failed: the server answered 503',
    },
  },
  {
    name: 'all attempts are used up',
    image: anImage({ state: { phase: 'Downloading', attempts: 4, attemptsFailed: 3, failures: 5 } }),
    observed: observed({
      claim: aVolume(),
      job: exhausted,
      pods: [
        aPod(exhausted, 'd', 'Failed', { report: aFault({ reason: 'SourceStalled', message: 'no byte for 60 s' }) }),
      ],
    }),
    actions: [],
    state: {
      phase: 'Failed',
      reason: 'SourceStalled',
      failures: 6,
      message: 'no byte for 60 s (attempt 4 of 4, the last)',
    },
  },
  {
    name: 'a permanent fault ends the image at once',
    observed: observed({
      claim: aVolume(),
      job: complete,
      pods: [
        aPod(complete, 'a', 'Succeeded', {
          report: aFault({ reason: 'NotADiskImage', message: 'an HTML page', retryable: false }),
        }),
      ],
    }),
    actions: [],
    state: {
      phase: 'Failed',
      reason: 'NotADiskImage',
      attempts: 1,
      failures: 1,
      message: 'an HTML page (attempt 1 of 4, not retried)',
    },
  },
  {
    name: 'a Job that succeeded without a report makes no image available',
    observed: observed({ claim: aVolume(), job: complete, pods: [] }),
    actions: [],
    state: { phase: 'Failed', reason: 'ReportMissing' },
  },
  {
    name: 'out of memory is reported as such',
    observed: observed({
      claim: aVolume(),
      job: exhausted,
      pods: [aPod(exhausted, 'd', 'Failed', { exitCode: 137, reason: 'OOMKilled' })],
    }),
    actions: [],
    state: { phase: 'Failed', reason: 'WorkerOutOfMemory' },
  },
  {
    name: 'the bytes are there: the volume is marked, then snapshotted',
    observed: observed({
      claim: aVolume(),
      job: complete,
      pods: [success],
      storageClass,
      snapshotClasses: [aSnapshotClass()],
    }),
    actions: ['patch PersistentVolumeClaim ubuntu-image-pvc', 'create VolumeSnapshot ubuntu-image-snapshot'],
    state: { phase: 'Snapshotting', progress: 99, digests: aPopulation.digests, inspection: aPopulation.inspection },
  },
  {
    name: 'the pod has succeeded before its Job reports it',
    observed: observed({
      claim: aVolume(),
      job: active,
      pods: [success].map((pod) => ({
        ...pod,
        metadata: { ...pod.metadata, ownerReferences: aPod(active, 'a', 'Succeeded').metadata.ownerReferences! },
      })),
      storageClass,
      snapshotClasses: [],
    }),
    actions: ['patch PersistentVolumeClaim ubuntu-image-pvc'],
    state: { phase: 'Available' },
  },
  {
    name: 'the digest is not the requested one, whatever the worker reports',
    image: anImage({ checksum: { algorithm: 'sha256', hex: 'cd'.repeat(32) } }),
    observed: observed({ claim: aVolume(), job: complete, pods: [success], snapshotClasses: [] }),
    actions: [],
    state: { phase: 'Failed', reason: 'ChecksumMismatch' },
  },
  {
    name: 'the worker did not check the requested digest',
    image: anImage({ checksum: { algorithm: 'md5', hex: 'cd'.repeat(16) } }),
    observed: observed({ claim: aVolume(), job: complete, pods: [success], snapshotClasses: [] }),
    actions: [],
    state: { phase: 'Failed', reason: 'ChecksumMismatch' },
  },
  {
    name: 'the driver makes no snapshots: the image is available without one',
    observed: observed({
      claim: filled(),
      storageClass,
      snapshotClasses: [aSnapshotClass('other', { driver: 'other' })],
    }),
    actions: [],
    state: { phase: 'Available', progress: 100, reason: 'Ready' },
  },
  {
    name: 'the requested snapshot class is of another driver',
    image: anImage({ storage: { className: 'local', snapshotClassName: 'other' } }),
    observed: observed({
      claim: filled(),
      storageClass,
      snapshotClasses: [aSnapshotClass('other', { driver: 'other' })],
    }),
    actions: [],
    state: { phase: 'Failed', reason: 'SnapshotClassInvalid', message: expect.stringContaining('of driver other') },
  },
  {
    name: 'the snapshot is in error: it is waited for',
    observed: observed({ claim: filled(), snapshot: aSnapshot({ error: { message: 'pool is full' } }) }),
    actions: [],
    state: { phase: 'Snapshotting', reason: 'SnapshotFailed', message: expect.stringContaining('pool is full') },
  },
  {
    name: 'the snapshot is ready: the image is available',
    observed: observed({ claim: filled(), snapshot: aSnapshot({ readyToUse: true }) }),
    actions: [],
    state: {
      phase: 'Available',
      progress: 100,
      deadline: undefined,
      children: { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' },
    },
  },
  {
    name: 'the golden volume of an available image is gone',
    image: anImage({ state: { phase: 'Available', progress: 100 } }),
    observed: observed(),
    actions: [],
    state: { phase: 'Failed', reason: 'VolumeLost' },
  },
  {
    name: 'the snapshot of an available image is gone: it is made again',
    image: anImage({ state: { phase: 'Available', progress: 100, children: { snapshot: 'ubuntu-image-snapshot' } } }),
    observed: observed({ claim: filled(), storageClass, snapshotClasses: [aSnapshotClass()] }),
    actions: ['create VolumeSnapshot ubuntu-image-snapshot'],
    state: { phase: 'Snapshotting' },
  },
  {
    name: 'a snapshot class appears later: an available image stays available',
    image: anImage({ state: { phase: 'Available', progress: 100 } }),
    observed: observed({ claim: filled(), storageClass, snapshotClasses: [aSnapshotClass()] }),
    actions: [],
    state: { phase: 'Available' },
  },
  {
    name: 'a failed image stays as it is',
    image: anImage({ state: { phase: 'Failed', reason: 'ImageCorrupt', message: 'no' } }),
    observed: observed({ storageClass }),
    actions: [],
    state: { phase: 'Failed', reason: 'ImageCorrupt', message: 'no' },
  },
  {
    name: 'a retry first removes what the last try left',
    image: anImage({ retryToken: '1', state: { phase: 'Failed', failures: 4 } }),
    observed: observed({ claim: aVolume(), job: exhausted, snapshot: aSnapshot(), storageClass }),
    actions: [
      'delete Job import-<uid>',
      'delete VolumeSnapshot ubuntu-image-snapshot',
      'delete PersistentVolumeClaim ubuntu-image-pvc',
    ],
    state: { phase: 'Pending', reason: 'Restarting' },
  },
  {
    name: 'a retry that cannot remove what is left fails, and waits for the next retry',
    image: anImage({ retryToken: '1', state: { phase: 'Pending', deadline: '2026-01-02T03:04:00Z' } }),
    observed: observed({
      claim: aVolume({ metadata: { name: 'ubuntu-image-pvc', deletionTimestamp: '2026-01-02T02:00:00Z' } }),
    }),
    actions: [],
    state: { phase: 'Failed', reason: 'Restarting', handledRetryToken: '1' },
  },
  {
    name: 'a retry gives children that are deleted only now their full time, however long it waited before',
    image: anImage({ retryToken: '1', state: { phase: 'Pending', deadline: '2026-01-02T03:04:00Z' } }),
    observed: observed({ claim: aVolume() }),
    actions: ['delete PersistentVolumeClaim ubuntu-image-pvc'],
    state: { phase: 'Pending', reason: 'Restarting' },
  },
  {
    name: 'a retry starts over once nothing is left, and keeps the count of past failures',
    image: anImage({ retryToken: '1', state: { phase: 'Failed', failures: 4, attempts: 4, attemptsFailed: 4 } }),
    observed: observed({ storageClass }),
    actions: ['create PersistentVolumeClaim ubuntu-image-pvc', 'create Job import-<uid>'],
    state: { phase: 'Pending', handledRetryToken: '1', attempts: 0, attemptsFailed: 0, failures: 4 },
  },
  {
    name: 'a retry never throws away a filled volume',
    image: anImage({ retryToken: '1', state: { phase: 'Failed', reason: 'SnapshotClassInvalid' } }),
    observed: observed({
      claim: filled(),
      job: complete,
      pods: [success],
      storageClass,
      snapshotClasses: [aSnapshotClass()],
    }),
    actions: ['create VolumeSnapshot ubuntu-image-snapshot'],
    state: { phase: 'Snapshotting', handledRetryToken: '1' },
  },
  {
    name: 'a retry of an available image changes nothing',
    image: anImage({ retryToken: '1', state: { phase: 'Available', progress: 100 } }),
    observed: observed({ claim: filled(), snapshot: aSnapshot({ readyToUse: true }) }),
    actions: [],
    state: { phase: 'Available', handledRetryToken: '1' },
  },
  {
    name: 'a quota has no room for the pod that inspects the source: reported with its message',
    image: unsized({ phase: 'Pending', reason: 'Inspecting', deadline: '2026-01-02T04:00:00Z' }),
    observed: observed({
      inspectJob: aJob('inspect'),
      storageClass,
      warnings: [
        {
          apiVersion: 'v1',
          kind: 'Event',
          metadata: { name: 'refused' },
          involvedObject: { kind: 'Job', name: 'inspect' },
          reason: 'FailedCreate',
          message: 'exceeded quota: small',
        },
      ],
    }),
    actions: [],
    state: { phase: 'Pending', reason: 'FailedCreate', message: 'Job inspect: exceeded quota: small' },
  },
  {
    name: 'the volume was removed while it was being filled: both start again',
    image: anImage({ state: { phase: 'Downloading', attempts: 1, progress: 30 } }),
    observed: observed({ job: active, storageClass }),
    actions: ['delete Job import-<uid>'],
    state: { phase: 'Pending', reason: 'VolumeMissing', progress: 0, attempts: 0 },
  },
  {
    name: 'the volume is on its way out under a Job: the Job goes, whose pod would hold it for ever',
    image: anImage({ state: { phase: 'Downloading', attempts: 1 } }),
    observed: observed({
      claim: aVolume({ metadata: { name: 'ubuntu-image-pvc', deletionTimestamp: '2026-01-02T03:00:00Z' } }),
      job: active,
    }),
    actions: ['delete Job import-<uid>'],
    state: { phase: 'Pending', reason: 'ChildDeleted' },
  },
  {
    name: 'the volume is on its way out: nothing is made until it is gone',
    observed: observed({
      claim: aVolume({ metadata: { name: 'ubuntu-image-pvc', deletionTimestamp: '2026-01-02T03:00:00Z' } }),
    }),
    actions: [],
    state: { phase: 'Pending', reason: 'ChildDeleted' },
  },
];

describe('initialize', () => {
  it.each(rows)('$name', ({ image = anImage(), observed: world, actions, state }) => {
    const plan = csi.initialize(image, world, context);
    expect({ actions: actionsOf(plan), state: plan.state }).toEqual({ actions, state: expect.objectContaining(state) });
  });

  // That a volume is marked is observed by the next pass only; a retry that is answered and a stop of a stuck Job are one-way.
  const repeatable = rows.filter(({ image = anImage(), observed: world }) => {
    const { actions, state } = csi.initialize(image, world, context);
    const isMarking = actions.some((action) => action.do === 'patch');
    return !isMarking && state.phase !== 'Failed' && image.retryToken === undefined;
  });

  it.each(repeatable)('plans the same the second time: $name', ({ image = anImage(), observed: world }) => {
    const first = csi.initialize(image, world, context);
    const second = csi.initialize({ ...image, state: first.state }, world, context);
    expect({ actions: actionsOf(second), deadline: second.state.deadline }).toEqual({
      actions: actionsOf(first),
      deadline: first.state.deadline,
    });
  });

  it.each([
    { what: 'a disk of less', asked: undefined, size: '4Gi' },
    { what: 'a size that the user gave', asked: 2 ** 30, size: '1Gi' },
  ])('requests at least the minimum of the storage profile, except for $what: $size', ({ asked, size }) => {
    const profile = aStorageProfile({ annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '4Gi' } });
    const image = anImage({ storage: { className: 'local', volumeMode: 'Block', capacityBytes: asked } });
    const looked = { inspectJob: inspected, pods: [aPod(inspected, 'a', 'Succeeded', { report: aSuccess() })] };
    const { actions } = csi.initialize(image, observed({ storageClass, profile, ...looked }), context);
    expect(actions[0]).toMatchObject({ object: { spec: { resources: { requests: { storage: size } } } } });
  });

  it('uses the modes that an administrator set for an unknown driver', () => {
    const unknown = aStorageClass('local', { provisioner: 'nobody.example' });
    const profile = aStorageProfile({
      spec: { claimPropertySets: [{ volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] }] },
    });
    const image = anImage({ storage: { className: 'local', capacityBytes: 2 ** 30 } });
    const { actions } = csi.initialize(image, observed({ storageClass: unknown, profile }), context);
    expect(actions[0]).toMatchObject({
      object: { spec: { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] } },
    });
  });

  it('verifies the import against the inspection, also after a crash between volume and Job', () => {
    const expected = aSuccess().inspection;
    const pod = aPod(inspected, 'a', 'Succeeded', { report: aSuccess() });
    const sized = csi.initialize(unsized(), observed({ storageClass, inspectJob: inspected, pods: [pod] }), context);
    const [volume, job] = sized.actions.map((action) => (action.do === 'create' ? action.object : undefined));
    const resumed = csi.initialize(unsized(), observed({ claim: volume as unknown as PersistentVolumeClaim }), context);
    const [again] = resumed.actions.map((action) => (action.do === 'create' ? action.object : undefined));
    for (const transfer of [job, again] as unknown as readonly ReturnType<typeof aJob>[]) {
      const env = transfer.spec.template.spec.containers[0]!.env!;
      expect(JSON.parse(env[0]!.value!)).toMatchObject({ expected });
    }
  });

  it('requests a volume large enough for a file of the disk when the class has no block volumes', () => {
    const image = anImage({ storage: { className: 'nfs' } });
    const job = aPod(inspected, 'a', 'Succeeded', { report: aSuccess() });
    const nfs = aStorageClass('nfs', { provisioner: 'nfs.csi.k8s.io' });
    const plan = csi.initialize(image, observed({ storageClass: nfs, inspectJob: inspected, pods: [job] }), context);
    const [volume, transfer] = plan.actions.map((action) => (action.do === 'create' ? action.object : undefined));
    expect(volume).toMatchObject({
      spec: { volumeMode: 'Filesystem', resources: { requests: { storage: '1138166334' } } },
    });
    const env = (transfer as unknown as ReturnType<typeof aJob>).spec.template.spec.containers[0]!.env!;
    expect(JSON.parse(env[0]!.value!)).toMatchObject({
      target: { path: '/target/disk.img', volumeMode: 'Filesystem' },
    });
  });
});

describe('delete', () => {
  it('deletes every child at once and waits until all are gone', () => {
    const image = anImage({ deleting: true });
    const all = observed({ claim: aVolume(), job: active, inspectJob: inspected, snapshot: aSnapshot() });
    const plan = csi.delete(image, all, context);
    expect(plan.removed).toBe(false);
    expect(plan.state.phase).toBe('Terminating');
    expect(actionsOf(plan)).toEqual([
      'delete Job inspect-<uid>',
      'delete Job import-<uid>',
      'delete VolumeSnapshot ubuntu-image-snapshot',
      'delete PersistentVolumeClaim ubuntu-image-pvc',
    ]);
  });

  it('reports what blocks the deletion of a child', () => {
    const volume = aVolume({
      metadata: {
        name: 'ubuntu-image-pvc',
        deletionTimestamp: '2026-01-02T03:00:00Z',
        finalizers: ['kubernetes.io/pvc-protection'],
      },
    });
    const plan = csi.delete(anImage({ deleting: true }), observed({ claim: volume }), context);
    expect(plan.actions).toEqual([]);
    expect(plan.state.message).toContain('ubuntu-image-pvc (held by kubernetes.io/pvc-protection)');
  });

  it('waits for a worker that is still writing', () => {
    expect(
      csi.delete(anImage({ deleting: true }), observed({ pods: [aPod(active, 'a', 'Running')] }), context).removed,
    ).toBe(false);
  });

  it('keeps objects of other owners', () => {
    const plan = csi.delete(anImage({ deleting: true }), observed({ foreign: aVolume() }), context);
    expect(plan).toMatchObject({ actions: [], removed: true });
  });
});
