import { beforeEach, describe, expect, it } from 'vitest';
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { configMaps, jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { registriesConfig, systemNamespace } from '#shared/api/names.ts';
import { overheadOf } from '#shared/populate/storage/profile.ts';
import { configStatusOf, ensureConfig } from '#shared/resources/cdi-config/ensure.ts';
import { configuredSettings, createConfigLook } from './look.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aStorageClass, testSettings, testTime } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

let deps: ReturnType<typeof createTestReconciler>;
beforeEach(() => {
  deps = createTestReconciler();
});
const ensure = (publicUrl: string | undefined, mode: 'serve' | 'use' = 'serve') =>
  ensureConfig({ ...deps, publicUrl, cdi: () => Promise.resolve(mode) });
const urls = () => deps.kube.all(cdiConfigs).map(({ metadata, status }) => [metadata.name, status?.uploadProxyURL]);
const edit = (change: (config: Record<string, unknown>) => void) =>
  deps.kube.edit(cdiConfigs, { name: cdiConfigName }, (config) => change(config as unknown as Record<string, unknown>));

it('is created, and follows changes of the upload URL', async () => {
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

it('costs one listing when it is up to date', async () => {
  await ensure('https://images.example');
  deps.kube.calls.length = 0;
  await ensure('https://images.example');
  expect(deps.kube.calls.map(({ verb }) => verb)).toEqual(['list']);
});

it('is left to an installed CDI', async () => {
  await ensure('https://images.example', 'use');
  expect(deps.kube.calls).toEqual([]);
});

it('is never changed when CDI created it', async () => {
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

it('blocks nothing when it cannot be read', async () => {
  deps.kube.failNext({ verb: 'list' }, { error: new Unavailable('down'), when: 'before' });
  await ensure('https://images.example');
  expect(urls()).toEqual([]);
});

it.each([
  [0.06, '0.06'],
  [0.0555, '0.056'],
  [1, '1'],
  [0, '0'],
])('formats an overhead of %d as the original does', (filesystemOverhead, global) => {
  const told = configStatusOf(
    { spec: {} },
    { publicUrl: undefined, settings: { ...testSettings, filesystemOverhead } },
  );
  expect(told.filesystemOverhead).toEqual({ global });
});

it('reports the overheads of its spec, and ignores invalid ones', async () => {
  await ensure(undefined);
  edit(
    (config) => (config['spec'] = { filesystemOverhead: { global: '0.1', storageClass: { slow: '0.2', odd: '7' } } }),
  );
  await ensure(undefined);
  const [config] = deps.kube.all(cdiConfigs);
  expect(config?.status?.filesystemOverhead).toEqual({ global: '0.1', storageClass: { slow: '0.2' } });
});

describe('the settings in its spec', () => {
  const specOf = (spec: CdiConfig['spec']) => ({
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'CDIConfig',
    metadata: { name: cdiConfigName },
    spec,
  });

  it('are empty when it does not exist, and are read again after a minute', async () => {
    let time = testTime;
    const look = createConfigLook(deps.kube, () => time);
    expect(await look()).toEqual({});
    deps.kube.seed(cdiConfigs, specOf({ insecureRegistries: ['old.example:5000'] }));
    expect(await look()).toEqual({});
    time += 60_000;
    expect(await look()).toEqual({ insecureRegistries: ['old.example:5000'] });
  });

  it.each([
    ['are rules', '[[registry]]\nlocation = "quay.io"', { registryRules: [{ location: 'quay.io' }] }],
    [
      'are not valid TOML',
      '[[registry]',
      {
        registryFault: expect.stringMatching(
          /^registries\.conf of ConfigMap bullion-system\/registries is not valid: /,
        ),
      },
    ],
    ['are not valid rules', '[[registry]]', { registryFault: expect.stringContaining('neither prefix nor location') }],
  ])('of registries, which a ConfigMap has, %s', async (_what, text, expected) => {
    deps.kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: registriesConfig.name },
      data: { [registriesConfig.key]: text },
    });
    expect(await createConfigLook(deps.kube)()).toMatchObject(expected);
  });

  it.each([
    [
      'are a list',
      '[[source]]\nprefix = "https://a.example"\n[[source.mirror]]\nlocation = "https://b.example"',
      { mirrors: [{ prefix: 'https://a.example', mirror: [{ location: 'https://b.example' }] }] },
    ],
    [
      'are not valid',
      '[[source]]\nprefix = "https://a.example"',
      { mirrorFault: expect.stringMatching(/^mirrors\.toml of ConfigMap .* is not valid: source\.0\.mirror: /) },
    ],
  ])('of mirrors of files, which the same ConfigMap has, %s', async (_what, text, expected) => {
    deps.kube.seed(configMaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { namespace: systemNamespace, name: registriesConfig.name },
      data: { [registriesConfig.filesKey]: text },
    });
    expect(await createConfigLook(deps.kube)()).toEqual(expected);
  });

  it('are empty when its kind does not exist', async () => {
    expect(await createConfigLook(createMemoryKube({ absent: [cdiConfigs.plural] }))()).toEqual({});
  });

  it.each<[what: string, spec: CdiConfig['spec'], className: string, overhead: number]>([
    ['nothing', {}, 'local', 0.06],
    ['of all classes', { filesystemOverhead: { global: '0.2' } }, 'local', 0.2],
    ['of one class', { filesystemOverhead: { global: '0.2', storageClass: { local: '0.3' } } }, 'local', 0.3],
    ['of another class', { filesystemOverhead: { storageClass: { local: '0.3' } } }, 'other', 0.06],
    ['an invalid share', { filesystemOverhead: { global: '1.5', storageClass: { local: 'x' } } }, 'local', 0.06],
  ])('of overheads apply to plans: %s', (_what, spec, className, overhead) => {
    expect(overheadOf(aStorageClass(className), configuredSettings(testSettings, spec))).toBe(overhead);
  });

  it('make a claim larger, and a registry insecure', async () => {
    const config = () =>
      Promise.resolve({ filesystemOverhead: { global: '0.5' }, insecureRegistries: ['old.example:5000'] });
    const ref = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', namespace: 'default', name: 'disk' };
    deps.kube.seed(dataVolumeKind.type, {
      apiVersion: ref.apiVersion,
      kind: ref.kind,
      metadata: { namespace: 'default', name: 'disk' },
      spec: {
        source: { registry: { url: 'docker://old.example:5000/disk:1' } },
        storage: { storageClassName: 'local', volumeMode: 'Filesystem', resources: { requests: { storage: '1Gi' } } },
      },
    });
    for (let pass = 0; pass < 3; pass += 1) await reconcile({ ...deps, config }, ref);
    const [claim] = deps.kube.all(persistentVolumeClaims);
    expect(claim?.spec.resources?.requests?.['storage']).toBe('1536Mi');
    expect(JSON.stringify(deps.kube.all(jobs))).toContain('plainHttp');
  });
});
