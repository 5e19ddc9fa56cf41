// The end of an export: who wrote to the disk meanwhile, a Job that is behind its worker, a Job that does not stop, a name that is taken.
import { describe, expect, it } from 'vitest';
import {
  type Job,
  type PersistentVolumeClaim,
  type Pod,
  jobs,
  persistentVolumeClaims,
  pods as podType,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { childMetadata, refOf } from '#shared/api/object.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { toExport, toExportStatus } from '#shared/resources/volume-export/dialect.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { buildExportJob } from '#shared/resources/volume-export/children.ts';
import type { ExportState } from './rules.ts';
import { removeExport } from '#shared/resources/volume-export/failing.ts';
import { planExport } from '#shared/resources/volume-export/plan.ts';
import { type ObservedExport, checkExport } from '#shared/resources/volume-export/observed.ts';
import { aSnapshotClass, aStorageClass, testSettings, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import {
  anExport,
  anExportObject,
  anExportJob as aJob,
  exportContext as context,
  exportPodOf as podOf,
  exportSuccess as success,
  iso,
  observedWith,
} from '#test/support/volume-export.ts';
import { nothingElse } from '#test/support/reconcile.ts';

const name = 'export-uid-1';
const deps = { ...nothingElse, backends, settings: context.settings, now: () => testTime, log: silentLogger };
const running: Partial<ExportState> = { phase: 'Exporting', children: { job: name }, from: 'claim' };

/** Mounts the claim from one second to another; it still does when the latter is unset. */
const aWriter = (begin?: number, end?: number): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'vm', namespace: 'ns' },
  spec: { containers: [], volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'root' } }] },
  status: {
    phase: end === undefined ? 'Running' : 'Succeeded',
    ...(begin === undefined ? {} : { startTime: iso(begin) }),
    ...(end === undefined
      ? {}
      : { containerStatuses: [{ name: 'vm', state: { terminated: { exitCode: 0, finishedAt: iso(end) } } }] }),
  },
});

describe('an export that read a claim directly', () => {
  const job = aJob(name, 'Complete');
  const pods = [podOf(job, success, 'Succeeded')];

  it.each([
    ['began before the end', [aWriter(30)]],
    ['came and went meanwhile', [aWriter(20, 40)]],
    ['came before it and went meanwhile', [aWriter(-60, 40)]],
    ['is behind one that did not', [aWriter(90), aWriter(30)]],
  ])('is invalid, and deleted from the store, when a pod that mounts the claim %s', (_, writers) => {
    const plan = planExport(anExport(running), observedWith({ job, pods, writers }), context);
    expect(plan.state).toMatchObject({ reason: 'Aborting', failing: { reason: 'SourceChanged' } });
    expect(plan.actions[0]).toMatchObject({ object: { metadata: { name: 'discard-uid-1' } } });
  });

  it('is invalid, and removed from the registry, when a pod wrote to the claim meanwhile', () => {
    const spec = { pvcName: 'root', destination: { registry: { url: 'docker://registry.example/a:b' } } };
    const plan = planExport(anExport(running, spec), observedWith({ job, pods, writers: [aWriter(30)] }), context);
    expect(plan.state).toMatchObject({ reason: 'Aborting', message: expect.stringContaining('from the registry') });
    expect(plan.actions[0]).toMatchObject({ object: { metadata: { name: 'discard-uid-1' } } });
  });

  it.each([
    ['came after the end', [aWriter(90)]],
    ['was gone before', [aWriter(-60, -30)]],
    ['was deleted within the second of its start', [aWriter(-60, 0)]],
    ['has not started', [aWriter()]],
  ])('is valid when a pod that mounts the claim %s', (_, writers) => {
    expect(planExport(anExport(running), observedWith({ job, pods, writers }), context).state.reason).toBe('Ready');
  });

  it('also checks pods that have ended, and recorded writers', async () => {
    const kube = createMemoryKube();
    const resource = anExport({ ...running, from: undefined });
    kube.seed(jobs, { ...job, metadata: { ...job.metadata, ...childMetadata(resource.ref, 'export', name) } });
    kube.seed(podType, aWriter(20, 40));
    expect((await checkExport(kube, resource)).writers?.map(({ metadata }) => metadata.name)).toEqual(['vm']);
  });
});

