import { describe, expect, test } from 'vitest';
import { emptyNamespace } from './namespaces.ts';
import { configMaps, secrets } from '#shared/api/foreign/core.ts';
import { Denied } from '#shared/runtime/errors.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'passing';
const discovered = { types: [configMaps, secrets], failed: [] };

const aNamespace = async () => {
  const kube = createMemoryKube();
  await kube.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'guarded', namespace } });
  await kube.create(secrets, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'plain', namespace } });
  kube.failNext(
    { verb: 'delete', resource: 'configmaps' },
    { error: new Denied('denied by a webhook'), when: 'before' },
  );
  return kube;
};

describe('emptying a namespace', () => {
  test('continues after an object whose deletion is rejected, and reports why it is kept', async () => {
    const kube = await aNamespace();
    const content = await emptyNamespace(kube, discovered, namespace);
    expect(content.failures).toEqual(['denied by a webhook']);
    expect([...content.remaining]).toEqual([['configmaps.', 1]]);
  });

  test('deletes rejected objects once nothing protects them any more', async () => {
    const kube = await aNamespace();
    await emptyNamespace(kube, discovered, namespace);
    const content = await emptyNamespace(kube, discovered, namespace);
    expect([content.failures, [...content.remaining]]).toEqual([[], []]);
  });
});
