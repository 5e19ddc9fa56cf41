// The decisions about a volume, one row per situation: the observed state, the actions, and the status.
import { describe, expect, it } from 'vitest';
import { type PersistentVolume, type PersistentVolumeClaim, persistentVolumes } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, childMetadata } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { diskBytesIn, volumeBytesFor } from '#shared/populate/population.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { restoredName } from '#shared/populate/clone/restoring.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import { findPromised } from '#shared/populate/volume/binding.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import {
  aFault,
  aJob,
  aPod,
  aPopulation,
  aStorageClass,
  aStorageProfile,
  aSuccess,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import type { Plan } from '#shared/populate/actions.ts';

const context = { now: testTime, settings: testSettings };
const gib = 2 ** 30;
const ref = {
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineVolume',
  namespace: 'default',
  name: 'disk',
  uid: '22222222-2222-4222-8222-222222222222',
} as const;

const aVolume = (over: Partial<Omit<Volume, 'state'>> & { readonly state?: Partial<ImageState> } = {}): Volume => ({
  ref,
  generation: 1,
  deleting: false,
  finalizers: [],
  faults: [],
  source: {
    type: 'object',
    groupKind: 'VirtualMachineImage.hypercloud.tmaxanc.com',
    namespace: 'default',
    name: 'ubuntu',
  },
  claim: { name: 'disk-vmv-pvc' },
  waitsForConsumer: false,
  retries: 3,
  ...over,
  state: { ...initialState, ...over.state },
});
const imported = aVolume({
  source: { type: 'transfer', from: { type: 'http', url: 'https://a/b' } },
  claim: { name: 'disk', bytes: gib },
});

const cloned = { source: aVolume().source };
const profiled = (over: Partial<Volume['claim']>): Volume['claim'] => ({ name: 'disk', isProfiled: true, ...over });

const adopting = aVolume({ claim: { name: 'ubuntu-image-pvc', adopts: () => true } });

const promised: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'brought' },
  spec: {
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    volumeMode: 'Block',
    storageClassName: 'slow',
    claimRef: { namespace: 'default', name: 'disk' },
  },
};

const golden: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'ubuntu-image-pvc', namespace: 'default', uid: 'golden' },
  spec: {},
};
const anOrigin = (
  over: Partial<ReadyOrigin['clone']> = {},
  snapshot: string | null = 'ubuntu-image-snapshot',
): ReadyOrigin => ({
  is: 'ready',
  namespace: 'default',
  clone: {
    what: 'image ubuntu',
    driver: 'local.bullion.dev',
    volumeMode: 'Block',
    bytes: gib,
    diskBytes: gib,
    hasSnapshot: snapshot !== null,
    hasClaim: true,
    ...over,
  },
  claim: golden,
  snapshot: snapshot ?? undefined,
  population: aPopulation,
  className: 'local',
  accessModes: ['ReadWriteOnce'],
});

const clone = (strategy: string) => ({
  [annotations.clone]: JSON.stringify({
    strategy,
    because: 'so',
    ...(strategy === 'copy' ? { from: { name: 'ubuntu-image-pvc', volumeMode: 'Block' } } : {}),
    population: aPopulation,
  }),
});
const aClaim = (marks: Record<string, string>, phase?: 'Pending' | 'Bound' | 'Lost'): PersistentVolumeClaim => {
  const metadata = childMetadata(ref, 'disk', 'disk-vmv-pvc');
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...metadata, uid: 'claim', resourceVersion: '1', annotations: { ...metadata.annotations, ...marks } },
    spec: { storageClassName: 'local', volumeMode: 'Block', resources: { requests: { storage: '1Gi' } } },
    ...(phase === undefined ? {} : { status: { phase } }),
  };
};
const filled = { ...clone('snapshot'), [annotations.populated]: JSON.stringify(aPopulation) };
const owner = anImage({ ref: { ...ref } });
const complete = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] }, owner);
const exhausted = aJob(
  'import',
  { failed: 4, conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded' }] },
  owner,
);
const active = aJob('import', { active: 1 }, owner);
const leaving = (claim: PersistentVolumeClaim) => ({
  ...claim,
  metadata: { ...claim.metadata, deletionTimestamp: '2026-01-02T03:04:05Z' },
});

const copied = aPod(complete, 'a', 'Succeeded', { report: aSuccess() });
const aRestored: PersistentVolumeClaim = { ...golden, metadata: { ...golden.metadata, name: 'restored' } };
const kept: VolumeSnapshot = {
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { name: 's', uid: 'one' },
  spec: { source: {} },
  status: { readyToUse: true, restoreSize: '1Gi' },
};
/** A snapshot that outlived its volume. */
const restorable: ReadyOrigin = {
  ...anOrigin({ hasClaim: false, restoreClass: 'local' }),
  claim: undefined,
  restored: kept,
};
const used = anOrigin({ hasSnapshot: false, snapshotClass: 'fast', restoreClass: 'local', inUseBy: 'guest' }, null);

const storageClass = aStorageClass('local', { allowVolumeExpansion: true });
const wffc = aStorageClass('local', { volumeBindingMode: 'WaitForFirstConsumer' });
const waitingFor = (reason: string) => ({ is: 'waiting', reason, message: 'not yet' }) as const;

const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) => {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    return `${action.do} ${action.type.kind} ${name.replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, '<uid>')}`;
  });

