// A disk that is filled beside its claim, one row per situation: the observed state, the actions, and the status. That no pod ever finds an unfinished
// disk, whatever fails meanwhile, is the scenario `disks-of-pods` of test/faults.
import { describe, expect, it } from 'vitest';
import type { Job, PersistentVolume, PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/object.ts';
import type { Plan } from '#shared/populate/actions.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import { buildPrime, isPrimeDue, primeName, selectedNode } from '#shared/populate/volume/prime.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { aPod, aPopulation, aStorageClass, aSuccess, testSettings, testTime } from '#test/support/builders.ts';

const context = { now: testTime, settings: testSettings };
const ref = {
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  namespace: 'default',
  name: 'disk',
  uid: '22222222-2222-4222-8222-222222222222',
} as const;

const waiting: Volume = {
  ref,
  generation: 1,
  deleting: false,
  finalizers: [],
  faults: [],
  source: { type: 'transfer', from: { type: 'http', url: 'https://a/b' } },
  claim: { name: 'disk', bytes: 2 ** 30 },
  waitsForConsumer: true,
  retries: 3,
  state: initialState,
};
const atOnce = { ...waiting, waitsForConsumer: false };
const storageClass = aStorageClass('local', { volumeBindingMode: 'WaitForFirstConsumer' });
const around = { storageClass, isDriverOfCsi: true };

type Claim = PersistentVolumeClaim;

const made = { ...childMetadata(ref, 'disk', 'disk'), uid: 'claim', resourceVersion: '1' };
const chosen = { [selectedNode]: 'one' };
const handover = { [annotations.handover]: JSON.stringify({ volume: 'pv', population: aPopulation }) };
const aClaim = (marks: Record<string, string> = {}, status: Claim['status'] = {}, volumeName?: string): Claim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { ...made, annotations: { ...made.annotations, ...marks } },
  spec: {
    storageClassName: 'local',
    volumeMode: 'Block',
    resources: { requests: { storage: '1Gi' } },
    dataSourceRef: { apiGroup: 'cdi.kubevirt.io', kind: 'DataVolume', name: 'disk' },
    ...(volumeName === undefined ? {} : { volumeName }),
  },
  status,
});
const aPrime = (phase: 'Pending' | 'Bound' | 'Lost', marks: Record<string, string> = chosen): Claim => {
  const { metadata, spec, ...rest } = buildPrime(waiting, aClaim(marks));
  return {
    ...rest,
    metadata: { ...metadata, uid: 'prime', resourceVersion: '1' },
    spec: { ...spec, ...(phase === 'Pending' ? {} : { volumeName: 'pv' }) },
    status: { phase },
  };
};
const aVolumeOf = (uid: string): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec: { capacity: {}, accessModes: [], claimRef: { namespace: 'default', name: 'any', uid } },
});
const aJobOn = (claimName: string, status: Job['status'] = { active: 1 }): Job => {
  const target = { claimName, volumeMode: 'Block', capacityBytes: 2 ** 30 } as const;
  const source = { type: 'http', url: 'https://a/b' } as const;
  const job = buildTransferJob({ mode: 'import', owner: ref, source, target, retries: 3 }, testSettings);
  return { ...job, metadata: { ...job.metadata, uid: 'job' }, status };
};
const onPrime = aJobOn(primeName(ref));
const complete = aJobOn(primeName(ref), { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const done = aPod(complete, 'a', 'Succeeded', { report: aSuccess() });

/** Its Job has ended, and the volume is still that of the prime claim. */
const filled = {
  ...around,
  claim: aClaim(chosen),
  prime: aPrime('Bound'),
  primeVolume: aVolumeOf('prime'),
  job: complete,
  pods: [done],
};

const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) => {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    return `${action.do} ${action.type.kind} ${name.replace(ref.uid, '<uid>')}`;
  });
const bodiesOf = ({ actions }: Plan): readonly object[] =>
  actions.flatMap((action) => (action.do === 'patch' ? [action.patch] : action.do === 'create' ? [action.object] : []));

type Row = [
  what: string,
  volume: Volume,
  observed: Partial<ObservedVolume>,
  actions: readonly string[],
  state: Partial<ImageState>,
];

