import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/initialize/app.ts';
import { eventTypes } from '#events/catalogue.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { aHyperCloudImage, aVolume } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { sendChange, sendEvent } from '#test/support/send-event.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

const given = () => {
  const deps = createTestReconciler();
  const image = deps.kube.seed(hyperCloudImageKind.type, aHyperCloudImage());
  return { ...deps, image, app: createApp(deps) };
};

describe('initialize answers 204', () => {
  it('and begins the import of a new image', async () => {
    const { app, kube, image } = given();
    expect((await sendChange(app, 'add', image)).status).toBe(204);
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('and sends no API request for its own writes', async () => {
    const { app, kube, image } = given();
    await sendChange(app, 'add', image);
    const [reconciled] = kube.all(hyperCloudImageKind.type);
    const before = kube.calls.length;
    expect((await sendChange(app, 'update', reconciled!)).status).toBe(204);
    expect(kube.calls).toHaveLength(before);
  });

  it('and reconciles an image with a new retry annotation', async () => {
    const { app, kube, image } = given();
    await sendChange(app, 'add', image);
    const [reconciled] = kube.all(hyperCloudImageKind.type);
    const before = kube.calls.length;
    const asked = { ...reconciled!, metadata: { ...reconciled!.metadata, annotations: { 'bullion.dev/retry': '1' } } };
    await sendChange(app, 'update', asked);
    expect(kube.calls.length).toBeGreaterThan(before);
  });

  it('to an event that contains only a reference', async () => {
    const { app, kube, image } = given();
    const { apiVersion, kind, metadata } = image;
    const reference = { apiVersion, kind, namespace: metadata.namespace, name: metadata.name };
    expect((await sendEvent(app, eventTypes.referenceAdded, reference)).status).toBe(204);
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('to an event about something other than an image', async () => {
    const { app, kube } = given();
    expect((await sendChange(app, 'add', aVolume())).status).toBe(204);
    expect(kube.calls).toEqual([]);
  });
});

describe('initialize answers 400', () => {
  it('to a request that is not an event', async () => {
    const response = await given().app.request('/', { method: 'POST', body: 'hello' });
    expect(response.status).toBe(400);
  });
});

describe('initialize answers 503', () => {
  it('while the API is down, and continues when the event is sent again', async () => {
    const { app, kube, image } = given();
    kube.failNext({ verb: 'create', resource: 'jobs' }, { error: new Unavailable('down'), when: 'after' });
    const response = await sendChange(app, 'add', image);
    expect(response.status).toBe(503);
    expect(response.headers.get('retry-after')).not.toBeNull();
    expect((await sendChange(app, 'add', image)).status).toBe(204);
    expect(kube.all(jobs)).toHaveLength(1);
  });
});
