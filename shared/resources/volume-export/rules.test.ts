// The decisions about an export, by tables: what is read, when it fails, what is removed before that is reported.
import { buildExportJob } from '#shared/resources/volume-export/children.ts';
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { buildFilePod, fetchHint } from './children.ts';
import { toExport, toExportStatus } from './dialect.ts';
import { type ExportState, toExportPlace } from './rules.ts';
import { removeExport } from './failing.ts';
import { planExport } from './plan.ts';
import { testSettings, testTime } from '#test/support/builders.ts';
import {
  anExportJob as aJob,
  anExport,
  anExportObject as anObject,
  exportContext as context,
  iso,
  observedWith,
  exportPodOf as podOf,
  exportSuccess as success,
} from '#test/support/volume-export.ts';

const claim: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'root', namespace: 'ns', uid: 'claim-1' },
  spec: { accessModes: ['ReadWriteOnce'], volumeMode: 'Block', storageClassName: 'local' },
  status: { phase: 'Bound' },
};

const anOrigin = (clone: Partial<ReadyOrigin['clone']> = {}): ReadyOrigin => ({
  is: 'ready',
  namespace: 'ns',
  className: 'local',
  accessModes: ['ReadWriteOnce'],
  claim,
  clone: {
    what: 'PersistentVolumeClaim root',
    driver: 'd',
    volumeMode: 'Block',
    bytes: 2 ** 30,
    diskBytes: 2 ** 30,
    hasSnapshot: false,
    hasClaim: true,
    ...clone,
  },
});

const doing = ({ actions }: { actions: readonly { do: string; type: { kind: string }; object?: object }[] }) =>
  actions.map((action) => `${action.do} ${action.type.kind}`);

describe('the volume that an export reads', () => {
  it.each([
    ['a snapshot when the driver supports them', { snapshotClass: 'snap' }, ['create VolumeSnapshot'], 'Snapshotting'],
    [
      'a snapshot also of a disk in use',
      { snapshotClass: 'snap', inUseBy: 'vm' },
      ['create VolumeSnapshot'],
      'Snapshotting',
    ],
    ['the claim when no pod writes to it', {}, ['create Job'], 'Starting'],
    ['not available while a pod writes to it', { inUseBy: 'vm' }, [], 'SourceInUse'],
  ] as const)('is %s', (_, clone, actions, reason) => {
    const plan = planExport(anExport(), observedWith({ origin: anOrigin(clone) }), context);
    expect(doing(plan)).toEqual(actions);
    expect(plan.state.reason).toBe(reason);
  });

  it('waits without a deadline for a machine that uses the disk', () => {
    const { state } = planExport(anExport(), observedWith({ origin: anOrigin({ inUseBy: 'vm-pod' }) }), context);
    expect(state).toMatchObject({ phase: 'Pending', deadline: undefined, message: expect.stringContaining('vm-pod') });
  });

  it('is the clone of the snapshot once that is ready', () => {
    const snapshot = {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: { name: 'export-uid-1', namespace: 'ns', uid: 's' },
      spec: { source: {} },
      status: { readyToUse: true, restoreSize: '2Gi' },
    };
    const plan = planExport(
      anExport(),
      observedWith({ origin: anOrigin({ snapshotClass: 'snap' }), snapshot }),
      context,
    );
    expect(doing(plan)).toEqual(['create PersistentVolumeClaim', 'create Job']);
    expect(plan.actions[0]).toMatchObject({
      object: {
        metadata: { name: 'export-uid-1' },
        spec: { dataSource: { name: 'export-uid-1' }, resources: { requests: { storage: '2Gi' } } },
      },
    });
    expect(plan.state).toMatchObject({ from: 'snapshot', children: { job: 'export-uid-1' } });
  });
});

