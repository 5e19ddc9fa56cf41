// What `virtctl create vm --volume-import` asks for, of every type: it comes to be, or its refusal says what to do instead. The requests are those of
// KubeVirt 1.9, and are compared with the program's own where `VIRTCTL` is the path of one.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { diskOf } from '#infra/local/demo/import.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { secrets } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { type ExchangeCluster, startExchangeCluster } from '#test/support/exchange.ts';
import { pushDisk } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { virtctl } from '#test/support/virtctl.ts';

const run = promisify(execFile);
const mib = 2 ** 20;
const storage = { resources: { requests: { storage: '64Mi' } } };

/** Arguments of the flag, without the name, and what they ask for. */
interface Import {
  readonly flag: string;
  readonly spec: Record<string, unknown>;
}

describe.skipIf(!hasRegistry())('create vm --volume-import', { timeout: 300_000 }, () => {
  const dir = temporaryDirectory();
  const [raw, qcow2] = [join(dir, 'disk.raw'), join(dir, 'disk.qcow2')];
  const key = (name: string) => ({ namespace, name });
  let cluster: ExchangeCluster;
  let registry: TestRegistry;
  let origin: Server;
  let url: string;
  let stored: string;

  const make = (name: string, spec: unknown): Promise<unknown> =>
    cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: key(name),
      spec: spec as DataVolume['spec'],
    });
  /** Puts it into the store of the cluster, which the Secret `object-store` opens. */
  const store = async (): Promise<string> => {
    const { data = {} } = (await cluster.kube.get(secrets, key('object-store'))) ?? {};
    const { url: endpoint } = cluster.objectStore;
    const credentials = {
      accessKeyId: atob(data['accessKeyId'] ?? ''),
      secretAccessKey: atob(data['secretKey'] ?? ''),
    };
    const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: 'disks' }));
    await s3.send(new PutObjectCommand({ Bucket: 'disks', Key: 'disk.qcow2', Body: readFileSync(qcow2) }));
    s3.destroy();
    return `${endpoint}/disks/disk.qcow2`;
  };
  const makeGolden = async (): Promise<void> => {
    await make('golden', { source: { http: { url } }, storage: { ...storage, storageClassName: 'local' } });
    await cluster.untilVolume('golden', 'Succeeded');
    await cluster.kube.create(dataSourceKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataSource',
      metadata: key('golden'),
      spec: { source: { pvc: key('golden') } },
    });
    await cluster.kube.create(volumeSnapshots, {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshot',
      metadata: key('golden'),
      spec: { source: { persistentVolumeClaimName: 'golden' } },
    });
  };
  beforeAll(async () => {
    writeDisk(raw, 64 * mib);
    await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    origin = createServer((_request, answer) => answer.end(readFileSync(qcow2)));
    await new Promise<void>((resolve) => origin.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(origin.address() as AddressInfo).port}/disk.qcow2`;
    registry = await startRegistry();
    await pushDisk({ host: registry.direct, repository: 'disk' }, readFileSync(qcow2), 'v1');
    cluster = await startExchangeCluster({
      tickSeconds: 1,
      functionEnvironment: { PLAIN_REGISTRIES: registry.host },
    });
    const isDefault = 'storageclass.kubernetes.io/is-default-class=true';
    await cluster.kubectl('annotate', 'storageclass', 'local', '--overwrite', isDefault);
    stored = await store();
    await makeGolden();
  }, 300_000);
  afterAll(async () => {
    origin?.close();
    await cluster?.close();
    await registry?.close();
  });

  const programAsks = async (name: string, flag: string): Promise<unknown> => {
    const args = ['create', 'vm', '--name', `machine-${name}`, `--volume-import=${flag},name:${name}`];
    const { stdout } = await run(virtctl ?? '', [...args, '--kubeconfig', cluster.kubeconfigPath, '-n', namespace]);
    const machine = parse(stdout) as { readonly spec: { readonly dataVolumeTemplates: readonly DataVolume[] } };
    return machine.spec.dataVolumeTemplates[0]?.spec;
  };
  const served: Readonly<Record<string, () => Import>> = {
    blank: () => ({ flag: 'type:blank,size:64Mi', spec: { source: { blank: {} }, storage } }),
    http: () => ({ flag: `type:http,url:${url},size:64Mi`, spec: { source: { http: { url } }, storage } }),
    pvc: () => ({
      flag: `type:pvc,src:${namespace}/golden`,
      spec: { source: { pvc: key('golden') }, storage: { resources: {} } },
    }),
    ds: () => ({
      flag: `type:ds,src:${namespace}/golden`,
      spec: { sourceRef: { kind: 'DataSource', ...key('golden') }, storage: { resources: {} } },
    }),
    snapshot: () => ({
      flag: `type:snapshot,src:${namespace}/golden,size:64Mi`,
      spec: { source: { snapshot: key('golden') }, storage },
    }),
    registry: () => ({
      flag: `type:registry,url:docker://${registry.host}/disk:v1,pullmethod:pod,size:64Mi`,
      spec: { source: { registry: { url: `docker://${registry.host}/disk:v1`, pullMethod: 'pod' } }, storage },
    }),
    s3: () => ({
      flag: `type:s3,url:${stored},secretref:object-store,size:64Mi`,
      spec: { source: { s3: { url: stored, secretRef: 'object-store' } }, storage },
    }),
    gcs: () => ({ flag: `type:gcs,url:${url},size:64Mi`, spec: { source: { gcs: { url } }, storage } }),
  };

  const refused: Readonly<Record<string, Import & { readonly says: RegExp }>> = {
    imageio: {
      flag: 'type:imageio,url:https://ovirt.example,diskid:7,secretref:ovirt,certconfigmap:ca,size:64Mi',
      spec: {
        source: { imageio: { url: 'https://ovirt.example', diskId: '7', secretRef: 'ovirt', certConfigMap: 'ca' } },
        storage,
      },
      says: /download the disk from oVirt/,
    },
    vddk: {
      flag: 'type:vddk,url:https://vc.example,uuid:7,backingfile:a.vmdk,thumbprint:x,secretref:vc,size:64Mi',
      spec: {
        source: {
          vddk: { url: 'https://vc.example', uuid: '7', backingFile: 'a.vmdk', thumbprint: 'x', secretRef: 'vc' },
        },
        storage,
      },
      says: /export the disk as vmdk/,
    },
  };

  it.each(Object.entries(served))('of type %s becomes a volume', async (name, wanted) => {
    // As KubeVirt makes it for each machine.
    await make(name, wanted().spec);
    await cluster.untilVolume(name, 'Succeeded');
    if (name === 'blank') return;
    const disk = readFileSync(raw);
    const made = readFileSync(await diskOf(cluster, key(name)));
    expect(made.subarray(0, disk.length).equals(disk)).toBe(true);
  });

  it.each(Object.entries(refused))('of type %s says what to do instead', async (name, { spec, says }) => {
    await expect(make(name, spec)).rejects.toThrow(says);
  });

  it.skipIf(virtctl === undefined)('is what the program itself asks for', async () => {
    const all = { ...Object.fromEntries(Object.entries(served).map(([name, wanted]) => [name, wanted()])), ...refused };
    for (const [name, { flag, spec }] of Object.entries(all))
      expect([name, await programAsks(name, flag)]).toEqual([name, spec]);
  });
});