type Row = [
  what: string,
  volume: Volume,
  observed: Partial<ObservedVolume>,
  actions: readonly string[],
  state: Partial<ImageState>,
];

const rows: readonly Row[] = [
  [
    'a missing image is waited for, without a deadline',
    aVolume(),
    { origin: waitingFor('SourceNotFound') },
    [],
    { phase: 'Pending', reason: 'SourceNotFound', deadline: undefined },
  ],
  [
    'a missing class is waited for, until a deadline',
    aVolume(),
    { origin: anOrigin() },
    [],
    { reason: 'StorageClassNotFound', deadline: expect.any(String) as string },
  ],
  [
    'a snapshot is restored',
    aVolume(),
    { origin: anOrigin(), storageClass },
    ['create PersistentVolumeClaim disk-vmv-pvc'],
    { phase: 'Cloning', clone: { strategy: 'snapshot', because: expect.any(String) as string } },
  ],
  [
    'a copy gets its Job at once',
    aVolume(),
    { origin: anOrigin({ hasSnapshot: false }, null), storageClass },
    ['create PersistentVolumeClaim disk-vmv-pvc', 'create Job import-<uid>'],
    { phase: 'Cloning' },
  ],
  [
    'a snapshot is taken first when the driver supports it',
    aVolume(),
    { origin: anOrigin({ hasSnapshot: false, snapshotClass: 'fast' }, null), storageClass },
    ['create VolumeSnapshot clone-<uid>'],
    { phase: 'Cloning', reason: 'Snapshotting' },
  ],
  [
    'a snapshot whose source is gone is restored for a copy, when it cannot be used otherwise',
    aVolume({ claim: { name: 'disk-vmv-pvc', volumeMode: 'Filesystem' } }),
    { origin: restorable, storageClass },
    [
      `create PersistentVolumeClaim ${restoredName(ref, kept)}`,
      'create PersistentVolumeClaim disk-vmv-pvc',
      'create Job import-<uid>',
    ],
    { phase: 'Cloning', clone: { strategy: 'copy', because: expect.stringContaining('restored first') as string } },
  ],
  [
    'of a volume in use a snapshot is taken first, also when it cannot be restored as requested',
    aVolume({ claim: { name: 'disk-vmv-pvc', volumeMode: 'Filesystem' } }),
    { origin: used, storageClass },
    ['create VolumeSnapshot clone-<uid>'],
    { phase: 'Cloning', reason: 'Snapshotting' },
  ],
  [
    'and that is copied',
    aVolume({ claim: { name: 'disk-vmv-pvc', volumeMode: 'Filesystem' } }),
    { origin: used, sourceSnapshot: kept, storageClass },
    [
      `create PersistentVolumeClaim ${restoredName(ref, kept)}`,
      'create PersistentVolumeClaim disk-vmv-pvc',
      'create Job import-<uid>',
    ],
    { clone: { strategy: 'copy', because: expect.stringContaining('pod guest may write to it') as string } },
  ],
  [
    'the intermediate claim is deleted once it is copied',
    aVolume({ state: { phase: 'Verifying' } }),
    { claim: aClaim(clone('copy')), job: complete, pods: [copied], storageClass, restored: aRestored },
    [
      'delete PersistentVolumeClaim restored',
      'patch PersistentVolumeClaim disk-vmv-pvc',
      'delete Pod import-22222222-2222-4222-8222-222222222222-a',
    ],
    { phase: 'Available' },
  ],
  [
    'the intermediate claim is deleted with the failed volume, when it is restarted',
    aVolume({ retryToken: '1', state: { phase: 'Failed' } }),
    { claim: aClaim(clone('copy')), storageClass, restored: aRestored },
    ['delete PersistentVolumeClaim disk-vmv-pvc', 'delete PersistentVolumeClaim restored'],
    { phase: 'Pending', reason: 'Restarting' },
  ],
  [
    'a smaller volume fails',
    aVolume({ claim: { name: 'disk', bytes: 1 } }),
    { origin: anOrigin(), storageClass },
    [],
    { phase: 'Failed', reason: 'TargetTooSmall' },
  ],
  [
    'a source in use is waited for, without end',
    aVolume(),
    { origin: anOrigin({ hasSnapshot: false, inUseBy: 'guest' }, null), storageClass },
    [],
    { reason: 'SourceInUse', deadline: undefined },
  ],
  ['a name that is taken is left alone', aVolume(), { foreign: golden }, [], { reason: 'NameTaken' }],
  [
    'a claim that was prepared becomes ours, and usable',
    adopting,
    { foreign: golden },
    ['patch PersistentVolumeClaim ubuntu-image-pvc'],
    { phase: 'Available', children: { volume: 'ubuntu-image-pvc' } },
  ],
  [
    'but not one that is on its way out',
    adopting,
    { foreign: leaving(golden) },
    [],
    { phase: 'Pending', reason: 'ChildDeleted', deadline: expect.any(String) as string },
  ],
  [
    'nor one that lost its data',
    adopting,
    { foreign: { ...golden, status: { phase: 'Lost' } } },
    [],
    { phase: 'Failed', reason: 'VolumeLost' },
  ],
  [
    'a persistent volume that is promised to the claim with its data is taken, and nothing is fetched',
    { ...imported, claim: { ...imported.claim, mayBeStatic: true } },
    { promised },
    ['create PersistentVolumeClaim disk'],
    { phase: 'Cloning', reason: 'Binding', children: { volume: 'disk' } },
  ],
  [
    'it is usable once the claim has it',
    imported,
    { claim: { ...aClaim(filled), spec: { ...aClaim({}).spec, volumeName: 'brought' } }, storageClass },
    [],
    { phase: 'Cloning', reason: 'Binding' },
  ],
  [
    'a claim that a restore is to bring is waited for, and none is made in its place',
    { ...imported, claim: { ...imported.claim, comesFilled: true } },
    { storageClass },
    [],
    { phase: 'Pending', reason: 'ClaimNotFound', deadline: undefined },
  ],
  [
    'a restored claim that is not bound is waited for',
    aVolume(),
    { claim: aClaim(clone('snapshot')), storageClass },
    [],
    { phase: 'Cloning', reason: 'Cloning' },
  ],
  [
    'one that waits for its consumer rests',
    aVolume(),
    { claim: aClaim(clone('snapshot')), storageClass: wffc },
    [],
    { reason: 'WaitForFirstConsumer', deadline: undefined },
  ],
  [
    'a restored claim that is bound is marked, and usable',
    aVolume(),
    { claim: aClaim(clone('snapshot'), 'Bound'), storageClass },
    ['patch PersistentVolumeClaim disk-vmv-pvc'],
    { phase: 'Available', progress: 100 },
  ],
  [
    'a copy whose Job is missing gets one',
    aVolume(),
    { claim: aClaim(clone('copy')), storageClass },
    ['create Job import-<uid>'],
    { phase: 'Pending', reason: 'Starting' },
  ],
  [
    'a copy in progress is reported',
    aVolume(),
    { claim: aClaim(clone('copy')), storageClass, job: active, pods: [aPod(active, 'a', 'Running')] },
    [],
    { phase: 'Downloading', attempts: 1 },
  ],
  [
    'a copy that succeeded is marked, and its pod no longer holds the source',
    aVolume(),
    {
      claim: aClaim(clone('copy')),
      storageClass,
      job: complete,
      pods: [aPod(complete, 'a', 'Succeeded', { report: aSuccess() })],
    },
    ['patch PersistentVolumeClaim disk-vmv-pvc', 'delete Pod import-22222222-2222-4222-8222-222222222222-a'],
    { phase: 'Available' },
  ],
  [
    'a copy that failed for good fails',
    aVolume(),
    {
      claim: aClaim(clone('copy')),
      storageClass,
      job: exhausted,
      pods: [aPod(exhausted, 'd', 'Failed', { exitCode: 1, report: aFault() })],
    },
    [],
    { phase: 'Failed', reason: 'SourceUnavailable' },
  ],
  [
    'a filled claim is usable',
    aVolume(),
    { claim: aClaim(filled, 'Bound') },
    [],
    { phase: 'Available', children: { volume: 'disk-vmv-pvc', snapshot: undefined } },
  ],
  [
    'a claim that went after it was filled is lost',
    aVolume({ state: { phase: 'Available' } }),
    { origin: anOrigin(), storageClass },
    [],
    { phase: 'Failed', reason: 'VolumeLost' },
  ],
  [
    'a claim whose volume is lost is lost',
    aVolume(),
    { claim: aClaim(clone('snapshot'), 'Lost'), storageClass },
    [],
    { phase: 'Failed', reason: 'VolumeLost' },
  ],
  [
    'a claim that is being deleted under a Job deletes it, whose pod would keep it for ever',
    aVolume(),
    { claim: leaving(aClaim(clone('copy'))), storageClass, job: active },
    ['delete Job import-<uid>'],
    { reason: 'ChildDeleted' },
  ],
  [
    'also one in the namespace of the source',
    aVolume(),
    {
      storageClass,
      stage: { namespace: 'images', claim: leaving(aClaim(clone('copy'))), job: active, pods: [] },
    },
    ['delete Job import-<uid>'],
    { reason: 'ChildDeleted' },
  ],
  [
    'a claim that is being deleted is waited for',
    aVolume(),
    { claim: leaving(aClaim(clone('snapshot'))), storageClass },
    [],
    { reason: 'ChildDeleted' },
  ],
  [
    'what failed stays, with the Job that failed',
    aVolume({ state: { phase: 'Failed', reason: 'X' } }),
    { job: exhausted, claim: aClaim({}) },
    [],
    { phase: 'Failed', reason: 'X' },
  ],
  [
    'what a concurrent reconciliation started again after the failure is removed',
    aVolume({ state: { phase: 'Failed', reason: 'X' } }),
    {
      job: active,
      claim: aClaim({}),
      spool: { ...aClaim({}), metadata: { name: 'spool-1', namespace: 'default', uid: 's' } },
    },
    ['delete Job import-<uid>', 'delete PersistentVolumeClaim spool-1'],
    { phase: 'Failed', reason: 'X' },
  ],
  [
    'a retry deletes what is not populated',
    aVolume({ state: { phase: 'Failed' }, retryToken: '1' }),
    { claim: aClaim(clone('copy')), job: exhausted },
    ['delete Job import-<uid>', 'delete PersistentVolumeClaim disk-vmv-pvc'],
    { phase: 'Pending', reason: 'Restarting' },
  ],
  [
    'a retry starts over once nothing is left',
    aVolume({ state: { phase: 'Failed', failures: 4 }, retryToken: '1' }),
    { origin: anOrigin(), storageClass },
    ['create PersistentVolumeClaim disk-vmv-pvc'],
    { phase: 'Cloning', failures: 4, handledRetryToken: '1' },
  ],
  [
    'a source of bytes gets a claim and a Job',
    imported,
    { storageClass },
    ['create PersistentVolumeClaim disk', 'create Job import-<uid>'],
    { phase: 'Pending', reason: 'Starting' },
  ],
  [
    'nothing is put into a volume before its consumer is there',
    { ...imported, waitsForConsumer: true },
    { storageClass: wffc },
    ['create PersistentVolumeClaim disk'],
    { reason: 'WaitForFirstConsumer', deadline: undefined, children: { volume: 'disk' } },
  ],
  [
    'nor while it is not',
    { ...imported, waitsForConsumer: true },
    { storageClass: wffc, claim: aClaim({}) },
    [],
    { reason: 'WaitForFirstConsumer', deadline: undefined },
  ],
  [
    'but once it is',
    { ...imported, waitsForConsumer: true },
    { storageClass: wffc, claim: aClaim({}, 'Bound') },
    ['create Job import-<uid>'],
    { reason: 'Starting' },
  ],
];

