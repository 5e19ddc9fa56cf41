// A disk as an image in a registry, and disks made from that image: what was exported is what is imported.
import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimOf } from '#cli/commands/export.ts';
import { type FileServer, startFileServer } from '#infra/local/demo/file-server.ts';
import { diskOf } from '#infra/local/demo/import.ts';
import { secrets } from '#shared/api/foreign/core.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { createRegistryClient } from '#shared/clients/registry/client.ts';
import { createRegistryPace } from '#shared/clients/registry/refusal.ts';
import { judgeByKeys, verifyImage } from '#shared/golden/signature/cosign/cosign.ts';
import { readPublicKeys } from '#shared/golden/signature/cosign/keys.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { transferSpec } from '#test/support/registry/transfer.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import {
  type ExportStatus,
  type VirtualMachineVolumeExport,
  volumeExportKind,
} from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachinePvcKind } from '#shared/api/hypercloud/volume.ts';
import { type TestCluster, anImage, namespace, run, settle, startTestCluster } from '#test/support/cluster.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { noise } from '#test/support/disk.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { until, untilStatus } from '#test/support/until.ts';

const apiVersion = 'hypercloud.tmaxanc.com/v1alpha1';
const exports = volumeExportKind.type;

describe.skipIf(!hasRegistry())('an export to a registry', { timeout: 300_000 }, () => {
  let dir: string;
  let raw: string;
  let registry: TestRegistry;
  let server: FileServer;
  let cluster: TestCluster;

  const make = async (name: string, tag: string, over: object = {}, pvcName = 'root'): Promise<ExportStatus> => {
    const url = `docker://${registry.host}/disks/root:${tag}`;
    const wanted: VirtualMachineVolumeExport = {
      apiVersion,
      kind: 'VirtualMachineVolumeExport',
      metadata: { name, namespace },
      spec: { pvcName, destination: { registry: { url, ...over } } },
    };
    await cluster.kube.create(exports, wanted);
    const isOver = ({ state }: ExportStatus): boolean => state === 'Completed' || state === 'Error';
    return untilStatus(cluster.kube, exports, { namespace, name }, isOver);
  };

  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-pushes-'));
    raw = await makeLinuxDisk(dir);
    registry = await startRegistry();
    server = await startFileServer();
    cluster = await startTestCluster({ functionEnvironment: { PLAIN_REGISTRIES: registry.host } });
    const http = server.offer('disk.qcow2', await publish(raw, 'qcow2'));
    await settle(cluster.kube, anImage('golden', { source: { http }, storageClassName: 'local' }), 150);
    await cluster.kube.create(virtualMachinePvcKind.type, {
      apiVersion,
      kind: 'VirtualMachinePvc',
      metadata: { name: 'root', namespace },
      spec: { virtualMachineImageName: 'golden' },
    });
  }, 300_000);
  afterAll(async () => {
    await cluster?.close();
    await server?.close();
    await registry?.close();
    await rm(dir, { recursive: true, force: true });
  });

  it('becomes an image that a DataVolume imports by its digest', async () => {
    const status = await make('push', 'one');
    expect(status).toMatchObject({
      state: 'Completed',
      image: { reference: expect.stringMatching(/^docker:\/\/.*\/disks\/root@sha256:[0-9a-f]{64}$/) },
    });
    const volume: DataVolume = {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name: 'again' },
      spec: { source: { registry: { url: status.image!.reference } }, storage: { storageClassName: 'local' } },
    };
    await cluster.kube.create(dataVolumes, volume);
    const isThere = (object: DataVolume | undefined): boolean => object?.status?.phase === 'Succeeded';
    await until(cluster.kube, dataVolumes, { namespace, name: 'again' }, isThere);
    await run('qemu-img', [
      'compare',
      '-f',
      'raw',
      '-F',
      'raw',
      raw,
      await diskOf(cluster, { namespace, name: 'again' }),
    ]);
  });

  it('is compressed and signed, so that a policy accepts it, and is the same disk', async () => {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
    await cluster.kube.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace, name: 'signing' },
      data: { 'signing.key': btoa(pem) },
    });
    const { image } = await make('signed', 'signed', { compression: 'zstd', signingSecretRef: 'signing' });
    const http = createHttpClient({ isRefused: () => false, idleMs: 10_000 });
    const pace = createRegistryPace(Date.now);
    const client = createRegistryClient({ http, host: registry.host, plainHttp: true, pace });
    const named = { host: registry.host, repository: 'disks/root' };
    const { keys } = readPublicKeys([publicKey.export({ type: 'spki', format: 'pem' }) as string]);
    const digest = image?.digest ?? '';
    expect(await verifyImage(client, { image: named, digest }, judgeByKeys(keys))).toMatchObject({ is: 'verified' });
    const pushed = await client.manifest({ ...named, digest });
    expect(pushed).toMatchObject({
      image: {
        annotations: {
          'org.opencontainers.image.title': 'root',
          'org.opencontainers.image.created': expect.stringMatching(/^\d{4}-/),
          'org.opencontainers.image.revision': expect.stringMatching(/^sha256:/),
        },
      },
    });
    await http.close();
    const path = join(dir, 'signed.img');
    const report = await runTransfer(transferSpec(image?.reference ?? '', path, { capacityBytes: 2 ** 33 }), {
      run: 'test',
      signal: new AbortController().signal,
      send: () => Promise.resolve(),
      log: () => {},
    });
    expect(report).toMatchObject({ outcome: 'succeeded' });
    await run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, path]);
  });

  it('of an image is of its golden volume, under the name of the image', async () => {
    const { state } = await make('image', 'image', {}, await claimOf(cluster.kube, namespace, 'golden'));
    expect(state).toBe('Completed');
    const headers = { accept: 'application/vnd.oci.image.manifest.v1+json' };
    const manifest = await fetch(`http://${registry.direct}/v2/disks/root/manifests/image`, { headers });
    expect(await manifest.json()).toMatchObject({ annotations: { 'org.opencontainers.image.title': 'golden' } });
  });

  it('says what to do where its key does not exist, and is not made again and again', async () => {
    const status = await make('unsigned', 'unsigned', { signingSecretRef: 'none' });
    expect(status.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({
      status: 'False',
      message: expect.stringContaining('the Secret none of the signature is missing in this namespace'),
    });
  });

  it('does not replace an image that was there before', async () => {
    await pushDisk({ host: registry.direct, repository: 'disks/root' }, noise('other', 64 * 1024), 'taken');
    const status = await make('second', 'taken');
    const ready = status.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ status: 'False', message: expect.stringContaining('choose another tag') });
  });
});
