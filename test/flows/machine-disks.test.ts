// A virtual machine as written by clients of Harvester: its disks in an annotation, made from images of every backend, with real bytes; resized later;
// and deleted with it, the data volume before its claim.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { installCrds } from '#local-cluster/install.ts';
import { buildOpenCrd } from '#infra/local/manifests.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { kubeEvents, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { templateVersions } from '#shared/api/foreign/backup.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { type DiskCluster, startQcow2Cluster } from '#test/support/disk-cluster.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { until as untilObject } from '#test/support/until.ts';

const images = harvesterImageKind.type;
const name = 'web';

describe('disks of virtual machines', { timeout: 400_000 }, () => {
  let offered: DiskCluster;
  let raw: string;
  let url: string;
  let cluster: DiskCluster['cluster'];

  const anImage = (backend: string): HarvesterImage => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name: `of-${backend}`, namespace },
    spec: {
      backend,
      displayName: `of ${backend}`,
      sourceType: 'download',
      url,
      ...(backend === 'backingimage' ? {} : { targetStorageClassName: 'local' }),
    } as HarvesterImage['spec'],
  });
  const template = (disk: string, backend: string | undefined, storage = '128Mi') => ({
    metadata: {
      name: disk,
      annotations: backend === undefined ? {} : { [harvesterAnnotations.imageId]: `${namespace}/of-${backend}` },
    },
    spec: {
      accessModes: backend === undefined ? ['ReadWriteOnce'] : ['ReadWriteMany'],
      volumeMode: 'Block',
      resources: { requests: { storage } },
      ...(backend === undefined ? { storageClassName: 'local' } : {}),
    },
  });
  const templatesWith = (copied: string) =>
    JSON.stringify([
      template('web-lh', 'backingimage'),
      template('web-cdi', 'cdi', copied),
      template('web-csi', 'csi'),
      template('web-data', undefined),
    ]);
  const until = async <T extends KubeObject>(
    type: ResourceType<T>,
    object: string,
    isSo: (observed: T | undefined) => boolean,
  ) => untilObject(cluster.kube, type, { namespace, name: object }, isSo);
  const isBound = (claim: { readonly status?: { readonly phase?: string } } | undefined) =>
    claim?.status?.phase === 'Bound';
  /** Whether it starts with the published bytes, and is zero beyond. */
  const holdsDisk = async (claim: string): Promise<boolean> => {
    const disk = await diskOf(cluster, { namespace, name: claim });
    return run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, disk]).then(
      () => true,
      () => false,
    );
  };

  beforeAll(async () => {
    offered = await startQcow2Cluster();
    ({ raw, url, cluster } = offered);
    const foreign = [virtualMachines, templateVersions] as unknown as readonly ResourceType[];
    await installCrds(
      cluster.kube,
      foreign.map((type) => buildOpenCrd(type)),
    );
  }, 300_000);
  afterAll(() => offered?.close());

  it('wait for the images they are cloned from, and report it on the machine', async () => {
    await cluster.kube.create(virtualMachines, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: {
        name,
        namespace,
        annotations: { [harvesterAnnotations.claimTemplates]: templatesWith('128Mi') },
      },
      spec: {},
    });
    await until(persistentVolumeClaims, 'web-data', isBound);
    const said = async () =>
      (await cluster.kube.list(kubeEvents, { namespace })).items
        .filter(({ involvedObject }) => involvedObject.name === name)
        .map(({ reason }) => reason);
    await expect.poll(said, { timeout: 120_000 }).toContain('ImageNotFound');
  });

  it.each([
    ['backingimage', 'web-lh'],
    ['cdi', 'web-cdi'],
    ['csi', 'web-csi'],
  ])('are cloned from the image of backend %s', async (backend, disk) => {
    await cluster.kube.create(images, anImage(backend));
    await until(images, `of-${backend}`, (image) => image?.status?.phase === 'Imported');
    if (backend !== 'backingimage') {
      await until(dataVolumeKind.type, disk, (volume) => volume?.status?.phase === 'Succeeded');
    }
    await until(persistentVolumeClaims, disk, isBound);
    expect(await holdsDisk(disk)).toBe(true);
  });

  it('grow when a larger size is requested', async () => {
    const metadata = { annotations: { [harvesterAnnotations.claimTemplates]: templatesWith('192Mi') } };
    await cluster.kube.mergePatch(virtualMachines, { namespace, name }, { metadata });
    await until(persistentVolumeClaims, 'web-cdi', (claim) => claim?.status?.capacity?.['storage'] === '192Mi');
    expect(await holdsDisk('web-cdi')).toBe(true);
  });

  it('are saved with their data in a version of a template, and created from it again', async () => {
    const version = await cluster.kube.create(templateVersions, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineTemplateVersion',
      metadata: { name: 'web-1', namespace },
    });
    const { apiVersion, kind, metadata } = version;
    const image = anImage('cdi');
    const kept = `templateversion-${metadata.name}-image-0`;
    const owner = { apiVersion, kind, name: metadata.name, uid: metadata.uid ?? '' };
    // Like Harvester's action `createTemplate` for each disk; `export` creates the same without an owner.
    const { url: _, ...spec } = image.spec;
    await cluster.kube.create(images, {
      ...image,
      metadata: { name: kept, namespace, ownerReferences: [owner] },
      spec: {
        ...spec,
        displayName: kept,
        sourceType: 'export-from-volume',
        pvcName: 'web-cdi',
        pvcNamespace: namespace,
      },
    });
    await until(images, kept, (exported) => exported?.status?.phase === 'Imported');
    await expect(cluster.kube.delete(images, { namespace, name: kept })).rejects.toThrow(
      /VirtualMachineTemplateVersion/,
    );
    const disk = template('twin-root', 'cdi', '192Mi');
    const annotations = { [harvesterAnnotations.imageId]: `${namespace}/${kept}` };
    const templates = JSON.stringify([{ ...disk, metadata: { ...disk.metadata, annotations } }]);
    await cluster.kube.create(virtualMachines, {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      metadata: { name: 'twin', namespace, annotations: { [harvesterAnnotations.claimTemplates]: templates } },
      spec: {},
    });
    await until(dataVolumeKind.type, 'twin-root', (volume) => volume?.status?.phase === 'Succeeded');
    expect(await holdsDisk('twin-root')).toBe(true);
  });

  it('are deleted with the machine when configured, and kept otherwise', async () => {
    const gone: string[] = [];
    const metadata = { annotations: { [harvesterAnnotations.removedClaims]: 'web-cdi,web-lh' } };
    await cluster.kube.mergePatch(virtualMachines, { namespace, name }, { metadata });
    await cluster.kube.delete(virtualMachines, { namespace, name });
    const look = async () => {
      // The object that is deleted last is checked first: what is gone by then was deleted before.
      const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'web-cdi' });
      const volume = await cluster.kube.get(dataVolumeKind.type, { namespace, name: 'web-cdi' });
      if (volume === undefined && !gone.includes('volume')) gone.push('volume');
      if (claim === undefined && !gone.includes('claim')) gone.push('claim');
      return gone.length;
    };
    await expect.poll(look, { timeout: 150_000, interval: 10 }).toBe(2);
    expect(gone).toEqual(['volume', 'claim']);
    await until(persistentVolumeClaims, 'web-lh', (claim) => claim === undefined);
    expect(await holdsDisk('web-csi')).toBe(true);
    await until(persistentVolumeClaims, 'web-data', isBound);
    await until(images, 'of-cdi', (image) => image?.status?.phase === 'Imported');
  });
});
