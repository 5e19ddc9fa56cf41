import { beforeEach, describe, expect, it } from 'vitest';
import type { Hono } from 'hono';
import { createApp } from '#functions/sidecar-sync/app.ts';
import { eventTypes } from '#events/catalogue.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { type ObjectRef, refOf } from '#shared/api/object.ts';
import { drive } from '#shared/resources/driver.ts';
import { aHyperCloudImage, aPod, aSuccess, testTime } from '#test/support/builders.ts';
import { createTestDriver } from '#test/support/driver.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { sendChange, sendEvent } from '#test/support/send-event.ts';

let app: Hono;
let kube: MemoryKube;
let owner: ObjectRef;

/** An image whose volume and Job have just been made. */
beforeEach(async () => {
  const deps = createTestDriver();
  kube = deps.kube;
  app = createApp(deps);
  const pvc = { resources: { requests: { storage: '3Gi' } }, storageClassName: 'local' };
  const spec = { source: { http: 'https://images.example/ubuntu.img' }, pvc };
  owner = refOf(kube.seed(hyperCloudImageKind.type, aHyperCloudImage({ spec })));
  await drive(deps, owner);
});

const statusNow = () => kube.all(hyperCloudImageKind.type)[0]?.status;
const jobNow = () => kube.all(jobs)[0]!;

const finishJob = () => {
  kube.seed(pods, aPod(jobNow(), 'aaaaa', 'Succeeded', { report: aSuccess() }));
  kube.edit(jobs, jobNow().metadata, (job) => {
    job.status = { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] };
  });
};

const progressOf = (sequence: number, percent: number) => ({
  owner,
  progress: {
    run: `${jobNow().metadata.name}-aaaaa`,
    startedAt: new Date(testTime).toISOString(),
    sequence,
    phase: 'Downloading',
    percent,
    receivedBytes: 5,
  },
});

describe('sidecar-sync answers 204', () => {
  it('and moves the image on when its Job is done, and again when its snapshot is ready', async () => {
    finishJob();
    expect((await sendChange(app, 'update', jobNow())).status).toBe(204);
    expect(statusNow()).toMatchObject({ phase: 'Snapshotting', progress: 99 });
    const [snapshot] = kube.all(volumeSnapshots);
    kube.edit(volumeSnapshots, snapshot!.metadata, (edited) => void (edited.status = { readyToUse: true }));
    expect((await sendChange(app, 'update', kube.all(volumeSnapshots)[0]!)).status).toBe(204);
    expect(statusNow()).toMatchObject({ state: 'Available', phase: 'Available', progress: 100 });
  });

  it('and notices that the golden volume of an available image is gone', async () => {
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

  it('and folds progress into status', async () => {
    expect((await sendEvent(app, eventTypes.transferProgressed, progressOf(1, 40))).status).toBe(204);
    expect(statusNow()).toMatchObject({ phase: 'Downloading', progress: 40, attempts: 1 });
    expect((await sendEvent(app, eventTypes.transferProgressed, progressOf(0, 10))).status).toBe(204);
    expect(statusNow()?.progress).toBe(40);
  });

  it('and ignores the progress of an image that was made anew', async () => {
    const { progress } = progressOf(1, 40);
    const stranger = { ...owner, uid: 'that of an earlier one' };
    expect((await sendEvent(app, eventTypes.transferProgressed, { owner: stranger, progress })).status).toBe(204);
    expect(statusNow()?.progress).toBe(0);
  });

  it.each(['add', 'update'] as const)(
    'and asks the API nothing about a child that says nothing new (%s)',
    async (change) => {
      const before = kube.calls.length;
      await sendChange(app, change, jobNow());
      await sendChange(app, change, kube.all(persistentVolumeClaims)[0]!);
      expect(kube.calls).toHaveLength(before);
    },
  );

  it('and gives a claim that is to be uploaded into a DataVolume, once', async () => {
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

  it('to children of nobody', async () => {
    const job = { ...jobNow(), metadata: { ...jobNow().metadata, labels: {} } };
    const before = kube.calls.length;
    expect((await sendChange(app, 'delete', job)).status).toBe(204);
    expect(kube.calls).toHaveLength(before);
  });
});