const prime = 'PersistentVolumeClaim prime-<uid>';
const rows: readonly Row[] = [
  [
    'only its claim is made before a pod uses it',
    waiting,
    around,
    ['create PersistentVolumeClaim disk'],
    { reason: 'WaitForFirstConsumer' },
  ],
  [
    'nor is more while none does',
    waiting,
    { ...around, claim: aClaim() },
    [],
    { reason: 'WaitForFirstConsumer', deadline: undefined },
  ],
  [
    'the storage makes a volume beside it once one does',
    waiting,
    { ...around, claim: aClaim(chosen) },
    [`create ${prime}`],
    { reason: 'Starting', deadline: expect.any(String) as string },
  ],
  [
    'that is waited for',
    waiting,
    { ...around, claim: aClaim(chosen), prime: aPrime('Pending') },
    [],
    { reason: 'Starting' },
  ],
  [
    'the scheduler chooses again where the storage has no room',
    waiting,
    { ...around, claim: aClaim(chosen), prime: aPrime('Pending', {}) },
    [`delete ${prime}`, 'patch PersistentVolumeClaim disk'],
    { reason: 'WaitForFirstConsumer', deadline: undefined },
  ],
  [
    'a Job fills it',
    waiting,
    { ...around, claim: aClaim(chosen), prime: aPrime('Bound') },
    ['create Job import-<uid>'],
    { reason: 'Starting' },
  ],
  [
    'it is handed over once it is complete',
    waiting,
    filled,
    ['patch PersistentVolumeClaim disk', 'patch PersistentVolume pv'],
    { phase: 'Verifying', reason: 'HandingOver' },
  ],
  [
    'a volume of somebody else that the second claim names is not touched',
    waiting,
    { ...filled, primeVolume: aVolumeOf('of-others') },
    ['delete Job import-<uid>', `delete ${prime}`],
    { reason: 'ChildDeleted' },
  ],
  [
    'nor is one that its user wrote into the record of the handover',
    waiting,
    { ...around, claim: aClaim(handover), prime: aPrime('Bound'), primeVolume: aVolumeOf('of-others'), job: complete },
    ['delete Job import-<uid>', `delete ${prime}`, 'patch PersistentVolumeClaim disk'],
    { reason: 'ChildDeleted' },
  ],
  [
    'again where only the record of it was written',
    waiting,
    { ...filled, claim: aClaim({ ...chosen, ...handover }) },
    ['patch PersistentVolume pv'],
    { reason: 'HandingOver' },
  ],
  [
    'then its claim is waited for',
    waiting,
    { ...around, claim: aClaim(handover), prime: aPrime('Lost'), primeVolume: aVolumeOf('claim'), job: complete },
    [],
    { reason: 'HandingOver' },
  ],
  [
    'what filled it goes once it has arrived, the Job excepted',
    waiting,
    {
      ...around,
      claim: aClaim(handover, { phase: 'Bound' }, 'pv'),
      prime: aPrime('Lost'),
      job: complete,
      pods: [done],
    },
    ['patch PersistentVolumeClaim disk', `delete Pod import-<uid>-a`, `delete ${prime}`],
    { phase: 'Available' },
  ],
  [
    'also where the pass before died in between',
    waiting,
    {
      ...around,
      claim: aClaim({ ...handover, [annotations.populated]: JSON.stringify(aPopulation) }, { phase: 'Bound' }, 'pv'),
      prime: aPrime('Lost'),
      job: complete,
      pods: [done],
    },
    [`delete Pod import-<uid>-a`, `delete ${prime}`],
    { phase: 'Available' },
  ],
  [
    'it starts over where its volume is gone',
    waiting,
    { ...around, claim: aClaim({ ...chosen, ...handover }), prime: aPrime('Lost'), job: complete },
    ['delete Job import-<uid>', `delete ${prime}`, 'patch PersistentVolumeClaim disk'],
    { reason: 'ChildDeleted' },
  ],
  [
    'it starts over where the second claim is lost',
    waiting,
    { ...around, claim: aClaim(chosen), prime: aPrime('Lost'), job: onPrime },
    ['delete Job import-<uid>', `delete ${prime}`],
    { reason: 'ChildDeleted' },
  ],
  [
    'a claim that somebody else gave a volume is not filled from beside it',
    waiting,
    { ...around, claim: aClaim(chosen, { phase: 'Bound' }, 'other'), prime: aPrime('Bound'), job: onPrime },
    ['delete Job import-<uid>', `delete ${prime}`],
    { reason: 'ChildDeleted' },
  ],
  [
    'but in place',
    waiting,
    { ...around, claim: aClaim(chosen, { phase: 'Bound' }, 'other') },
    ['create Job import-<uid>'],
    { reason: 'Starting' },
  ],
  [
    'and is complete when that Job is',
    waiting,
    { ...around, claim: aClaim({}, { phase: 'Bound' }, 'other'), job: aJobOn('disk', complete.status), pods: [done] },
    ['patch PersistentVolumeClaim disk'],
    { phase: 'Available' },
  ],
  [
    'where nobody is waited for, all are made at once',
    atOnce,
    around,
    ['create PersistentVolumeClaim disk', `create ${prime}`, 'create Job import-<uid>'],
    { reason: 'Starting' },
  ],
  [
    'a retry removes all',
    { ...waiting, retryToken: '1', state: { ...initialState, phase: 'Failed' } },
    { ...around, claim: aClaim(chosen), prime: aPrime('Bound'), job: onPrime },
    ['delete Job import-<uid>', 'delete PersistentVolumeClaim disk', `delete ${prime}`],
    { reason: 'Restarting' },
  ],
];

