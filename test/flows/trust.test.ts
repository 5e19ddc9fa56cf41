// Sources with a private authority, trusted by Harvester's setting `additional-ca`: by transfers, and by the DataVolumes of images. Real TLS, real bytes.
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { configMaps } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { createAuthority, issueServer } from '#shared/certificate/issue.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';
import { until, untilGone, untilStatus } from '#test/support/until.ts';

const type = harvesterImageKind.type;
const mib = 2 ** 20;
const raw = noise('trust', 4 * mib);
const hour = 3_600_000;

describe('a server with a certificate of a private authority', { timeout: 300_000 }, () => {
  const validity = { from: new Date(Date.now() - hour), to: new Date(Date.now() + 24 * hour) };
  const [known, unknown] = [createAuthority('known', validity), createAuthority('unknown', validity)];
  let cluster: TestCluster;
  let origins: readonly Origin[] = [];

  const anImage = (name: string, backend: 'csi' | 'cdi', url: string): HarvesterImage => ({
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImage',
    metadata: { name, namespace },
    spec: { backend, displayName: name, sourceType: 'download', url, targetStorageClassName: 'local', retry: 0 },
  });
  const settle = async (image: HarvesterImage) => {
    await cluster.kube.create(type, image);
    const isOver = (object: HarvesterImage | undefined) => ['Imported', 'Failed'].includes(object?.status?.phase ?? '');
    return (await until(cluster.kube, type, { namespace, name: image.metadata.name }, isOver))!;
  };

  beforeAll(async () => {
    origins = await Promise.all(
      [known, unknown].map((authority) =>
        startOrigin((request) => fileAnswer(request, raw), issueServer(authority, ['localhost'], validity)),
      ),
    );
    cluster = await startTestCluster();
    await cluster.kube.create(harvesterSettings, {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'Setting',
      metadata: { name: 'additional-ca' },
      value: known.certificate,
    });
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await Promise.all(origins.map((origin) => origin.close()));
  });

  it.each(['csi', 'cdi'] as const)('is trusted by an image of %s', async (backend) => {
    const { status } = await settle(anImage(`leap-${backend}`, backend, `${origins[0]!.url}/disk.raw`));
    expect(status).toMatchObject({ phase: 'Imported', size: raw.length });
    const disk = await readFile(await diskOf(cluster, { namespace, name: status!.children!.volume! }));
    expect(disk.subarray(0, raw.length).equals(raw)).toBe(true);
  });

  it('is configured for transfers of an image of cdi, in a ConfigMap that is deleted with it', async () => {
    const key = { namespace, name: 'leap-cdi' };
    const { spec } = (await cluster.kube.get(dataVolumeKind.type, key)) as DataVolume;
    const bundle = { namespace, name: spec.source?.http?.certConfigMap ?? '' };
    expect((await cluster.kube.get(configMaps, bundle))?.data).toEqual({ 'ca.pem': known.certificate });
    await cluster.kube.delete(type, key);
    await untilGone(cluster.kube, configMaps, bundle);
  });

  it('is trusted by a DataVolume of a user', async () => {
    const name = 'disk';
    const storage = { storageClassName: 'local', resources: { requests: { storage: '4Mi' } } };
    await cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name, namespace },
      spec: { source: { http: { url: `${origins[0]!.url}/disk.raw` } }, storage },
    });
    const isOver = ({ phase }: DataVolumeStatus) => phase === 'Succeeded' || phase === 'Failed';
    const { phase } = await untilStatus(cluster.kube, dataVolumeKind.type, { namespace, name }, isOver);
    expect(phase).toBe('Succeeded');
  });

  it('is rejected when its authority is not configured, with the error', async () => {
    const { status } = await settle(anImage('stranger', 'cdi', `${origins[1]!.url}/disk.raw`));
    expect(status?.phase).toBe('Failed');
    expect(JSON.stringify(status?.conditions)).toMatch(/certificate/);
  });
});
