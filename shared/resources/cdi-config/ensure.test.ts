import { beforeEach, expect, it } from 'vitest';
import { cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { configStatusOf, ensureConfig } from '#shared/resources/cdi-config/ensure.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { testSettings } from '#test/support/builders.ts';
import { createTestDriver } from '#test/support/driver.ts';

let deps: ReturnType<typeof createTestDriver>;
beforeEach(() => {
  deps = createTestDriver();
});
const ensure = (publicUrl: string | undefined, mode: 'serve' | 'use' = 'serve') =>
  ensureConfig({ ...deps, publicUrl, cdi: () => Promise.resolve(mode) });
const urls = () => deps.kube.all(cdiConfigs).map(({ metadata, status }) => [metadata.name, status?.uploadProxyURL]);
const edit = (change: (config: Record<string, unknown>) => void) =>
  deps.kube.edit(cdiConfigs, { name: cdiConfigName }, (config) => change(config as unknown as Record<string, unknown>));

it('is made, and follows where files are sent to', async () => {
  await ensure('https://images.example/up/');
  expect(urls()).toEqual([['config', 'https://images.example/up']]);
  await ensure('https://elsewhere.example');
  expect(urls()).toEqual([['config', 'https://elsewhere.example']]);
  edit((config) => (config['spec'] = { uploadProxyURLOverride: 'https://said.example' }));
  await ensure('https://elsewhere.example');
  expect(urls()).toEqual([['config', 'https://said.example']]);
  edit((config) => (config['spec'] = {}));
  await ensure(undefined);
  expect(urls()).toEqual([['config', undefined]]);
});

it('costs one listing where it is true', async () => {
  await ensure('https://images.example');
  deps.kube.calls.length = 0;
  await ensure('https://images.example');
  expect(deps.kube.calls.map(({ verb }) => verb)).toEqual(['list']);
});

it('is left to a CDI that is installed', async () => {
  await ensure('https://images.example', 'use');
  expect(deps.kube.calls).toEqual([]);
});

it('is never written where a CDI made it', async () => {
  deps.kube.seed(cdiConfigs, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'CDIConfig',
    metadata: {
      name: cdiConfigName,
      ownerReferences: [
        { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'CDI', name: 'cdi', uid: 'u', controller: true },
      ],
    },
    spec: {},
    status: { uploadProxyURL: 'https://cdi.example' },
  });
  await ensure('https://images.example');
  expect(urls()).toEqual([['config', 'https://cdi.example']]);
});

it('holds up nobody where it cannot be told', async () => {
  deps.kube.failNext({ verb: 'list' }, { error: new Unavailable('down'), when: 'before' });
  await ensure('https://images.example');
  expect(urls()).toEqual([]);
});

it.each([
  [0.06, '0.06'],
  [0.0555, '0.056'],
  [1, '1'],
  [0, '0'],
])('tells an overhead of %d as the original writes it', (filesystemOverhead, global) => {
  const told = configStatusOf(
    { spec: {} },
    { publicUrl: undefined, settings: { ...testSettings, filesystemOverhead } },
  );
  expect(told.filesystemOverhead).toEqual({ global });
});