it.each(['claim', 'snapshot'] as const)('an export records in its Job that it reads a %s', (from) => {
  const resource = anExport({ phase: 'Pending' });
  const { destination } = resource;
  const claimName = from === 'claim' ? 'root' : name;
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: claimName }, spec: {} };
  const job = buildExportJob(resource, { destination: destination!, claim, of: claim }, context.settings);
  expect(planExport(resource, observedWith({ job }), context).state.from).toBe(from);
});

describe('a worker that ends before its Job reports it', () => {
  const { status: _, ...job } = aJob(name);
  const pods = [podOf(job, success, 'Succeeded')];

  it('ends the export: its source is checked and deleted', async () => {
    const kube = createMemoryKube();
    const resource = anExport({ ...running, from: 'snapshot' });
    const { metadata } = kube.seed(jobs, {
      ...job,
      metadata: { ...job.metadata, ...childMetadata(resource.ref, 'export', name) },
    });
    const made = podOf({ ...job, metadata }, success, 'Succeeded');
    const { labels } = childMetadata(resource.ref, 'export', name);
    kube.seed(podType, { ...made, metadata: { ...made.metadata, namespace: 'ns', ...(labels && { labels }) } });
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: childMetadata(resource.ref, 'disk', name),
      spec: {},
    });
    const plan = planExport(resource, await checkExport(kube, resource), context);
    expect(plan.state.phase).toBe('Available');
    expect(plan.actions).toMatchObject([
      { do: 'delete', type: { kind: 'PersistentVolumeClaim' }, key: { name } },
      { do: 'delete', type: { kind: 'Job' }, key: { name }, propagation: 'Foreground' },
    ]);
  });

  it('makes the export invalid when a writer has started by now', () => {
    const observed = observedWith({ job: { ...job, status: { startTime: iso(-60) } }, pods, writers: [aWriter(-1)] });
    expect(planExport(anExport(running), observed, context).state).toMatchObject({
      failing: { reason: 'SourceChanged' },
    });
  });
});

describe('a Job that does not stop', () => {
  const { metadata, ...rest } = aJob(name);
  const job = { ...rest, metadata: { ...metadata, deletionTimestamp: iso(0) } };
  const late = { ...context, now: testTime + (testSettings.childSeconds + 1) * 1000 };

  it('is waited for, until a deadline', () => {
    const resource = anExport({ ...running, failing: { reason: 'SourceChanged', message: 'x' } });
    expect(planExport(resource, observedWith({ job }), context).state).toMatchObject({ reason: 'Aborting' });
    expect(planExport(resource, observedWith({ job }), late).state).toMatchObject({
      phase: 'Failed',
      message: expect.stringMatching(/may remain.*does not stop/),
    });
  });

  it('blocks a deletion only until a deadline', () => {
    expect(removeExport(anExport(running), observedWith({ job }), context).removed).toBe(false);
    expect(removeExport(anExport(running), observedWith({ job }), late).removed).toBe(true);
  });
});

it.each([
  ['the same', 'exports/root: no access (403)', /^exports\/root: no access \(403\); parts of it may remain.* either$/],
  ['another reason', 'the store is away', /^exports\/root: no access \(403\); parts.* removed: the store is away$/],
])('a failed export whose parts cannot be removed says %s once', (_what, because, says) => {
  const clearJob = aJob('abort-uid-1', 'Failed');
  const report = { outcome: 'failed', reason: 'TargetFailed', message: because, retryable: false, receivedBytes: 0 };
  const failing = { reason: 'TargetFailed', message: 'exports/root: no access (403)' };
  const observed = observedWith({ clearJob, pods: [podOf(clearJob, report, 'Failed')] });
  const { state } = planExport(anExport({ ...running, failing }), observed, context);
  expect(state).toMatchObject({ phase: 'Failed', message: expect.stringMatching(says) });
});

