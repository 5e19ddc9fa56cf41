// A namespace as restricted by its administrator: only pods that comply with the policy `restricted`, and only with requests and limits within a quota.
// On a real API server, whose admission enforces both.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { flowApiServer } from '#test/support/api-server-kind.ts';
import { type TestCluster, anImage, images, readyOf, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const namespace = 'tenant';
const quotas: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
};
const quotaOf = (pods: number) => ({
  pods: String(pods),
  'requests.cpu': '8',
  'requests.memory': '8Gi',
  'limits.cpu': '32',
  'limits.memory': '32Gi',
});
const nothing = Object.fromEntries(Object.keys(quotaOf(0)).map((name) => [name, '0']));

describe.skipIf(flowApiServer !== 'real')('an image in a namespace with a quota', { timeout: 400_000 }, () => {
  let cluster: TestCluster;
  let origin: Origin;
  const key = { namespace, name: 'quota' };
  /** What the quota controller would write; it does not run here. */
  const setQuota = async (pods: number, used?: object): Promise<void> => {
    const hard = quotaOf(pods);
    await cluster.kube.mergePatch(quotas, key, { spec: { hard } });
    await cluster.kube.mergePatch(
      quotas,
      key,
      { status: { hard, ...(used === undefined ? {} : { used }) } },
      { subresource: 'status' },
    );
  };
  const statusOf = async (name: string) => (await cluster.kube.get(images, { namespace, name }))?.status;

  beforeAll(async () => {
    origin = await startOrigin((request) => fileAnswer(request, noise('quota', 256 * 1024), { etag: '"1"' }));
    cluster = await startTestCluster();
    await cluster.kube.create(namespaces, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace, labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
    });
    const quota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata: key, spec: { hard: quotaOf(0) } };
    await cluster.kube.create(quotas, quota as KubeObject);
    await setQuota(0, nothing);
  }, 180_000);
  afterAll(async () => {
    await cluster?.close();
    await origin?.close();
  });

  it('reports an exhausted quota, and is imported once there is room', async () => {
    const { metadata, ...image } = anImage('within', { source: { http: `${origin.url}/disk.raw` } });
    await cluster.kube.create(images, { ...image, metadata: { ...metadata, namespace } });
    const said = async () => readyOf(await statusOf('within'))?.message;
    await vi.waitFor(async () => expect(await said()).toMatch(/exceeded quota: quota, requested: pods=1/), {
      timeout: 150_000,
      interval: 100,
    });
    await setQuota(10);
    await vi.waitFor(async () => expect((await statusOf('within'))?.state).toBe('Available'), {
      timeout: 150_000,
      interval: 200,
    });
  });

  it('has limits that the quota counts, and is admitted by the restricted policy', async () => {
    const used = ((await cluster.kube.get(quotas, key)) as unknown as { status: { used: object } }).status.used;
    expect(used).not.toMatchObject({ pods: '0' });
    expect(Object.values(used)).not.toContain('0');
  });
});
