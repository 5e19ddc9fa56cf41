// What must hold for every populated volume, a golden image as well as a user's own disk: one case for each rule, run for both.
import type { TransferReport } from '#shared/transfer/report.ts';
import { describe, expect, it } from 'vitest';
import {
  type Job,
  type PersistentVolumeClaim,
  jobs,
  kubeEvents,
  persistentVolumeClaims,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata } from '#shared/api/object.ts';
import { volumeOf } from '#shared/backends/csi/volume.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { checkVolume } from '#shared/populate/volume/check.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
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
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { execute } from '#test/support/reconcile.ts';

const image = anImage();
const checksum = { algorithm: 'sha256', hex: 'cd'.repeat(32) } as const;

const golden = volumeOf(image);
const disk: Volume = {
  ...golden,
  claim: { name: 'disk', bytes: 2 ** 30, className: 'local', volumeMode: 'Block' },
  snapshot: undefined,
  isBoundAtOnce: false,
};
const kinds = [
  { kind: 'a golden volume', volume: golden },
  { kind: 'somebody’s own disk', volume: disk },
];

const complete = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const active = aJob('import', { active: 1 });
const success = aPod(complete, 'a', 'Succeeded', { report: aSuccess() });

interface Situation {
  readonly claim?: {
    readonly marks?: Record<string, string>;
    readonly phase?: 'Bound' | 'Lost';
    readonly isLeaving?: true;
  };
  readonly job?: Job;
  readonly report?: TransferReport;
  readonly state?: Partial<ImageState>;
  readonly volume?: Partial<Volume>;
}

const claimOf = ({ ref, claim: { name, role } }: Volume, asked: NonNullable<Situation['claim']>) => {
  const metadata = childMetadata(ref, role ?? 'disk', name);
  const claim: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...metadata,
      annotations: { ...metadata.annotations, ...asked.marks },
      ...(asked.isLeaving === true
        ? { deletionTimestamp: '2026-01-02T03:00:00Z', finalizers: ['kubernetes.io/pvc-protection'] }
        : {}),
    },
    spec: { storageClassName: 'local', volumeMode: 'Block', resources: { requests: { storage: '1Gi' } } },
    status: { phase: asked.phase ?? 'Bound' },
  };
  return claim;
};

/** One pass over the current state; its actions, and its status. */
const pass = async (kind: Volume, { claim, job, report, state, volume }: Situation) => {
  const kube = createMemoryKube();
  kube.seed(storageClasses, aStorageClass());
  if (claim !== undefined) kube.seed(persistentVolumeClaims, claimOf(kind, claim));
  if (job !== undefined) kube.seed(jobs, job);
  const pod = report === undefined ? success : aPod(complete, 'a', 'Succeeded', { report });
  if (job === complete) kube.seed(pods, pod);
  const subject = { ...kind, ...volume, state: { ...initialState, ...state } };
  const plan = planVolume(subject, await checkVolume(kube, subject, {}), { now: testTime, settings: testSettings });
  await execute(kube, plan.actions);
  return { kube, plan, state: plan.state };
};

