import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { readEventing } from '#infra/local/manifests.ts';
import { type ConfigMap, configMaps } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type EventSource, apiServerSources, followKinds } from '#shared/resources/event-sources.ts';
import { NotFound, Unavailable } from '#shared/runtime/errors.ts';
import { type MemoryKubeOptions, createMemoryKube } from '#test/support/memory-kube.ts';

const namespace = 'bullion-system';
const manifests = await readEventing();
const list = manifests.find(({ metadata }) => metadata?.name === 'optional-sources') as ConfigMap;
const wanted = Object.values(list.data ?? {}).map((text) => JSON.parse(text) as EventSource);
const kindOf = ({ spec }: EventSource) => `${spec.resources[0]?.apiVersion} ${spec.resources[0]?.kind}`;
const kinds = wanted.map(kindOf);

const aCluster = (options: MemoryKubeOptions = {}) => {
  const memory = createMemoryKube(options);
  const served = new Set<string>();
  const away = new Set<string>();
  const raw = ({ path }: { readonly path: string }) => {
    if (path === '/apis') {
      const versions = [...served].map((one) => ({ groupVersion: one.split(' ')[0] }));
      return Promise.resolve({ groups: [{ versions }] });
    }
    const version = path.replace(/^\/apis\//, '');
    if (away.has(version)) return Promise.reject(new Unavailable('the server behind the API is away'));
    const resources = [...served].filter((one) => one.startsWith(`${version} `)).map((one) => one.split(' ')[1]);
    const answer = { resources: resources.map((kind) => ({ kind })) };
    return resources.length > 0 ? Promise.resolve(answer) : Promise.reject(new NotFound(path));
  };
  const kube: KubeClient = { ...memory, raw: raw as KubeClient['raw'] };
  const install = () => memory.seed(configMaps, list);
  const watched = () => memory.all(apiServerSources).map(kindOf).toSorted();
  return { kube, memory, served, away, install, watched };
};

describe('event sources of kinds that a cluster may lack', () => {
  it('are those of Longhorn, snapshots, HCO, SSP, Harvester and KubeVirt', () => {
    const groups = new Set(kinds.map((kind) => kind.split('/')[0]));
    expect(groups).toEqual(
      new Set([
        'longhorn.io',
        'snapshot.storage.k8s.io',
        'hco.kubevirt.io',
        'ssp.kubevirt.io',
        'harvesterhci.io',
        'kubevirt.io',
      ]),
    );
  });

  it('are left out in a cluster without Knative, without an error and without a write', async () => {
    const { kube, memory, served, install } = aCluster({ absent: [apiServerSources.plural] });
    install();
    for (const kind of kinds) served.add(kind);
    memory.calls.length = 0;
    await followKinds(kube);
    expect(memory.calls.filter(({ verb }) => !['get', 'list'].includes(verb))).toEqual([]);
  });

  it('exist as long as their kinds exist, after each tick', async () => {
    const step = fc.uniqueArray(fc.constantFrom(...kinds));
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 6 }), async (steps) => {
        const { kube, served, install, watched } = aCluster();
        install();
        for (const now of steps) {
          served.clear();
          for (const kind of now) served.add(kind);
          await followKinds(kube);
          expect(watched()).toEqual(now.toSorted());
        }
      }),
      { numRuns: 50 },
    );
  });

  it('are kept while the API server cannot report whether their kinds exist', async () => {
    const { kube, served, away, install, watched } = aCluster();
    install();
    for (const kind of kinds) served.add(kind);
    await followKinds(kube);
    away.add('longhorn.io/v1beta2');
    served.clear();
    await followKinds(kube);
    expect(new Set(watched().map((kind) => kind.split(' ')[0]))).toEqual(new Set(['longhorn.io/v1beta2']));
  });

  it('are not written again by a tick when they are up to date, whatever Knative adds', async () => {
    const { kube, memory, served, install } = aCluster();
    install();
    for (const kind of kinds) served.add(kind);
    await followKinds(kube);
    const key = { namespace, name: 'templates-ssp' };
    memory.edit(apiServerSources, key, (found) => Object.assign(found.spec, { ceOverrides: {} }));
    const before = memory.all(apiServerSources);
    await followKinds(kube);
    expect(memory.all(apiServerSources)).toEqual(before);
  });

  it('of an earlier release are adopted, changed, or deleted', async () => {
    const { kube, memory, served, install } = aCluster();
    install();
    const [kept, gone, stray] = ['templates-ssp', 'templates-hyperconverged', 'templates-other'].map((name) => {
      const [source] = wanted;
      const metadata = { name, namespace, labels: { [labels.optional]: 'true' } };
      return { ...source!, metadata, spec: { ...source!.spec, mode: 'Old' } };
    });
    for (const one of [kept, gone, stray]) memory.seed(apiServerSources, one!);
    served.add('ssp.kubevirt.io/v1beta3 SSP');
    await followKinds(kube);
    const own = wanted.find(({ metadata }) => metadata.name === 'templates-ssp')!;
    expect(memory.all(apiServerSources)).toMatchObject([{ metadata: { name: 'templates-ssp' }, spec: own.spec }]);
  });

  it('are deleted with the list that contains them', async () => {
    const { kube, memory, served, install, watched } = aCluster();
    const { metadata } = install();
    served.add('kubevirt.io/v1 VirtualMachine');
    await followKinds(kube);
    await kube.delete(configMaps, metadata);
    memory.collectGarbage();
    expect(watched()).toEqual([]);
    await followKinds(kube);
    expect(watched()).toEqual([]);
  });
});
