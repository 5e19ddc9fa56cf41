import { generateKeyPairSync } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Hono } from 'hono';
import { createApp } from '#functions/sidecar-sync/app.ts';
import { eventTypes } from '#events/catalogue.ts';
import { signEvent } from '#events/signature.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { type ObjectRef, refOf } from '#shared/api/object.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { aHyperCloudImage, aPod, aSuccess, testTime } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { postEvent, sendChange, sendEvent } from '#test/support/send-event.ts';
import { seedWorker, signedProgress } from '#test/support/transfer-secret.ts';

let app: Hono;
let kube: MemoryKube;
let owner: ObjectRef;

/** An image whose volume and Job have just been created. */
beforeEach(async () => {
  const deps = createTestReconciler();
  kube = deps.kube;
  app = createApp(deps);
  const pvc = { resources: { requests: { storage: '3Gi' } }, storageClassName: 'local' };
  const spec = { source: { http: 'https://images.example/ubuntu.img' }, pvc };
  owner = refOf(kube.seed(hyperCloudImageKind.type, aHyperCloudImage({ spec })));
  await reconcile(deps, owner);
});

const statusNow = () => kube.all(hyperCloudImageKind.type)[0]?.status;
const jobNow = () => kube.all(jobs)[0]!;

const finishJob = () => {
  kube.seed(pods, aPod(jobNow(), 'aaaaa', 'Succeeded', { report: aSuccess() }));
  kube.edit(jobs, jobNow().metadata, (job) => {
    job.status = { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] };
  });
};

type Forged = Parameters<typeof postEvent>[2];

const runName = () => `${jobNow().metadata.name}-aaaaa`;
const podKey = () => ({ namespace: owner.namespace, name: runName() });
const endWorker = (phase: 'Failed' | 'Succeeded') =>
  kube.edit(pods, podKey(), (pod) => void (pod.status = { ...pod.status, phase }));
const signed = (sequence: number, percent: number) =>
  signedProgress(kube, owner, progressOf(sequence, percent).progress);

const progressOf = (sequence: number, percent: number) => ({
  owner,
  progress: {
    run: runName(),
    startedAt: new Date(testTime).toISOString(),
    sequence,
    phase: 'Downloading' as const,
    percent,
    receivedBytes: 5,
  },
});