describe.each(kinds)('$kind', ({ volume: kind }) => {
  const populated = { [annotations.populated]: JSON.stringify(aPopulation) };

  it('is not published when its digest is not the requested one, whatever its worker reported', async () => {
    const { state, plan } = await pass(kind, { claim: {}, job: complete, volume: { checksum } });
    expect(state).toMatchObject({ phase: 'Failed', reason: 'ChecksumMismatch' });
    expect(plan.actions).toEqual([]);
  });

  it('starts again when its claim was deleted during its Job: what the Job wrote is lost', async () => {
    const { state, kube } = await pass(kind, {
      job: complete,
      state: { phase: 'Downloading', attempts: 1, progress: 90 },
    });
    expect(state).toMatchObject({ phase: 'Pending', reason: 'VolumeMissing', attempts: 0, progress: 0 });
    expect([kube.all(jobs), kube.all(persistentVolumeClaims)]).toEqual([[], []]);
  });

  it.each([
    ['is gone', undefined],
    ['is on its way out', { marks: populated, isLeaving: true }],
    ['lost its data', { marks: populated, phase: 'Lost' }],
  ] as const)('says that it is lost, and is not made again unasked, once its claim %s', async (_what, claim) => {
    const { state, kube } = await pass(kind, { ...(claim && { claim }), state: { phase: 'Available' } });
    expect(state).toMatchObject({ phase: 'Failed', reason: 'VolumeLost' });
    expect(kube.all(jobs)).toEqual([]);
  });

  it('is never populated again when only the mark of its claim was removed', async () => {
    const { state, kube } = await pass(kind, { claim: {}, state: { phase: 'Available' } });
    expect(state.phase).not.toBe('Failed');
    expect(kube.all(jobs)).toEqual([]);
  });

  it('keeps the reason for fetching again when only its claim records it', async () => {
    const marks = { [annotations.fetchReason]: 'nothing was kept of it' };
    const { state } = await pass(kind, { claim: { marks }, job: complete });
    expect(state.fetchReason).toBe('nothing was kept of it');
  });

  it('says where its bytes came from, also when only its claim records it, and not for a clone', async () => {
    const servedFrom = 'mirror.example/disks';
    const report = aSuccess({ servedFrom });
    const fetched = await pass(kind, { claim: {}, job: complete, report });
    expect(fetched.state.servedFrom).toBe(servedFrom);
    const [claim] = fetched.kube.all<PersistentVolumeClaim>(persistentVolumeClaims);
    const marks = claim?.metadata.annotations ?? {};
    expect((await pass(kind, { claim: { marks } })).state.servedFrom).toBe(servedFrom);
    const clone = JSON.stringify({ strategy: 'snapshot', because: 'its class can' });
    const cloned = await pass(kind, { claim: { marks: { ...marks, [annotations.clone]: clone } } });
    expect(cloned.state.servedFrom).toBeUndefined();
  });

  it('leaves a Job with its name alone that another owner controls, and reports it', async () => {
    const { ownerReferences: _ours, labels: _labels, ...metadata } = active.metadata;
    const { state, kube } = await pass(kind, { claim: {}, job: { ...active, metadata } });
    expect(state).toMatchObject({ phase: 'Pending', reason: 'NameTaken' });
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('discards the result of an earlier inspection when it is restarted', async () => {
    const looked = aJob('inspect', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
    const { state, kube } = await pass(kind, {
      claim: {},
      job: looked,
      state: { phase: 'Failed' },
      volume: { retryToken: 'again' },
    });
    expect(state).toMatchObject({ phase: 'Pending', reason: 'Restarting' });
    expect([kube.all(jobs), kube.all(persistentVolumeClaims)]).toEqual([[], []]);
  });

  it('reports the message of its storage when a copy does not finish', async () => {
    const record = { strategy: 'csi-clone', because: 'so', population: aPopulation };
    const marks = { [annotations.clone]: JSON.stringify(record) };
    const kube = createMemoryKube();
    kube.seed(storageClasses, aStorageClass());
    const { uid = '', name } = kube.seed(persistentVolumeClaims, {
      ...claimOf(kind, { marks }),
      status: { phase: 'Pending' },
    }).metadata;
    kube.seed(kubeEvents, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'full', namespace: 'default' },
      type: 'Warning',
      involvedObject: { kind: 'PersistentVolumeClaim', name, namespace: 'default', uid },
      reason: 'ProvisioningFailed',
      message: 'the pool is full',
      lastTimestamp: '2099-01-01T00:00:00Z',
    } as never);
    const deadline = new Date(testTime + 600_000).toISOString();
    const subject = { ...kind, state: { ...initialState, phase: 'Cloning', reason: 'Cloning', deadline } as const };
    const observed = await checkVolume(kube, subject, {});
    const { state } = planVolume(subject, observed, { now: testTime, settings: testSettings });
    expect(state).toMatchObject({ phase: 'Cloning', reason: 'ProvisioningFailed' });
  });
});

describe('a golden volume whose inspection ends while it is observed', () => {
  it('takes the result: a list of pods that is older than the end of their Job is not the whole one', async () => {
    const kube = createMemoryKube();
    kube.seed(storageClasses, aStorageClass());
    const looked = aJob('inspect', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
    let hasEnded = false;
    const racing: typeof kube = {
      ...kube,
      list: async (type, options) => {
        const found = await kube.list(type, options);
        if (type.kind === 'Pod' && !hasEnded) {
          hasEnded = true;
          kube.seed(jobs, looked);
          kube.seed(pods, aPod(looked, 'a', 'Succeeded', { report: aSuccess() }));
        }
        return found;
      },
    };
    const state = { ...initialState, children: { job: looked.metadata.name } };
    const sizeless = { ...golden, claim: { ...golden.claim, bytes: undefined }, state };
    const observed = await checkVolume(racing, { ...sizeless, trustsStatus: true }, {});
    const plan = planVolume(sizeless, observed, { now: testTime, settings: testSettings });
    expect(hasEnded).toBe(true);
    expect(plan.state).toMatchObject({ phase: 'Pending', failures: 0 });
    expect(plan.actions).not.toEqual([]);
  });
});