const theirs = (marks: Record<string, string> = {}): PersistentVolumeClaim => ({
  ...aClaim({}, 'Bound'),
  metadata: { name: 'disk', namespace: 'default', uid: 'theirs', resourceVersion: '1', annotations: marks },
});
const serving = {
  ...imported,
  claim: { name: 'disk', bytes: gib, fills: () => true, listening: { ready: 'yes' } },
};
const serve = (claim: PersistentVolumeClaim): PersistentVolumeClaim => ({
  ...claim,
  metadata: { ...claim.metadata, labels: childMetadata(ref, 'disk', 'disk').labels ?? {} },
});

describe('a claim that a user created to be populated', () => {
  it.each<[string, Volume, Partial<ObservedVolume>, readonly string[], Partial<ImageState>]>([
    [
      'is labelled, and keeps its owner',
      serving,
      { foreign: theirs() },
      ['patch PersistentVolumeClaim disk'],
      { reason: 'Starting' },
    ],
    ['is then filled by a Job', serving, { claim: serve(theirs()), storageClass }, ['create Job import-<uid>'], {}],
    [
      'reports when the upload server is ready',
      serving,
      { claim: serve(theirs()), storageClass, job: active, pods: [aPod(active, 'a', 'Running')] },
      ['patch PersistentVolumeClaim disk'],
      {},
    ],
    [
      'and reports it once',
      serving,
      { claim: serve(theirs({ ready: 'yes' })), storageClass, job: active, pods: [aPod(active, 'a', 'Running')] },
      [],
      {},
    ],
    [
      'stays when its filling starts over',
      { ...serving, retryToken: '1', state: { ...initialState, phase: 'Failed' } },
      { claim: serve(theirs()), storageClass, job: exhausted },
      ['delete Job import-<uid>'],
      {},
    ],
    ['is not made again once it is gone', serving, { storageClass }, [], { phase: 'Failed', reason: 'VolumeLost' }],
  ])('%s', (_what, volume, ...[observed, actions, state]) => {
    const plan = planVolume(volume, { pods: [], ...observed }, context);
    expect(actionsOf(plan)).toEqual(actions);
    expect(plan.state).toMatchObject(state);
  });

  it('gets no owner that would delete it', () => {
    const [action] = planVolume(serving, { pods: [], foreign: theirs() }, context).actions;
    expect(JSON.stringify(action)).not.toContain('ownerReferences');
  });
});

