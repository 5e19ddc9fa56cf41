// What an installation at rest asks the API server for in an hour, with everything that a tick does.
import { expect, it } from 'vitest';
import { createApp } from '#functions/cron-tick/app.ts';
import { Config } from '#functions/cron-tick/config.ts';
import { eventTypes } from '#events/catalogue.ts';
import { readEventing } from '#infra/local/manifests.ts';
import { backends } from '#shared/backends/registry.ts';
import { type ConfigMap, configMaps, storageClasses } from '#shared/api/foreign/core.ts';
import {
  mutatingWebhookConfigurations,
  validatingWebhookConfigurations,
  type WebhookConfiguration,
} from '#shared/api/foreign/kubernetes.ts';
import type { KubeClient, RawRequest } from '#shared/clients/kube/client.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import { NotFound } from '#shared/runtime/errors.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { aStorageClass, testSettings, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { nothingElse } from '#test/support/reconcile.ts';
import { sendEvent } from '#test/support/send-event.ts';

/** With a sweep every five minutes, as by default, and with one every twelve. */
it.each([
  [{}, 540],
  [{ SWEEP_SECONDS: '720' }, 300],
])('with %j it makes at most %i requests', async (environment, most) => {
  let clock = testTime;
  const now = (): number => clock;
  const memory = createMemoryKube({ now });
  let raws = 0;
  // Of the products that are watched once they are there, it has KubeVirt and snapshots.
  const served = {
    'kubevirt.io/v1': ['VirtualMachine', 'VirtualMachineInstance'],
    'snapshot.storage.k8s.io/v1': ['VolumeSnapshot'],
  };
  const raw = async ({ path }: RawRequest): Promise<unknown> => {
    raws += 1;
    if (path === '/apis')
      return { groups: [{ versions: Object.keys(served).map((groupVersion) => ({ groupVersion })) }] };
    const found = Object.entries(served).find(([version]) => path === `/apis/${version}`);
    if (found === undefined) throw new NotFound(path);
    return { resources: found[1].map((kind) => ({ kind })) };
  };
  const kube: KubeClient = { ...memory, raw: raw as KubeClient['raw'] };
  memory.seed(
    configMaps,
    (await readEventing()).find(({ metadata }) => metadata?.name === 'optional-sources') as ConfigMap,
  );
  memory.seed(storageClasses, aStorageClass());
  for (const type of [validatingWebhookConfigurations, mutatingWebhookConfigurations])
    memory.seed(type, {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: type.kind,
      metadata: { name: 'bullion' },
    } as WebhookConfiguration);
  const { sweepSeconds } = parseConfig(Config, environment);
  const templates = { ...nothingElse.templates, mode: 'auto' } as const;
  const cdi = createCdiLook(kube, 'auto', now);
  const app = createApp({
    ...nothingElse,
    cdi,
    templates,
    kube,
    backends,
    settings: testSettings,
    now,
    log,
    ownCertificate: true,
    sweepSeconds,
  });
  const tick = async (): Promise<number> => {
    const before = memory.calls.length + raws;
    clock += 60_000;
    expect((await sendEvent(app, eventTypes.ping, { job: 'sweep' })).status).toBe(204);
    return memory.calls.length + raws - before;
  };
  for (let minute = 0; minute < 5; minute += 1) await tick();
  const counts: number[] = [];
  for (let minute = 0; minute < 60; minute += 1) counts.push(await tick());
  expect(counts.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(most);
});