describe('a failed export', () => {
  const job = aJob('export-uid-1', 'Failed');
  const running: Partial<ExportState> = { phase: 'Exporting', children: { job: 'export-uid-1' }, from: 'snapshot' };
  const failed = () =>
    planExport(anExport(running), observedWith({ job, pods: [podOf(job, undefined, 'Failed')] }), context);

  it('removes its parts from the store before it fails', () => {
    const plan = failed();
    expect(doing(plan)).toEqual(['create Job']);
    expect(plan.actions[0]).toMatchObject({ object: { metadata: { name: 'abort-uid-1' } } });
    expect(plan.state).toMatchObject({ phase: 'Exporting', reason: 'Aborting', failing: { reason: 'WorkerKilled' } });
  });

  it.each<[string, number, readonly (true | undefined)[], boolean]>([
    ['of each attempt', 2, [true, true], true],
    ['of one of the attempts', 2, [true, undefined], false],
    ['of the attempt whose pod is left', 2, [true], false],
  ])('has no parts where nothing was sent, by the reports %s', (_what, failures, reports, isOver) => {
    const ended = { ...job, status: { ...job.status, failed: failures } };
    const report = { outcome: 'failed', reason: 'TargetFailed', message: 'the Secret is missing', retryable: true };
    const pods = reports.map((sentNothing) => podOf(job, { ...report, receivedBytes: 0, sentNothing }, 'Failed'));
    const plan = planExport(anExport(running), observedWith({ job: ended, pods }), context);
    const says = isOver ? /^the Secret is missing \(attempt [^;]*$/ : /^removing the unfinished upload/;
    expect(plan.state).toMatchObject({ phase: isOver ? 'Failed' : 'Exporting', message: expect.stringMatching(says) });
    expect(doing(plan)).toEqual([isOver ? 'delete Job' : 'create Job']);
  });

  it('then fails with the reason of the transfer', () => {
    const clearJob = aJob('abort-uid-1', 'Complete');
    const pods = [podOf(clearJob, { ...success, object: undefined }, 'Succeeded')];
    const plan = planExport(anExport(failed().state), observedWith({ job, clearJob, pods }), context);
    expect(plan.state).toMatchObject({ phase: 'Failed', reason: 'WorkerKilled', failing: undefined });
    expect(plan.state.message).not.toContain('may remain');
  });

  it('reports what could not be removed', () => {
    const clearJob = aJob('abort-uid-1', 'Failed');
    const plan = planExport(
      anExport(failed().state),
      observedWith({ job, clearJob, pods: [podOf(clearJob, undefined, 'Failed')] }),
      context,
    );
    expect(plan.state).toMatchObject({
      phase: 'Failed',
      message: expect.stringContaining('may remain at the destination'),
    });
  });

  it('waits for a Job that does not end only until a deadline', () => {
    const clearJob = aJob('abort-uid-1');
    const late = { ...context, now: testTime + (testSettings.childSeconds + 1) * 1000 };
    const plan = planExport(anExport(failed().state), observedWith({ job, clearJob }), late);
    expect(plan.state).toMatchObject({ phase: 'Failed', message: expect.stringContaining('does not end') });
  });
});

describe('a completed export', () => {
  const job = aJob('export-uid-1', 'Complete');
  const running: Partial<ExportState> = { phase: 'Exporting', children: { job: 'export-uid-1' }, from: 'claim' };
  const pods = [podOf(job, success, 'Succeeded')];

  it('reports its result, and keeps it', () => {
    const { state } = planExport(anExport(running), observedWith({ job, pods }), context);
    expect(state).toMatchObject({ phase: 'Available', object: success.object, digests: success.digests });
    const status = toExportStatus(anObject(), anExport(), state, iso(0));
    expect(status).toMatchObject({
      state: 'Completed',
      size: 700,
      object: { url: 's3://vmimage/mydisk', etag: '"e"' },
    });
    const again = toExport({ ...anObject(), status });
    expect(again.state).toMatchObject({ object: success.object, from: 'claim', phase: 'Available' });
    expect(planExport(again, observedWith({}), context)).toMatchObject({ actions: [], state: again.state });
  });

  it('keeps its object in the store when it is deleted', () => {
    const done = anExport({ ...running, phase: 'Available' });
    expect(removeExport(done, observedWith({}), context)).toMatchObject({ actions: [], removed: true });
  });
});

describe('an export that is deleted while it runs', () => {
  const running = anExport({ phase: 'Exporting', children: { job: 'export-uid-1' } });

  it('stops the transfer, removes its parts, and is deleted', () => {
    const job = aJob('export-uid-1');
    expect(doing(removeExport(running, observedWith({ job }), context))).toEqual(['delete Job']);
    const cleared = removeExport(running, observedWith({}), context);
    expect(doing(cleared)).toEqual(['create Job']);
    expect(cleared).toMatchObject({ removed: false, state: { phase: 'Terminating' } });
    const clearJob = aJob('abort-uid-1', 'Complete');
    const pods = [podOf(clearJob, { ...success, object: undefined }, 'Succeeded')];
    expect(removeExport(running, observedWith({ clearJob, pods }), context).removed).toBe(true);
  });

  it('does not block the deletion of a namespace in which nothing can be created any more', () => {
    expect(removeExport(running, observedWith({ isNamespaceLeaving: true }), context).removed).toBe(true);
  });
});

describe('the address of an object', () => {
  const inHost = { pathStyle: false };
  const inPath = { pathStyle: true };
  it.each([
    [
      'https://vmimage.objectstore.example/mydisk.qcow2',
      { endpoint: 'https://objectstore.example', bucket: 'vmimage', key: 'mydisk.qcow2', ...inHost },
    ],
    [
      'https://my.bucket.s3.eu-west-1.amazonaws.com/a/b',
      {
        endpoint: 'https://s3.eu-west-1.amazonaws.com',
        region: 'eu-west-1',
        bucket: 'my.bucket',
        key: 'a/b',
        ...inHost,
      },
    ],
    [
      'https://s3.example.org/bucket/a/b',
      { endpoint: 'https://s3.example.org', bucket: 'bucket', key: 'a/b', ...inPath },
    ],
    [
      'https://storage.googleapis.com/bucket/a/b',
      { endpoint: 'https://storage.googleapis.com', bucket: 'bucket', key: 'a/b', ...inPath },
    ],
    [
      'https://bucket.storage.googleapis.com/key',
      { endpoint: 'https://storage.googleapis.com', bucket: 'bucket', key: 'key', ...inHost },
    ],
    [
      'https://golden.blob.core.windows.net/images/key',
      { endpoint: 'https://golden.blob.core.windows.net', bucket: 'images', key: 'key', ...inPath },
    ],
    ['http://10.0.0.1:9000/bucket/key', { endpoint: 'http://10.0.0.1:9000', bucket: 'bucket', key: 'key', ...inPath }],
    ['http://[::1]:9000/bucket/key', { endpoint: 'http://[::1]:9000', bucket: 'bucket', key: 'key', ...inPath }],
    [
      'http://minio.storage.svc:9000/bucket/key',
      { endpoint: 'http://minio.storage.svc:9000', bucket: 'bucket', key: 'key', ...inPath },
    ],
    [
      'http://bucket.minio.storage.svc.cluster.local/key',
      { endpoint: 'http://minio.storage.svc.cluster.local', bucket: 'bucket', key: 'key', ...inHost },
    ],
  ])('%s', (url, value) => {
    expect(toExportPlace(url)).toMatchObject({ value });
  });

  it.each([
    'https://bucket.store.example/',
    'https://s3.example.org/bucket',
    'ftp://a.b/c',
    'https://a.b.c/k?X-Amz-Signature=s',
  ])('is rejected: %s', (url) => {
    expect(toExportPlace(url)).toHaveProperty('problem');
  });
});

describe('the pod that serves a local export', () => {
  const at = { is: 'local', claimName: 'file', podName: 'exporter' } as const;

  it('runs with only Node in its image, until it is terminated', async () => {
    const { command = [] } = buildFilePod(anExport(), at, testSettings).spec.containers[0]!;
    expect(command[0]).toBe('node');
    const child = spawn(process.execPath, command.slice(1), { env: {}, stdio: 'ignore' });
    const ended = once(child, 'exit');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(child.exitCode).toBeNull();
    child.kill('SIGTERM');
    await ended;
  });

  it('returns every byte to the documented command', () => {
    const dir = mkdtempSync(join(tmpdir(), 'export-'));
    const bytes = randomBytes(5_000_000);
    writeFileSync(join(dir, 'disk.img'), bytes);
    const [, code = ''] = /^kubectl exec exporter -- node -e "(.*)" > disk\.qcow2$/.exec(fetchHint(at)) ?? [];
    const { stdout } = spawnSync(process.execPath, ['-e', code.replace('/export/', `${dir}/`)], { maxBuffer: 2 ** 24 });
    rmSync(dir, { recursive: true });
    expect(code).toContain('/export/disk.img');
    expect(stdout.equals(bytes)).toBe(true);
  });
});

describe('an export to a registry', () => {
  const destination = { registry: { url: 'docker://registry.example/disks/root:one', secretRef: 'push' } };
  const spec = { pvcName: 'root', destination };
  const name = 'export-uid-1';
  const running: Partial<ExportState> = { phase: 'Exporting', children: { job: name }, from: 'claim' };
  const digest = `sha256:${'a'.repeat(64)}`;
  const pushed = { ...success, object: { size: 4096, digest, isConfirmed: true } };

  it('gives the Job the image, who it is for, and the Secret by its name', () => {
    const plan = planExport(anExport({}, spec), observedWith({ origin: anOrigin() }), context);
    const made = JSON.stringify(plan.actions);
    expect(made).toContain('docker://registry.example/disks/root:one');
    expect(made).toContain('uid-1');
    expect(made).toContain('"secretName":"push"');
  });

  it('gives the Job what the image says of itself, and the key that signs it by its name', () => {
    const registry = { ...destination.registry, compression: 'zstd', signingSecretRef: 'keys' } as const;
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        name: 'root',
        labels: { 'instancetype.kubevirt.io/default-preference': 'fedora', app: 'x' },
        annotations: { 'cdi.kubevirt.io/storage.import.endpoint': 'https://me:secret@images.example/f.qcow2?sig=1' },
      },
      spec: {},
    };
    const resource = toExport({
      ...anObject({ pvcName: 'root', destination: { registry } }),
      metadata: { ...anObject(spec).metadata, creationTimestamp: '2026-01-02T03:04:05Z' },
    });
    const job = buildExportJob(resource, { destination: resource.destination!, claim, of: claim }, context.settings);
    const made = JSON.stringify(job);
    for (const text of [
      'org.opencontainers.image.title',
      'https://images.example/f.qcow2',
      'INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora',
      '2026-01-02T03:04:05Z',
      '"compression\\":\\"zstd',
    ])
      expect(made).toContain(text);
    expect(made).not.toMatch(/secret@|sig=1/);
    const { volumes, containers } = job.spec.template.spec;
    expect(volumes).toContainEqual({ name: 'signing-key', secret: { secretName: 'keys', optional: true } });
    expect(containers[0]?.volumeMounts).toContainEqual({
      name: 'signing-key',
      mountPath: '/signing-key',
      readOnly: true,
    });
  });

  it('reports the image by its digest, and reads that again', () => {
    const job = aJob(name, 'Complete');
    const pods = [podOf(job, pushed, 'Succeeded')];
    const { state } = planExport(anExport(running, spec), observedWith({ job, pods }), context);
    expect(state).toMatchObject({ reason: 'Ready', message: 'exported to docker://registry.example/disks/root:one' });
    const object = anObject(spec);
    const status = toExportStatus(object, toExport(object), state, iso(0));
    expect(status.image).toEqual({ reference: `docker://registry.example/disks/root@${digest}`, digest, size: 4096 });
    expect(status.object).toBeUndefined();
    expect(toExport({ ...object, status }).state.object).toEqual({ size: 4096, digest, isConfirmed: true });
  });

  it('leaves nothing to remove when it fails, since nothing refers to what was sent', () => {
    const job = aJob(name, 'Failed');
    const failed = { outcome: 'failed', reason: 'TargetFailed', message: 'no', retryable: false, receivedBytes: 0 };
    const plan = planExport(
      anExport(running, spec),
      observedWith({ job, pods: [podOf(job, failed, 'Failed')] }),
      context,
    );
    expect(plan.state).toMatchObject({ phase: 'Failed', reason: 'TargetFailed' });
  });
});