describe('planVolume', () => {
  it.each(rows)('%s', (_what, volume, ...[observed, actions, state]) => {
    const plan = planVolume(volume, { pods: [], ...observed }, context);
    expect(actionsOf(plan)).toEqual(actions);
    expect(plan.state).toMatchObject(state);
  });

  it.each([
    { as: 'its one controller', before: [], controllers: [true] },
    {
      as: 'an owner beside the controller it has',
      before: [{ kind: 'VirtualMachine', uid: 'vm', controller: true }],
      controllers: [true, false],
    },
  ])('adopts a prepared claim with Bullion as $as, once', ({ before, controllers }) => {
    const foreign = { ...golden, metadata: { ...golden.metadata, ownerReferences: before as never } };
    const { actions } = planVolume(adopting, { pods: [], foreign }, context);
    const change =
      actions[0]?.do === 'patch' ? (actions[0].patch as { metadata: PersistentVolumeClaim['metadata'] }) : undefined;
    expect(change?.metadata.ownerReferences?.map(({ controller }) => controller)).toEqual(controllers);
    const adopted = { ...golden, metadata: { ...golden.metadata, ...change?.metadata } };
    const again = planVolume(adopting, { pods: [], foreign: adopted }, context);
    expect(again).toMatchObject({ actions: [], state: { phase: 'Available' } });
  });

  it('finds a volume that is reserved for its claim, and matches it', async () => {
    const kube = createMemoryKube();
    const volume = { ...imported, claim: { ...imported.claim, mayBeStatic: true } };
    const claimRefs = {
      others: { namespace: 'other', name: 'disk' },
      taken: { namespace: 'default', name: 'disk', uid: 'x' },
    };
    for (const [name, claimRef] of Object.entries(claimRefs))
      kube.seed(persistentVolumes, { ...promised, metadata: { name }, spec: { ...promised.spec, claimRef } });
    expect(await findPromised(kube, volume)).toBeUndefined();
    kube.seed(persistentVolumes, promised);
    expect((await findPromised(kube, volume))?.metadata.name).toBe('brought');
    expect(await findPromised(kube, imported)).toBeUndefined();
    const [made] = planVolume(volume, { pods: [], promised }, context).actions;
    expect(made).toMatchObject({
      object: {
        metadata: { annotations: { [annotations.populated]: expect.stringContaining('raw') as string } },
        spec: {
          volumeName: 'brought',
          storageClassName: 'slow',
          volumeMode: 'Block',
          accessModes: ['ReadWriteOnce'],
          resources: { requests: { storage: '2Gi' } },
        },
      },
    });
  });

  it('deletes a snapshot that was taken only for it', () => {
    const sourceSnapshot = {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { ...childMetadata(ref, 'snapshot', `clone-${ref.uid}`), uid: 's' },
      spec: { source: { persistentVolumeClaimName: 'x' } },
    };
    const actionsWith = (marks: Record<string, string>) =>
      actionsOf(
        planVolume(aVolume(), { pods: [], claim: aClaim(marks, 'Bound'), sourceSnapshot, storageClass }, context),
      );
    expect(actionsWith(clone('snapshot'))).toEqual([
      'patch PersistentVolumeClaim disk-vmv-pvc',
      'delete VolumeSnapshot clone-<uid>',
    ]);
    expect(actionsWith(filled)).toEqual(['delete VolumeSnapshot clone-<uid>']);
  });

  it('records its clone source on the claim, for passes after the source is gone', () => {
    const { actions } = planVolume(aVolume(), { pods: [], origin: anOrigin(), storageClass }, context);
    expect(actions[0]).toMatchObject({
      object: {
        metadata: { annotations: { [annotations.clone]: expect.stringContaining('"strategy":"snapshot"') as string } },
        spec: {
          storageClassName: 'local',
          volumeMode: 'Block',
          dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'ubuntu-image-snapshot' },
        },
      },
    });
  });

  it.each([
    { as: 'its source, in the same mode', from: 'Block', to: 'Block', bytes: 2 * gib },
    { as: 'the disk and its file system, from a device', from: 'Block', to: 'Filesystem', bytes: undefined },
    { as: 'the disk alone, from a file system', from: 'Filesystem', to: 'Block', bytes: gib },
  ] as const)('is as large as $as, where nobody says how large', ({ from, to, bytes }) => {
    const overhead = testSettings.filesystemOverhead;
    const origin = anOrigin({ volumeMode: from, diskBytes: gib, bytes: 2 * gib }, null);
    const volume = aVolume({ claim: { name: 'disk-vmv-pvc', volumeMode: to } });
    const { actions } = planVolume(volume, { pods: [], origin, storageClass }, context);
    const [made] = actions.flatMap((one) => (one.do === 'create' ? [one.object as PersistentVolumeClaim] : []));
    const asked = parseQuantity(made?.spec.resources?.requests?.['storage']) ?? 0;
    expect(asked).toBe(bytes ?? volumeBytesFor(gib, to, overhead));
    expect(diskBytesIn(asked, to, overhead)).toBeGreaterThanOrEqual(gib);
  });

  it.each([
    { as: 'inspects a restored claim once, when its class waits and its user does not', isBoundAtOnce: true },
    { as: 'waits for its consumer otherwise', isBoundAtOnce: false },
  ])('$as', ({ isBoundAtOnce }) => {
    const waiting = aStorageClass('local', { volumeBindingMode: 'WaitForFirstConsumer' });
    const volume = aVolume({ isBoundAtOnce, waitsForConsumer: !isBoundAtOnce });
    const observed = { pods: [], claim: aClaim(clone('snapshot'), 'Pending'), storageClass: waiting };
    const { actions, state } = planVolume(volume, observed, context);
    expect(state.reason).toBe(isBoundAtOnce ? 'Binding' : 'WaitForFirstConsumer');
    const names = actions.map((one) => (one.do === 'create' ? one.object.metadata.name : one.do));
    expect(names).toEqual(isBoundAtOnce ? [`inspect-${ref.uid}`] : []);
    const inspectJob = aJob('inspect', {}, owner);
    expect(planVolume(volume, { ...observed, inspectJob }, context).actions).toEqual([]);
    const bound = planVolume(volume, { ...observed, claim: aClaim(clone('snapshot'), 'Bound'), inspectJob }, context);
    expect(bound.state.phase).toBe('Available');
  });

  it.each([
    { share: '0.2', as: 'more than others' },
    { share: '0.01', as: 'less than others' },
    { share: undefined, as: 'as much as others' },
  ])('has room for the disk when the file systems of its class have $as overhead', ({ share }) => {
    const disk = 10 * gib;
    const marks = share === undefined ? {} : { 'cdi.harvesterhci.io/filesystemOverhead': share };
    const metadata = { ...storageClass.metadata, annotations: marks };
    const volume = { ...imported, claim: { name: 'disk', diskBytes: disk, volumeMode: 'Filesystem' as const } };
    const { actions } = planVolume(volume, { pods: [], storageClass: { ...storageClass, metadata } }, context);
    const [claim, job] = actions.flatMap((one) => (one.do === 'create' ? [JSON.stringify(one.object)] : []));
    const overhead = share === undefined ? testSettings.filesystemOverhead : Number(share);
    const asked = parseQuantity(/"storage":"([^"]+)"/.exec(claim ?? '')?.[1]) ?? 0;
    expect(asked).toBe(volumeBytesFor(disk, 'Filesystem', overhead));
    const told = Number(/capacityBytes\\*":(\d+)/.exec(job ?? '')?.[1]);
    expect(told).toBe(diskBytesIn(asked, 'Filesystem', overhead));
    expect(told).toBeGreaterThanOrEqual(disk);
  });

  it.each<[what: string, volume: Partial<Volume>, observed: Partial<ObservedVolume>, size: string]>([
    ['a disk with less', { claim: profiled({ diskBytes: gib }) }, {}, '4Gi'],
    ['a disk with more', { claim: profiled({ diskBytes: 5 * gib }) }, {}, '5Gi'],
    ['a disk as a file', { claim: profiled({ diskBytes: gib, volumeMode: 'Filesystem' }) }, {}, '4Gi'],
    ['a copy of a smaller volume', { ...cloned, claim: profiled({}) }, { origin: anOrigin() }, '4Gi'],
    ['a copy with less', { ...cloned, claim: profiled({ diskBytes: 2 * gib }) }, { origin: anOrigin() }, '4Gi'],
    ['a claim that is taken as it is', { claim: { name: 'disk', bytes: gib } }, {}, '1Gi'],
  ])('of %s requests at least the minimum of the profile of its class', (_what, volume, over, size) => {
    const profile = aStorageProfile({ annotations: { 'cdi.kubevirt.io/minimumSupportedPvcSize': '4Gi' } });
    const { actions } = planVolume({ ...imported, ...volume }, { pods: [], storageClass, profile, ...over }, context);
    const [made] = actions.flatMap((one) => (one.do === 'create' ? [one.object as PersistentVolumeClaim] : []));
    expect(made?.spec.resources?.requests?.['storage']).toBe(size);
  });

  it('is copied as the profile of its class requires, whoever set its size', () => {
    const profile = aStorageProfile({ spec: { cloneStrategy: 'copy' } });
    const { state } = planVolume(aVolume(), { pods: [], origin: anOrigin(), storageClass, profile }, context);
    expect(state.clone).toEqual({ strategy: 'copy', because: 'class local asks for it' });
  });

  it.each([
    { what: 'the disk', format: 'qcow2', source: '/source/disk.img', target: '/target/disk.img' },
    { what: 'the files', format: 'tar', source: '/source', target: '/target' },
  ] as const)('copies $what of a file system, by what it was filled with', ({ format, source, target }) => {
    const population = { ...aPopulation, inspection: { ...aPopulation.inspection, format } };
    const from = { name: 'other', volumeMode: 'Filesystem' };
    const record = JSON.stringify({ strategy: 'copy', because: 'so', from, population });
    const made = aClaim({ [annotations.clone]: record });
    const claim = { ...made, spec: { ...made.spec, volumeMode: 'Filesystem' as const } };
    const { actions } = planVolume(aVolume(), { pods: [], claim, storageClass }, context);
    const [job] = actions.flatMap((one) => (one.do === 'create' ? [one.object as ReturnType<typeof aJob>] : []));
    const [{ value = '' } = {}] = job?.spec.template.spec.containers[0]?.env ?? [];
    expect(JSON.parse(value)).toMatchObject({
      source: { type: 'volume', path: expect.stringMatching(new RegExp(`${source}$`)) as string },
      target: { path: expect.stringMatching(new RegExp(`${target}$`)) as string },
    });
  });

  it('mounts the source of a copy read-only', () => {
    const { actions } = planVolume(aVolume(), { pods: [], claim: aClaim(clone('copy')), storageClass }, context);
    expect(actions[0]).toMatchObject({
      object: {
        spec: {
          template: {
            spec: {
              volumes: [
                { name: 'scratch' },
                { name: 'source', persistentVolumeClaim: { claimName: 'ubuntu-image-pvc', readOnly: true } },
                { name: 'target', persistentVolumeClaim: { claimName: 'disk-vmv-pvc' } },
              ],
            },
          },
        },
      },
    });
  });
});