describe('a finished export that a late pass started again', () => {
  const metadata = (uid: string) => ({ name: uid, namespace: 'ns', uid });
  const begun = {
    job: aJob(name),
    snapshot: {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: metadata('snapshot'),
      spec: {},
    },
    copy: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: metadata('copy'), spec: {} },
  } as unknown as Partial<ObservedExport>;
  const clearJob = aJob('abort-uid-1');
  const file = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: metadata('file'),
    spec: {},
  } as PersistentVolumeClaim;
  const reading = ['delete copy', 'delete snapshot'];
  const going: Job = { ...aJob(name), metadata: { ...aJob(name).metadata, deletionTimestamp: iso(0) } };

  it.each<readonly [string, ExportState['phase'], Partial<ObservedExport>, readonly string[]]>([
    ['parts in the store are removed', 'Available', {}, ['create abort-uid-1', ...reading, `delete ${name}`]],
    ['once', 'Available', { clearJob }, [...reading, `delete ${name}`]],
    ['not of a Job that is going', 'Available', { job: going }, [...reading]],
    ['not of a Job that has ended', 'Available', { job: aJob(name, 'Complete') }, [...reading, `delete ${name}`]],
    [
      'what removed them goes',
      'Available',
      { job: undefined, clearJob: aJob('abort-uid-1', 'Complete') },
      [...reading, 'delete abort-uid-1'],
    ],
    [
      'the object is not removed',
      'Available',
      { job: undefined, clearJob: aJob('discard-uid-1') },
      [...reading, 'delete discard-uid-1'],
    ],
    ['a failed one keeps no file', 'Failed', { clearJob, file }, [...reading, `delete ${name}`, 'delete file']],
  ])('stays as it is, and what was begun goes: %s', (_what, phase, over, expected) => {
    const resource = anExport({ phase, reason: 'X', children: { job: name } });
    const { actions, state } = planExport(resource, observedWith({ ...begun, ...over }), context);
    expect(state).toEqual(resource.state);
    expect(
      actions.map((action) => `${action.do} ${action.do === 'create' ? action.object.metadata.name : action.key.name}`),
    ).toEqual(expected);
  });

  it('is cleaned up by the late pass itself, once that detects the situation', async () => {
    const kube = createMemoryKube();
    kube.seed(storageClasses, aStorageClass());
    kube.seed(volumeSnapshotClasses, aSnapshotClass());
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'root', namespace: 'ns' },
      spec: { storageClassName: 'local', volumeName: 'pv', resources: { requests: { storage: '1Gi' } } },
      status: { phase: 'Bound' },
    });
    const ref = refOf(kube.seed(volumeExportKind.type, anExportObject()));
    const pass = (client: KubeClient) =>
      reconcile({ ...deps, kube: client }, { ...ref, uid: undefined }, { which: 'unsettled' });
    await pass(kube);
    const [first] = kube.all(volumeSnapshots);
    await kube.delete(volumeSnapshots, first!.metadata, { uid: first!.metadata.uid!, propagation: 'Background' });
    const late = {
      ...kube,
      create: async (...args: Parameters<KubeClient['create']>) => {
        kube.edit(volumeExportKind.type, ref, (edited) => {
          const state = { ...toExport(edited).state, phase: 'Available', reason: 'Ready', progress: 100 } as const;
          Object.assign(edited, { status: toExportStatus(edited, toExport(edited), state, iso(0)) });
        });
        return kube.create(...args);
      },
    } as KubeClient;
    expect(await pass(late)).toEqual({ kind: 'done' });
    expect(kube.all(volumeSnapshots)).toEqual([]);
  });
});

it('a retry reports a name conflict, as the first attempt does', () => {
  const failed = { ...anExport({ phase: 'Failed', reason: 'WorkerKilled' }), retryToken: '1' };
  const foreign = [{ apiVersion: 'batch/v1', kind: 'Job', metadata: { name } }];
  expect(planExport(failed, observedWith({ foreign }), context)).toMatchObject({
    actions: [],
    state: { reason: 'NameTaken', handledRetryToken: '1' },
  });
});

it('a retry deletes the pod and the claim of a local export', () => {
  const failed = { ...anExport({ phase: 'Failed', reason: 'WorkerKilled' }), retryToken: '1' };
  const metadata = { name, namespace: 'ns', uid: 'shown' };
  const filePod: Pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers: [] } };
  const file = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec: {} };
  expect(planExport(failed, observedWith({ file, filePod }), context)).toMatchObject({
    actions: [
      { do: 'delete', type: { kind: 'Pod' }, key: { name } },
      { do: 'delete', type: { kind: 'PersistentVolumeClaim' }, key: { name } },
    ],
    state: { reason: 'Restarting' },
  });
});