describe('sidecar-sync answers 204', () => {
  it('and advances the image when its Job has finished, and again when its snapshot is ready', async () => {
    finishJob();
    expect((await sendChange(app, 'update', jobNow())).status).toBe(204);
    expect(statusNow()).toMatchObject({ phase: 'Snapshotting', progress: 99 });
    const [snapshot] = kube.all(volumeSnapshots);
    kube.edit(volumeSnapshots, snapshot!.metadata, (edited) => void (edited.status = { readyToUse: true }));
    expect((await sendChange(app, 'update', kube.all(volumeSnapshots)[0]!)).status).toBe(204);
    expect(statusNow()).toMatchObject({ state: 'Available', phase: 'Available', progress: 100 });
  });

  it('and detects that the golden volume of an available image was deleted', async () => {
    finishJob();
    await sendChange(app, 'update', jobNow());
    kube.edit(
      volumeSnapshots,
      kube.all(volumeSnapshots)[0]!.metadata,
      (edited) => void (edited.status = { readyToUse: true }),
    );
    await sendChange(app, 'update', kube.all(volumeSnapshots)[0]!);
    const [volume] = kube.all(persistentVolumeClaims);
    await kube.delete(persistentVolumeClaims as never, volume!.metadata);
    await sendChange(app, 'delete', volume!);
    expect(statusNow()).toMatchObject({ state: 'Error', phase: 'Failed' });
  });

  it('and copies progress into the status', async () => {
    seedWorker(kube, runName());
    expect((await postEvent(app, '/', signed(1, 40))).status).toBe(204);
    expect(statusNow()).toMatchObject({ phase: 'Downloading', progress: 40, attempts: 1 });
    expect((await postEvent(app, '/', signed(0, 10))).status).toBe(204);
    expect(statusNow()?.progress).toBe(40);
  });

  const others = generateKeyPairSync('ed25519');
  const othersKey = others.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const altered = (change: (data: Record<string, object>) => void): Forged => {
    const event = signed(1, 40);
    const data = structuredClone(event.data) as unknown as Record<string, object>;
    change(data);
    return { ...event, data };
  };
  const withSignature = (signature: string): Forged => ({ ...signed(1, 40), extensions: { signature } });
  const forgeries: readonly (readonly [what: string, forge: () => Forged, meanwhile?: () => void])[] = [
    ['that is not signed', () => withSignature('')],
    ['with a signature that is none', () => withSignature('AAAA')],
    ['signed with the key of another Job', () => signEvent(signed(1, 40), othersKey)],
    ['with other progress than was signed', () => altered(({ progress }) => Object.assign(progress!, { percent: 90 }))],
    [
      'with a later sequence than was signed',
      () => altered(({ progress }) => Object.assign(progress!, { sequence: 9 })),
    ],
    [
      'of another run than was signed',
      () => altered(({ progress }) => Object.assign(progress!, { run: `${runName()}b` })),
    ],
    ['under another id than was signed', () => ({ ...signed(1, 40), id: 'another' })],
    ['from another source than was signed', () => ({ ...signed(1, 40), source: 'another' })],
    ['about another subject than was signed', () => ({ ...signed(1, 40), subject: 'another' })],
    ['of a pod that has ended', () => signed(1, 40), () => endWorker('Failed')],
    ['of a pod that has succeeded', () => signed(1, 40), () => endWorker('Succeeded')],
    ['of a pod that is gone', () => signed(1, 40), () => void kube.delete(pods, podKey())],
    [
      'of an earlier Job of the same name',
      () => signed(1, 40),
      () => kube.edit(jobs, jobNow().metadata, (job) => void Object.assign(job.metadata, { uid: 'another' })),
    ],
    [
      'of a Job that names no key',
      () => signed(1, 40),
      () => kube.edit(jobs, jobNow().metadata, (job) => void (job.metadata.annotations = {})),
    ],
  ];
  it.each(forgeries.map(([what, forge, meanwhile]) => ({ what, forge, meanwhile })))(
    'and rejects a report $what',
    async ({ forge, meanwhile }) => {
      seedWorker(kube, runName());
      const event = forge();
      meanwhile?.();
      const before = statusNow();
      expect((await postEvent(app, '/', event)).status).toBe(204);
      expect(statusNow()).toEqual(before);
    },
  );

  it('and ignores the progress of an image that was recreated under the same name', async () => {
    const { progress } = progressOf(1, 40);
    const stranger = { ...owner, uid: 'that of an earlier one' };
    expect((await sendEvent(app, eventTypes.transferProgressed, { owner: stranger, progress })).status).toBe(204);
    expect(statusNow()?.progress).toBe(0);
  });

  it.each(['add', 'update'] as const)(
    'and sends no API request for a child without relevant changes (%s)',
    async (change) => {
      const before = kube.calls.length;
      await sendChange(app, change, jobNow());
      await sendChange(app, change, kube.all(persistentVolumeClaims)[0]!);
      expect(kube.calls).toHaveLength(before);
    },
  );

  it('and hands the claim of an upload over to its DataVolume, once', async () => {
    const marks = { labels: { [cdiLabels.applyProfile]: 'true' }, annotations: { [cdiAnnotations.uploadTarget]: '' } };
    const claim = kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'disk', namespace: 'vms', uid: 'that of the claim', ...marks },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    for (const change of ['add', 'update'] as const) expect((await sendChange(app, change, claim)).status).toBe(204);
    expect(kube.all(dataVolumeKind.type).map(({ metadata, spec }) => [metadata.name, spec.source])).toEqual([
      ['disk', { upload: {} }],
    ]);
    await kube.delete(dataVolumeKind.type, { namespace: 'vms', name: 'disk' });
    await kube.delete(persistentVolumeClaims, { namespace: 'vms', name: 'disk' });
    expect((await sendChange(app, 'update', claim)).status).toBe(204);
    expect(kube.all(dataVolumeKind.type)).toEqual([]);
  });

  it('to children without an owner', async () => {
    const job = { ...jobNow(), metadata: { ...jobNow().metadata, labels: {} } };
    const before = kube.calls.length;
    expect((await sendChange(app, 'delete', job)).status).toBe(204);
    expect(kube.calls).toHaveLength(before);
  });
});