it('passes the properties of an image on to the claim and to the object that it belongs to', () => {
  const preference = { 'instancetype.kubevirt.io/default-preference': 'fedora' };
  const labels = { ...preference, 'kubevirt.io/vm': 'theirs' };
  const report = aSuccess({ inspection: { ...aPopulation.inspection, labels } });
  const pods = [aPod(complete, 'a', 'Succeeded', { report })];
  const told = (volume: Volume): readonly unknown[] =>
    planVolume(volume, { pods, claim: aClaim({}), storageClass, job: complete }, context).actions.flatMap((action) =>
      action.do === 'patch' ? [[action.type.kind, (action.patch as { readonly metadata: object }).metadata]] : [],
    );
  const marked = ['PersistentVolumeClaim', expect.objectContaining({ labels: preference })];
  expect(told(imported)).toEqual([marked]);
  const owned = { ...imported, labelled: dataVolumeKind.type };
  expect(told(owned)).toEqual([['DataVolume', { labels: preference }], marked]);
});

describe('the claim of a clone', () => {
  const preference = { 'instancetype.kubevirt.io/default-preference': 'fedora' };
  const labelled = (clone: Partial<ReadyOrigin['clone']> = {}, snapshot?: null): ReadyOrigin => ({
    ...anOrigin(clone, snapshot),
    claim: { ...golden, metadata: { ...golden.metadata, labels: { ...preference, os: 'theirs' } } },
  });
  const bare = { hasSnapshot: false };
  const asking = (cloneStrategy: string) => aStorageProfile({ spec: { cloneStrategy } } as object);

  it.each<[strategy: string, origin: ReadyOrigin, profile: ReturnType<typeof asking> | undefined, because?: string]>([
    ['snapshot', labelled(), undefined],
    ['csi-clone', labelled(bare, null), asking('csi-clone')],
    ['copy', labelled(), asking('copy'), 'class local asks for it'],
    ['copy', labelled(bare, null), undefined, 'local.bullion.dev makes no snapshots and is not known to clone'],
  ])(
    'records the strategy %s, why it is copied, and the labels that KubeVirt infers from',
    (strategy, origin, ...[profile, because]) => {
      const volume = aVolume({ labelled: dataVolumeKind.type, state: { phase: 'Cloning' } });
      const first = planVolume(volume, { pods: [], origin, storageClass, profile }, context);
      const [made] = first.actions.flatMap((one) => (one.do === 'create' ? [one.object as PersistentVolumeClaim] : []));
      const marks = made?.metadata.annotations ?? {};
      expect([marks['cdi.kubevirt.io/cloneType'], marks['cdi.kubevirt.io/cloneFallbackReason']]).toEqual([
        strategy,
        because,
      ]);
      // The source is gone by now.
      const ended = strategy === 'copy' ? { job: complete, pods: [copied] } : { pods: [] };
      const claim = {
        ...made!,
        metadata: { ...made!.metadata, resourceVersion: '1' },
        status: { phase: 'Bound' },
      } as const;
      const { actions } = planVolume({ ...volume, state: first.state }, { ...ended, claim, storageClass }, context);
      const told = actions.flatMap((action) =>
        action.do === 'patch'
          ? [[action.type.kind, (action.patch as { readonly metadata?: KubeObject['metadata'] }).metadata?.labels]]
          : [],
      );
      expect(told).toEqual([
        ['DataVolume', preference],
        ['PersistentVolumeClaim', preference],
      ]);
    },
  );
});

