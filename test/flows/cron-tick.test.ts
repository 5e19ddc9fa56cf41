// The tasks of cron-tick besides ticks, with its own account: the admission certificate, and events that no function could process.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { kubeEvents, secrets } from '#shared/api/foreign/core.ts';
import { validatingWebhookConfigurations } from '#shared/api/foreign/kubernetes.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';
import { renewCertificate } from '#shared/certificate/renew.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';

const { authoritySecret, serverSecret, configuration } = admissionCertificate;
const year = 365 * 24 * 3600_000;

describe('the service account of cron-tick', () => {
  let cluster: TestCluster;
  let kube: KubeClient;
  beforeAll(async () => {
    cluster = await startTestCluster();
    kube = createKubeClient(loadKubeConfig(join(cluster.dataDir, 'accounts', 'cron-tick.kubeconfig')));
  });
  afterAll(() => cluster?.close());

  const secretOf = async (name: string): Promise<string> =>
    JSON.stringify((await cluster.kube.get(secrets, { namespace: systemNamespace, name }))?.data ?? {});
  const trusted = async () =>
    (await cluster.kube.get(validatingWebhookConfigurations, { name: configuration }))?.webhooks?.[0]?.clientConfig
      .caBundle;

  it('counts dead letters about one object, from one function, on one Event', async () => {
    const { broker } = cluster.eventing;
    const extensions = {
      apiversion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      name: 'odd',
      namespace,
    };
    for (const id of ['first', 'second']) {
      const about = { source: '/test', type: 'dev.knative.apiserver.resource.update', extensions };
      await broker.publish({ id, ...about, datacontenttype: 'application/json', data: { metadata: 'none' } });
      await broker.idle();
    }
    const { items } = await cluster.kube.list(kubeEvents, { namespace, fieldSelector: 'involvedObject.name=odd' });
    // One for each function that could not process it.
    expect(new Set(items.map(({ reason, count }) => `${reason} ${count}`))).toEqual(new Set(['EventNotHandled 2']));
  });

  it('creates the admission certificate and has it trusted, and renews it when it expires', async () => {
    const before = await trusted();
    await renewCertificate(kube, Date.now());
    const made = [await secretOf(authoritySecret), await secretOf(serverSecret), await trusted()];
    expect(made[2]).not.toBe(before);
    await renewCertificate(kube, Date.now() + 20 * year);
    const anew = [await secretOf(authoritySecret), await secretOf(serverSecret), await trusted()];
    for (const [index, text] of anew.entries()) expect(text).not.toBe(made[index]);
  });
});
