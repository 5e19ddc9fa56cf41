import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { jobs, pods } from '#shared/api/foreign/core.ts';
import { refOf } from '#shared/api/object.ts';
import { startTransfer } from '#shared/populate/job/start-transfer.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { recordProgress } from '#shared/resources/report.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import { aFault, aHyperCloudImage, aPod, testSettings, testTime } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { seedWorker, signedProgress } from '#test/support/transfer-secret.ts';

const { type } = hyperCloudImageKind;

const reportOf = (run: string, over: Partial<TransferProgress> = {}): TransferProgress => ({
  run,
  startedAt: '2026-01-02T03:04:00Z',
  sequence: 1,
  phase: 'Inspecting',
  percent: 0,
  receivedBytes: 0,
  ...over,
});

/** The transfer in the status once an inspection of the source has reported. */
const reportedAfter = async (note: string | undefined): Promise<string | undefined> => {
  const driver = createTestReconciler();
  const seeded = driver.kube.seed(type, aHyperCloudImage());
  const owner = refOf(seeded);
  const job = buildTransferJob({ mode: 'inspect', owner, source: { type: 'blank' }, retries: 0 }, testSettings);
  await startTransfer(driver.kube, job);
  const { name } = job.metadata;
  driver.kube.edit(
    type,
    seeded.metadata,
    (image) => void (image.status = { phase: 'Pending', children: { job: name } }),
  );
  seedWorker(driver.kube, `${name}-aaaaa`);
  const event = signedProgress(driver.kube, owner, reportOf(`${name}-aaaaa`, { note }));
  await recordProgress(driver, event, event.data!);
  return (await driver.kube.get(type, seeded.metadata))?.status?.transfer?.note;
};

it.each([
  ['what keeps it from its end', 'cannot connect to the server'],
  ['nothing without a change', undefined],
])('an inspection of a source reports %s', async (_what, note) => {
  expect(await reportedAfter(note)).toBe(note);
});

const imageOf = (driver: ReturnType<typeof createTestReconciler>) => driver.kube.all(type)[0]!;

/** An import with its Job. Pods are created one after the other; the counts of the Job and what a pass observes lag behind. */
const beginImport = async () => {
  let now = testTime;
  let started = 0;
  let isRunning = false;
  const driver = { ...createTestReconciler(), now: () => now };
  const { kube } = driver;
  const pvc = { resources: { requests: { storage: '3Gi' } }, storageClassName: 'local' };
  const owner = refOf(
    kube.seed(type, aHyperCloudImage({ spec: { source: { http: 'https://images.example/ubuntu.img' }, pvc } })),
  );
  await reconcile(driver, owner);
  const job = kube.all(jobs)[0]!;
  return {
    start: () => {
      if (isRunning || started > 3) return;
      isRunning = true;
      const pod = aPod(job, `pod-${started}`, 'Running');
      started += 1;
      kube.seed(pods, { ...pod, metadata: { ...pod.metadata, creationTimestamp: new Date(now).toISOString() } });
    },
    fail: () => {
      if (!isRunning) return;
      isRunning = false;
      const { metadata, status } = aPod(job, `pod-${started - 1}`, 'Failed', { report: aFault(), exitCode: 1 });
      kube.edit(pods, metadata, (pod) => void Object.assign(pod, { status }));
    },
    count: () => {
      const failed = started - (isRunning ? 1 : 0);
      kube.edit(jobs, job.metadata, (edited) => void (edited.status = { ...edited.status, failed }));
    },
    pass: () => reconcile(driver, owner, { which: 'all' }),
    report: async (of: number, sequence: number, percent: number) => {
      const startedAt = new Date(testTime + of * 60_000).toISOString();
      const over = { startedAt, sequence, percent, phase: 'Downloading' } as const;
      const event = signedProgress(kube, owner, reportOf(`${job.metadata.name}-pod-${of}`, over));
      await recordProgress(driver, event, event.data!);
    },
    /** The progress in the status, `undefined` once it has failed. */
    look: () => {
      now += 3000;
      const { attempts = 0, progress = 0, state } = imageOf(driver).status ?? {};
      return state === 'Error' ? undefined : { attempts, progress };
    },
  };
};

type World = Awaited<ReturnType<typeof beginImport>>;

const happening: fc.Arbitrary<(world: World) => unknown> = fc.oneof(
  fc
    .tuple(fc.nat(3), fc.nat(30), fc.integer({ min: 0, max: 99 }))
    .map((report) => (world: World) => world.report(...report)),
  fc.constantFrom('start', 'fail', 'count', 'pass').map((what) => (world: World) => world[what as 'start']()),
);

const historyOf = async (steps: readonly ((world: World) => unknown)[]) => {
  const world = await beginImport();
  const history: { readonly attempts: number; readonly progress: number }[] = [];
  for (const step of steps) {
    await step(world);
    const observed = world.look();
    if (observed === undefined) break;
    history.push(observed);
  }
  return history;
};

describe('attempts and progress', () => {
  it('change together, whatever the order of reports, pods and passes: progress restarts with an attempt, and only then', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(happening, { maxLength: 40 }), async (steps) => {
        const history = await historyOf(steps);
        expect(history).toEqual(history.toSorted((a, b) => a.attempts - b.attempts || a.progress - b.progress));
      }),
      { numRuns: 150 },
    );
  });

  it('handle a new pod that reports before the failure of the previous one was counted', async () => {
    const world = await beginImport();
    world.start();
    await world.report(0, 1, 50);
    expect(world.look()).toEqual({ attempts: 1, progress: 50 });
    world.fail();
    world.start();
    await world.report(1, 1, 5);
    expect(world.look()).toEqual({ attempts: 1, progress: 50 });
    world.count();
    await world.pass();
    expect(world.look()).toEqual({ attempts: 2, progress: 5 });
    await world.report(0, 9, 60);
    expect(world.look()).toEqual({ attempts: 2, progress: 5 });
    await world.report(1, 2, 8);
    expect(world.look()).toEqual({ attempts: 2, progress: 8 });
  });
});
