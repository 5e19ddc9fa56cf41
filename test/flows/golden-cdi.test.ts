// A cluster with an installed CDI: crons with an empty schedule are polled by Bullion and imported by CDI, which is simulated.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { jobs, kubeEvents, namespaces } from '#shared/api/foreign/core.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type GoldenFlow, createGoldenFlow, versionOf } from '#test/support/golden.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';

const namespace = 'golden-images';
const crons = dataImportCronKind.type;

/** What CDI does with such a cron: imports the digest in its annotation, points the DataSource to it, and reports it in its own status. */
const importOnce = async (kube: KubeClient, cron: DataImportCron): Promise<void> => {
  const digest = cron.metadata.annotations?.[cdiAnnotations.desiredDigest] ?? '';
  const { managedDataSource, template } = cron.spec;
  if (digest === '' || cron.status?.currentImports?.[0]?.Digest === digest) return;
  const name = versionOf(managedDataSource, digest);
  const labels = { [cdiLabels.cron]: cron.metadata.name };
  const base = { apiVersion: 'cdi.kubevirt.io/v1beta1', metadata: { namespace, name, labels } };
  const isThere = (error: unknown): void => {
    if (!isConflict(error)) throw error;
  };
  await kube.create(dataVolumeKind.type, { ...base, kind: 'DataVolume', spec: template?.spec as never }).catch(isThere);
  const source = { pvc: { namespace, name } };
  await kube
    .create(dataSourceKind.type, {
      ...base,
      kind: 'DataSource',
      metadata: { namespace, name: managedDataSource, labels },
      spec: { source },
    })
    .catch(isThere);
  await kube.mergePatch(dataSourceKind.type, { namespace, name: managedDataSource }, { spec: { source } });
  const status = { ...cron.status, currentImports: [{ DataVolumeName: name, Digest: digest }] };
  await kube.replace(crons, { ...cron, status }, { subresource: 'status' });
};

const startStandIn = (kube: KubeClient): { readonly stop: () => Promise<void> } => {
  let isRunning = true;
  const running = (async () => {
    for (; isRunning; await sleep(100)) {
      for (const cron of (await kube.list(crons, { namespace })).items) {
        await importOnce(kube, cron).catch((error: unknown) => {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        });
      }
    }
  })();
  return {
    stop: () => {
      isRunning = false;
      return running;
    },
  };
};

describe.skipIf(!hasRegistry())('crons with an installed CDI', { timeout: 600_000 }, () => {
  let registry: TestRegistry;
  let cluster: TestCluster;
  let flow: GoldenFlow;
  let cdi: { readonly stop: () => Promise<void> };
  beforeAll(async () => {
    registry = await startRegistry();
    cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host, CDI: 'use' } });
    flow = createGoldenFlow(cluster.kube, namespace);
    await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
    cdi = startStandIn(createKubeClient(loadKubeConfig(cluster.kubeconfigPath)));
  }, 300_000);
  afterAll(async () => {
    await cdi?.stop();
    await cluster?.close();
    await registry?.close();
  });

  const push = (name: string, seed: string) =>
    pushDisk({ host: registry.direct, repository: 'disks/fedora' }, noise(seed, 64 * 1024), name);
  const aCron = (name: string, schedule: string, own: Record<string, string>) =>
    flow.aCron(
      name,
      {
        schedule,
        template: {
          spec: {
            source: { registry: { url: `docker://${registry.host}/disks/fedora:${name}` } },
            storage: { resources: { requests: { storage: '16Mi' } } },
          },
        },
      },
      { annotations: own },
    );
  const untilImported = (name: string, digest: string) =>
    flow.until(dataSourceKind.type, name, (source) => source?.spec.source.pvc?.name === versionOf(name, digest));

  it('are polled when their schedule is empty and the annotation has one, and CDI imports the result', async () => {
    const first = await push('hooked', 'one');
    await aCron('hooked', '', { [annotations.schedule]: '0 */12 * * *' });
    await untilImported('hooked', first.digest);
    const second = await push('hooked', 'two');
    // The remembered state is dropped, and the source is polled again.
    await flow.annotate('hooked', { [annotations.poll]: null });
    await untilImported('hooked', second.digest);
    const cron = await flow.until(
      crons,
      'hooked',
      (object) => object?.status?.currentImports?.[0]?.Digest === second.digest,
    );
    expect(JSON.parse(cron.metadata.annotations?.[annotations.poll] ?? '')).toMatchObject({
      outcome: 'Changed',
      failures: 0,
      next: expect.stringMatching(/Z$/) as string,
    });
    // Only CDI writes its status, and imports.
    expect(Object.keys(cron.status ?? {})).toEqual(['currentImports']);
    expect(cron.metadata.finalizers).toBe(undefined);
    expect((await cluster.kube.list(jobs, { namespace })).items).toEqual([]);
    const told = (await cluster.kube.list(kubeEvents, { namespace })).items.filter(
      ({ involvedObject }) => involvedObject.name === 'hooked',
    );
    expect(told.map(({ reason }) => reason)).toContain('SourceChanged');
  });

  it('are ignored when CDI polls itself', async () => {
    await push('after', 'after');
    await aCron('own', '0 */12 * * *', {});
    await aCron('nobody', '', {});
    // A cron of Bullion is polled after they were observed.
    await aCron('after', '', { [annotations.schedule]: '@daily' });
    await flow.until(crons, 'after', (object) => object?.metadata.annotations?.[annotations.poll] !== undefined);
    for (const name of ['own', 'nobody'])
      expect((await flow.get(crons, name))?.metadata.annotations?.[cdiAnnotations.desiredDigest]).toBe(undefined);
    expect(registry.requests.filter(({ path }) => /manifests\/(own|nobody)$/.test(path))).toEqual([]);
    expect(registry.requests.some(({ path }) => path.endsWith('manifests/after'))).toBe(true);
  });
});
