// What continues during a partial outage: no webhook answers, or others keep changing the same objects.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { setTimeout as sleep } from 'node:timers/promises';
import { jobs, namespaces, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { Conflict, Denied, Unavailable } from '#shared/runtime/errors.ts';
import {
  anImage,
  deleteImage,
  followUntil,
  images,
  isOver,
  leftOvers,
  namespace,
  settle,
} from '#test/support/cluster.ts';
import { type DiskCluster, startDiskCluster } from '#test/support/disk-cluster.ts';
import { untilGone } from '#test/support/until.ts';

/** Seconds for one import, on a busy machine. */
const timeLimit = 150;

interface Configuration extends KubeObject {
  readonly webhooks: readonly { readonly name: string; readonly clientConfig: { readonly url?: string } }[];
}

const configurations = (['Mutating', 'Validating'] as const).map((which): ResourceType<Configuration> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: `${which}WebhookConfiguration`,
  plural: `${which.toLowerCase()}webhookconfigurations`,
  namespaced: false,
}));

describe('outages', { timeout: 400_000 }, () => {
  let disk: DiskCluster;
  let cluster: DiskCluster['cluster'];
  let http: string;
  beforeAll(async () => {
    disk = await startDiskCluster();
    ({ cluster, url: http } = disk);
  });
  afterAll(() => disk?.close());

  /** Points every webhook to another host and port; returns the previous one. */
  const moveWebhooks = async (host: string): Promise<string> => {
    let before = '';
    for (const type of configurations) {
      const { webhooks } = (await cluster.kube.get(type, { name: 'bullion' }))!;
      const moved = webhooks.map((webhook) => {
        const url = new URL(webhook.clientConfig.url!);
        before = url.host;
        url.host = host;
        return { ...webhook, clientConfig: { ...webhook.clientConfig, url: url.href } };
      });
      await cluster.kube.mergePatch(type, { name: 'bullion' }, { webhooks: moved });
    }
    return before;
  };
  /** Retries until an image is accepted or rejected as expected: a server applies a changed configuration after a moment. */
  const untilCreation = async (isSo: (error: unknown) => boolean): Promise<unknown> => {
    for (;;) {
      const error: unknown = await cluster.kube
        .create(images, anImage('probe', { source: { http } }), { dryRun: true })
        .then(() => undefined)
        .catch((thrown: unknown) => thrown);
      if (isSo(error)) return error;
      await sleep(100);
    }
  };
  /** No webhook answers until the result is called. */
  const cutAdmission = async (): Promise<() => Promise<void>> => {
    const host = await moveWebhooks('127.0.0.1:1');
    const refusal = await untilCreation((error) => error instanceof Unavailable);
    expect(String(refusal)).toContain('failed calling webhook "images.validate.bullion.dev"');
    return async () => {
      await moveWebhooks(host);
      await untilCreation((error) => error === undefined);
    };
  };
  const claim = (name: string, space: string, labels: Record<string, string> = {}) =>
    cluster.kube.create(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: space, labels },
      spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } },
    });
  const gone = (type: ResourceType, name: string, space?: string) =>
    untilGone(cluster.kube, type, { name, namespace: space });

  it('an outage of admission blocks new images with an error, and nothing else', async () => {
    const { kube } = cluster;
    await settle(kube, anImage('there', { source: { http } }), timeLimit);
    await kube.create(images, anImage('running', { source: { http } }));
    const restore = await cutAdmission();
    // The rest of the cluster is not affected: other objects are neither reviewed nor blocked.
    await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'apart' } });
    await claim('mine', 'apart');
    const pod = { name: 'mine', namespace: 'apart' };
    const spec = { containers: [{ name: 'one', image: 'example/none' }] };
    await kube.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: pod, spec } as never);
    await kube.mergePatch(pods, pod, { metadata: { labels: { mine: 'yes' } } });
    await kube.delete(namespaces, { name: 'apart' });
    await gone(namespaces, 'apart');
    // Existing images are not blocked either: one is created, labelled, and both are deleted with all their children.
    expect((await followUntil(kube, 'running', isOver, timeLimit)).at(-1)?.state).toBe('Available');
    await kube.mergePatch(images, { namespace, name: 'running' }, { metadata: { labels: { mine: 'yes' } } });
    await deleteImage(kube, 'running');
    await deleteImage(kube, 'there');
    expect(await leftOvers(kube, cluster.dataDir)).toEqual([]);

    await restore();
    expect((await settle(kube, anImage('after', { source: { http } }), timeLimit)).state).toBe('Available');
    await deleteImage(kube, 'after');
  });

  it('a golden volume is protected by whichever webhook answers, and never deleted because none does', async () => {
    const { kube } = cluster;
    await settle(kube, anImage('kept', { source: { http } }), timeLimit);
    const volume = (await kube.list(persistentVolumeClaims, { namespace })).items.find(({ metadata }) =>
      metadata.name.startsWith('kept'),
    )!;
    const remove = () => kube.delete(persistentVolumeClaims, volume.metadata);
    await expect(remove()).rejects.toBeInstanceOf(Denied);
    const restore = await cutAdmission();
    await expect(remove()).rejects.toBeInstanceOf(Unavailable);
    await restore();
    await deleteImage(kube, 'kept');
  });

  it('an import completes while others keep changing the image and its children, and their changes are kept', async () => {
    const { kube } = cluster;
    await kube.create(images, anImage('busy', { source: { http } }));
    let isDone = false;
    let writes = 0;
    const disturb = async (type: ResourceType): Promise<void> => {
      while (!isDone) {
        const { items } = await kube.list(type, { namespace });
        for (const { metadata } of items) {
          const annotations = { 'example.com/count': String((writes += 1)) };
          await kube.mergePatch(type, metadata, { metadata: { annotations } }).catch(() => undefined);
        }
        await sleep(150);
      }
    };
    const kinds = [images, persistentVolumeClaims, jobs];
    const disturbing = Promise.all(kinds.map(disturb));
    const observed = await followUntil(kube, 'busy', isOver, timeLimit).finally(() => {
      isDone = true;
    });
    await disturbing;
    expect(observed.at(-1)?.state).toBe('Available');
    expect(writes).toBeGreaterThan(10);
    const image = (await kube.get(images, { namespace, name: 'busy' }))!;
    expect(image.metadata.annotations?.['example.com/count']).toBeDefined();
    const stale = { metadata: { resourceVersion: '1', annotations: { stale: 'yes' } } };
    await expect(kube.mergePatch(images, image.metadata, stale)).rejects.toBeInstanceOf(Conflict);
    await deleteImage(kube, 'busy');
  });
});
