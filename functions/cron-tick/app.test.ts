import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/cron-tick/app.ts';
import { eventTypes } from '#events/catalogue.ts';
import { jobs, kubeEvents, secrets } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aHyperCloudImage } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { sendChange, sendEvent } from '#test/support/send-event.ts';

const given = () => {
  const deps = createTestReconciler();
  return { ...deps, app: createApp(deps) };
};

describe('cron-tick answers 204', () => {
  it('and reconciles an image none of whose events arrived', async () => {
    const { app, kube } = given();
    kube.seed(hyperCloudImageKind.type, aHyperCloudImage());
    expect((await sendEvent(app, eventTypes.ping, { job: 'sweep' })).status).toBe(204);
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('and records an event that no function could process on the object it is about', async () => {
    const { app, kube } = given();
    const image = kube.seed(hyperCloudImageKind.type, aHyperCloudImage());
    expect((await sendChange(app, 'update', image, '/dead-letters')).status).toBe(204);
    expect(kube.all(kubeEvents)).toMatchObject([
      {
        type: 'Warning',
        reason: 'EventNotHandled',
        involvedObject: { kind: 'VirtualMachineImage', name: 'ubuntu' },
      },
    ]);
  });

  it('to a dead letter of an unknown type', async () => {
    const headers = { 'ce-specversion': '1.0', 'ce-id': '1', 'ce-source': '/x', 'ce-type': 'com.example.unknown' };
    const response = await given().app.request('/dead-letters', { method: 'POST', headers });
    expect(response.status).toBe(204);
  });
});

describe('cron-tick and the admission certificate', () => {
  it('creates it when that is configured, and answers 204 when it cannot', async () => {
    const deps = createTestReconciler();
    const app = createApp({ ...deps, ownCertificate: true });
    deps.kube.failNext({ verb: 'create', resource: 'secrets' }, { error: new Unavailable('down'), when: 'before' });
    expect((await sendEvent(app, eventTypes.ping, { job: 'sweep' })).status).toBe(204);
    expect(deps.kube.all(secrets)).toEqual([]);
    expect((await sendEvent(app, eventTypes.ping, { job: 'sweep' })).status).toBe(204);
    expect(deps.kube.all(secrets).map(({ metadata }) => metadata.name)).toEqual(['admission-ca', 'admission-tls']);
  });

  it('does not touch it otherwise', async () => {
    const { app, kube } = given();
    await sendEvent(app, eventTypes.ping, { job: 'sweep' });
    expect(kube.all(secrets)).toEqual([]);
  });
});

describe('cron-tick at rest', () => {
  const rested = async (over: Partial<Parameters<typeof createApp>[0]> = {}) => {
    const deps = createTestReconciler();
    const app = createApp({ ...deps, sweepSeconds: 3600, ...over });
    const sweeps = async (): Promise<boolean> => {
      const before = deps.kube.calls.length;
      await sendEvent(app, eventTypes.ping, { job: 'sweep' });
      return deps.kube.calls.slice(before).some(({ resource }) => resource === 'virtualmachineimages');
    };
    for (let minute = 0; minute < 3; minute += 1) await sweeps();
    return { app, sweeps };
  };

  it('looks at everything once an event could not be handled, or another function of its process has written', async () => {
    let writes = 0;
    const { app, sweeps } = await rested({ writesElsewhere: () => writes });
    expect(await sweeps()).toBe(false);
    await sendChange(app, 'update', aHyperCloudImage(), '/dead-letters');
    expect([await sweeps(), await sweeps()]).toEqual([true, false]);
    writes += 1;
    expect([await sweeps(), await sweeps()]).toEqual([true, false]);
  });

  it('goes on until the webhooks trust its certificate', async () => {
    const { sweeps } = await rested({ ownCertificate: true });
    expect(await sweeps()).toBe(true);
  });
});

describe('cron-tick answers 503', () => {
  it('when it cannot list objects', async () => {
    const { app, kube } = given();
    kube.failNext({ verb: 'list' }, { error: new Unavailable('down'), when: 'before' });
    expect((await sendEvent(app, eventTypes.ping, { job: 'sweep' })).status).toBe(503);
  });
});