describe('a disk that a Job fills', () => {
  it.each(rows)('%s', (_what, volume, ...[observed, actions, state]) => {
    const plan = planVolume(volume, { pods: [], ...observed }, context);
    expect(actionsOf(plan)).toEqual(actions);
    expect(plan.state).toMatchObject(state);
  });

  it('has a claim that no CSI provisioner serves, and a second one on the node of its consumer', () => {
    const [claim] = bodiesOf(planVolume(waiting, { pods: [], ...around }, context)) as PersistentVolumeClaim[];
    const dataSourceRef = { apiGroup: 'cdi.kubevirt.io', kind: 'DataVolume', name: 'disk' };
    expect(claim?.spec).toMatchObject({ dataSourceRef, storageClassName: 'local' });
    const plan = planVolume(waiting, { pods: [], ...around, claim: aClaim(chosen) }, context);
    const [second] = bodiesOf(plan) as PersistentVolumeClaim[];
    expect(second?.metadata.annotations).toMatchObject(chosen);
    expect(second?.spec).toEqual({
      storageClassName: 'local',
      volumeMode: 'Block',
      resources: { requests: { storage: '1Gi' } },
    });
  });

  it('has a second claim at once in a class that binds at once', () => {
    const observed = { pods: [], storageClass: aStorageClass('local'), isDriverOfCsi: true };
    const plan = planVolume(waiting, observed, context);
    expect(actionsOf(plan).slice(0, 2)).toEqual(['create PersistentVolumeClaim disk', `create ${prime}`]);
    const [claim, second] = bodiesOf(plan) as PersistentVolumeClaim[];
    expect([claim?.spec.dataSourceRef?.kind, second?.spec.dataSourceRef]).toEqual(['DataVolume', undefined]);
  });

  it('gets the volume with the UID of its claim, recorded before', () => {
    const [record, bound] = bodiesOf(planVolume(waiting, filled, context));
    expect(record).toMatchObject({
      metadata: { annotations: { [annotations.handover]: expect.stringContaining('"volume":"pv"') as string } },
    });
    expect(bound).toMatchObject({ spec: { claimRef: { namespace: 'default', name: 'disk', uid: 'claim' } } });
  });

  it.each<[string, Volume, Partial<ObservedVolume>]>([
    ['of a driver that is not of CSI', waiting, { storageClass, isDriverOfCsi: false }],
    ['that is golden', { ...waiting, claim: { ...waiting.claim, role: 'volume' } }, around],
    [
      'that is the version of a cron',
      { ...waiting, claim: { ...waiting.claim, labels: { [cdiLabels.cron]: 'c' } } },
      around,
    ],
  ])('has one claim alone: one %s', (_what, volume, observed) => {
    const bodies = bodiesOf(planVolume(volume, { pods: [], ...observed }, context)) as PersistentVolumeClaim[];
    expect(bodies.filter(({ kind }) => kind === 'PersistentVolumeClaim')).toHaveLength(1);
    expect(bodies[0]?.spec.dataSourceRef).toBeUndefined();
  });

  it.each([
    ['is made', aClaim(), false],
    ['is used by a pod', aClaim(chosen), true],
    ['is to get its volume', aClaim(handover), true],
    ['has it', aClaim({ ...chosen, ...handover }, { phase: 'Bound' }, 'pv'), false],
  ])('is looked at again when its claim %s: %#', (_when, claim, isDue) => {
    expect(isPrimeDue(claim)).toBe(isDue);
  });
});