describe('storage that clones', () => {
  const at = (seconds: number) => ({ ...context, now: testTime + seconds * 1000 });
  const warning = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e' },
    involvedObject: {},
    reason: 'ProvisioningFailed',
    message: 'the pool is full',
  };
  const base = aClaim(clone('csi-clone'));
  const made = new Date(testTime).toISOString();
  const claim = { ...base, metadata: { ...base.metadata, creationTimestamp: made } };
  const step = (state: ImageState, seconds: number, warnings: readonly (typeof warning)[] = []): ImageState =>
    planVolume(aVolume({ state }), { pods: [], claim, storageClass, warnings }, at(seconds)).state;
  const { attemptSeconds, childSeconds } = testSettings;
  const begun = step({ ...initialState, phase: 'Cloning', reason: 'Starting', deadline: made }, 1);

  it('has as much time as an attempt that moves the same bytes, however long it waited before', () => {
    expect(step(begun, attemptSeconds)).toMatchObject({ phase: 'Cloning', reason: 'Cloning' });
    expect(step(begun, attemptSeconds + childSeconds)).toMatchObject({ phase: 'Failed', reason: 'Cloning' });
  });

  it('fails earlier once it reports an error', () => {
    const complaining = step(begun, 3_600, [warning]);
    expect(complaining).toMatchObject({ phase: 'Cloning', reason: 'ProvisioningFailed' });
    expect(step(complaining, 3_600 + childSeconds - 1, [warning])).toMatchObject({ phase: 'Cloning' });
    expect(step(complaining, 3_600 + childSeconds, [warning])).toMatchObject({
      phase: 'Failed',
      message: expect.stringContaining('pool is full') as string,
    });
  });
});
