import { describe, expect, it } from 'vitest';
import { createApp } from '#functions/cron-tick/app.ts';
import { createHandlerPost } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import { createBroker } from '#local-cluster/broker/broker.ts';
import { createIngress } from '#local-cluster/broker/ingress.ts';
import { parseBrokerManifests, readManifests } from '#local-cluster/broker/manifest.ts';
import { type Subscriber, createResolver } from '#local-cluster/broker/resolver.ts';
import { backends } from '#shared/backends/registry.ts';
import { kubeEvents } from '#shared/api/foreign/core.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { nothingElse } from '#test/support/reconcile.ts';

const given = () => {
  const kube = createMemoryKube();
  return { kube, app: createApp({ ...nothingElse, kube, backends, settings: defaultSettings, now: Date.now, log }) };
};

describe('an event that no function can parse', () => {
  it('is recorded as a Kubernetes Event on its object, by the wiring of infra/knative', async () => {
    const { kube, app } = given();
    const broker = createBroker({
      manifests: parseBrokerManifests(await readManifests('infra/knative')),
      resolve: createResolver(
        new Map<string, Subscriber>([
          ['initialize', () => new Response('metadata.name: missing', { status: 400 })],
          ['cron-tick', async (request: Request) => app.fetch(request)],
        ]),
      ),
      log,
    });
    const ingress = createIngress(broker);
    const send = createSender({
      sink: `http://broker/${broker.namespace}/${broker.name}`,
      post: createHandlerPost(async (request) => ingress.fetch(request)),
    });
    const extensions = {
      apiversion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      namespace: 'default',
      name: 'image-1',
    };
    const { isDelivered } = await send({
      id: 'e-1',
      source: '/s',
      type: 'dev.knative.apiserver.resource.add',
      datacontenttype: 'application/json',
      extensions,
      data: { metadata: {} },
    });
    await broker.idle();
    expect(isDelivered).toBe(true);
    expect(broker.counts).toMatchObject({ deadLettered: 1, lost: 0 });
    expect(kube.all(kubeEvents)).toMatchObject([
      {
        involvedObject: { kind: 'VirtualMachineImage', namespace: 'default', name: 'image-1' },
        reason: 'EventNotHandled',
        message: expect.stringContaining('status 400: metadata.name: missing') as string,
      },
    ]);
  });
});
