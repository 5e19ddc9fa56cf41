// What only Knative does: functions that start with the first request, and end when there is nothing to do. Figures are printed.
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { network } from '#local-cluster/node/layout.ts';
import { probeImage } from '#local-cluster/node/files.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { setUp } from '#test/cluster/set-up.ts';
import { anImage, diskIn, kube, kubectl, run, shape, timed, untilImage } from '#test/cluster/support.ts';

const mib = 2 ** 20;
const namespace = 'knative';
const functions = ['initialize', 'sidecar-sync', 'transfer'] as const;
/** They end only if a window of Knative's autoscaler is shorter than a minute. */
const calledEachMinute = ['cron-tick', 'import-object', 'backup-metadata'] as const;
const system = 'bullion-system';
const window = { 'autoscaling.knative.dev/window': '10s' } as const;
interface Service extends KubeObject {
  readonly spec: { readonly template: { readonly metadata: { readonly annotations: object }; readonly spec: object } };
}

const services: ResourceType<Service> = {
  group: 'serving.knative.dev',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
};

/** Status of the answer of a Knative Service, through its ingress. */
const ask = async (host: string, path = '/'): Promise<string> => {
  const only = ['-sS', '-m', '60', '-o', '/dev/null', '-w', '%{http_code}'];
  return (await run('curl', [...only, '-H', `Host: ${host}`, `http://${network.node}${path}`])).stdout;
};

const podsOf = async (service: string, place: string): Promise<number> => {
  const label = `serving.knative.dev/service=${service}`;
  const names = await kubectl('get', 'pods', '-n', place, '-l', label, '-o', 'name');
  return names.split('\n').filter((name) => name !== '').length;
};

const untilNone = (service: string, place: string) =>
  expect.poll(() => podsOf(service, place), { timeout: 600_000, interval: 2_000 }).toBe(0);

describe.skipIf(shape !== 'knative')('on Knative', { timeout: 900_000 }, () => {
  const { dir, offer } = setUp({ [namespace]: {} });

  it('a Service of any image answers, ends, and answers again', async () => {
    await kube.create(services, {
      apiVersion: 'serving.knative.dev/v1',
      kind: 'Service',
      metadata: { name: 'any', namespace },
      spec: {
        template: {
          metadata: { annotations: window },
          // Also the grace period of its pods, for which the deletion of the namespace waits.
          spec: { timeoutSeconds: 10, containers: [{ image: probeImage, args: ['serve'] }] },
        },
      },
    });
    await kubectl('wait', '-n', namespace, 'ksvc/any', '--for=condition=Ready', '--timeout=120s');
    const host = `any.${namespace}.svc.cluster.local`;
    expect(await ask(host)).toBe('200');
    await untilNone('any', namespace);
    expect(await timed('cold start of a program in Go', () => ask(host))).toBe('200');
  });

  it.each(functions)('%s starts with its first request', async (name) => {
    await untilNone(name, system);
    const host = `${name}.${system}.svc.cluster.local`;
    expect(await timed(`cold start of ${name}`, () => ask(host, '/healthz'))).toBe('200');
    expect(await podsOf(name, system)).toBe(1);
  });

  it.each(calledEachMinute)('a copy of %s to which nothing is sent starts with its first request', async (name) => {
    const found = await kube.get(services, { namespace: system, name });
    const template = found!.spec.template;
    const metadata = { ...template.metadata, annotations: window };
    const copy = { namespace: system, name: `${name}-copy` };
    await kube.create(services, {
      apiVersion: 'serving.knative.dev/v1',
      kind: 'Service',
      metadata: { ...copy, labels: found!.metadata.labels ?? {} },
      spec: { template: { ...template, metadata } },
    });
    try {
      await kubectl('wait', '-n', system, `ksvc/${copy.name}`, '--for=condition=Ready', '--timeout=300s');
      await untilNone(copy.name, system);
      const host = `${copy.name}.${system}.svc.cluster.local`;
      expect(await timed(`cold start of ${name}`, () => ask(host, '/healthz'))).toBe('200');
    } finally {
      await kube.delete(services, copy);
    }
  });

  it('an image is imported by events that find no pod', async () => {
    const raw = join(dir, 'disk.raw');
    await writeBootDisk(raw, { bytes: 64 * mib, dataBytes: 24 * mib });
    for (const name of functions) await untilNone(name, system);
    const key = { namespace, name: 'first' };
    await kube.create(hyperCloudImageKind.type, anImage(key, await offer('disk.raw', raw)));
    expect(await timed('an image, from no pods', () => untilImage(key))).toMatchObject({ state: 'Available' });
    expect(await diskIn({ namespace, name: 'first-image-pvc' }, raw)).toBe('identical');
  });
});
