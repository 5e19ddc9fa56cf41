// A cluster with an installed CDI restores an image of the backend cdi from an NFS export. CDI is simulated: it clones claims, and does not read
// backups.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { proveIdentical } from '#infra/local/demo/prove.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { type BackupImageObject, imageTypes } from '#shared/backup/image.ts';
import { createKubeClient, loadKubeConfig } from '#shared/clients/kube/create.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict } from '#shared/runtime/errors.ts';
import { isBack, isKept, setTarget, untilImage } from '#test/support/backup.ts';
import { type TestCluster, startTestCluster } from '#test/support/cluster.ts';
import { type NfsExport, startNfsExport } from '#test/support/nfs-export.ts';

const namespace = 'default';
const name = 'leap';
const harvester = imageTypes[0] as ResourceType<BackupImageObject>;

const forgiveConflict = (error: unknown): void => {
  if (!isConflict(error)) throw error;
};

/** Creates a claim with the name of the DataVolume, cloned from its source and owned by it; then reports it. */
const cloneOnce = async (kube: KubeClient, { metadata, spec, status }: DataVolume): Promise<void> => {
  const source = spec.source?.pvc;
  if (source === undefined || status?.phase === 'Succeeded') return;
  const key = { namespace: metadata.namespace ?? '', name: metadata.name };
  const from = await kube.get(persistentVolumeClaims, source);
  const made = await kube.get(persistentVolumeClaims, key);
  if (made === undefined && from !== undefined) {
    const owner = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', controller: true };
    await kube
      .create(persistentVolumeClaims, {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { ...key, ownerReferences: [{ ...owner, name: key.name, uid: metadata.uid ?? '' }] },
        spec: { ...from.spec, volumeName: undefined, dataSource: { kind: 'PersistentVolumeClaim', name: source.name } },
      } as never)
      .catch(forgiveConflict);
  }
  if (made?.status?.phase !== 'Bound') return;
  await kube.mergePatch(dataVolumeKind.type, key, { status: { phase: 'Succeeded' } }, { subresource: 'status' });
};

const playCdi = async (kube: KubeClient, signal: AbortSignal): Promise<void> => {
  while (!signal.aborted) {
    for (const dataVolume of (await kube.list(dataVolumeKind.type, { namespace })).items)
      await cloneOnce(kube, dataVolume);
    await sleep(200);
  }
};

describe('a cluster with an installed CDI', { timeout: 600_000 }, () => {
  let nfs: NfsExport;
  let cluster: TestCluster | undefined;
  const stop = new AbortController();
  let cdi: Promise<void> | undefined;

  const start = async (environment: Readonly<Record<string, string>>): Promise<TestCluster> => {
    cluster = await startTestCluster({ tickSeconds: 5, functionEnvironment: { ...nfs.environment, ...environment } });
    await setTarget(cluster.kube, { type: 'nfs', endpoint: nfs.endpoint }, []);
    return cluster;
  };

  beforeAll(async () => {
    nfs = await startNfsExport();
  });
  afterAll(async () => {
    stop.abort();
    await cdi?.catch(() => {});
    await cluster?.close();
    await nfs?.close();
  });

  it('restores an image of the backend cdi from an export', async () => {
    const first = await start({});
    await first.kube.create(harvester, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      metadata: { name, namespace },
      spec: {
        backend: 'cdi',
        displayName: name,
        sourceType: 'download',
        url: nfs.url,
        targetStorageClassName: 'local',
        backup: true,
      },
    });
    await untilImage(first.kube, harvester, { namespace, name }, isKept);
    await first.close();
    await nfs.files.close();
    const second = await start({ CDI: 'use' });
    const kube = createKubeClient(loadKubeConfig(second.kubeconfigPath));
    cdi = playCdi(kube, stop.signal);
    const restored = await untilImage(kube, harvester, { namespace, name }, isBack);
    expect(restored.status?.children?.volume).toBe(name);
    const made = await kube.get(dataVolumeKind.type, { namespace, name });
    expect(made?.status).toEqual({ phase: 'Succeeded' });
    await proveIdentical(
      await diskOf(second, { namespace, name }),
      { file: nfs.raw, format: 'raw', compression: 'none' },
      nfs.dir,
    );
    // The claim that the disk was restored into first is deleted.
    await expect
      .poll(
        async () => (await kube.list(persistentVolumeClaims, { namespace })).items.map((one) => one.metadata.name),
        {
          timeout: 60_000,
        },
      )
      .toEqual([name]);
    const left = (await kube.list(jobs, { namespace })).items.filter((job) => job.metadata.name.startsWith('import'));
    expect(left).toEqual([]);
  });
});
