// Manifests of users of Harvester and HyperCloud, all of them at once on one cluster: images, disks of them, exports. Each reaches the state that its
// user waits for, and every volume and object contains the published disk, byte for byte.
import { readFileSync, readdirSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  CreateBucketCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  S3Client,
} from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { diskOf } from '#infra/local/demo/import.ts';
import { persistentVolumeClaims, secrets, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { type DiskCluster, startQcow2Cluster } from '#test/support/disk-cluster.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { findShared } from '#test/support/shared-folder.ts';
import { untilStatus } from '#test/support/until.ts';

const mib = 2 ** 20;

/** Hosts are filled in; everything else is unchanged. */
const hyperCloud = (images: string, store: string) => `
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineImage
metadata: { name: ubuntu18.04 }
spec: { storageClassName: cephrbd, source: { http: ${images} } }
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineImage
metadata: { name: ubuntu-from-bucket }
spec:
  storageClassName: cephrbd
  source: { objectStore: { bucketName: vmimage, objectName: bionic-server-cloudimg-amd64.img } }
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineImage
metadata: { name: cirros }
spec:
  source: { http: ${images} }
  pvc:
    volumeMode: Block
    accessModes: [ReadWriteOnce]
    resources: { requests: { storage: 3Gi } }
    storageClassName: cephrbd
  snapshotClassName: csi-snapclass
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachinePvc
metadata: { name: vm-root-disk }
spec:
  virtualMachineImageName: ubuntu18.04
  pvc: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 10Gi } } }
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineVolume
metadata: { name: vm-root-volume }
spec: { virtualMachineImage: { name: ubuntu18.04 }, capacity: { storage: 10Gi } }
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineVolumeExport
metadata: { name: export }
spec:
  pvcName: vm-root-disk
  objectStore: { bucketName: vmimage, objectName: mydisk }
---
apiVersion: hypercloud.tmaxanc.com/v1alpha1
kind: VirtualMachineVolumeExport
metadata: { name: export-released-shape }
spec:
  virtualMachineVolume: { name: vm-root-volume }
  destination: { s3: { url: ${store}/vmimage/mydisk-2.qcow2, secretRef: export-credentials } }
`;

const harvester = (images: string) => `
apiVersion: harvesterhci.io/v1beta1
kind: VirtualMachineImage
metadata: { generateName: image-, namespace: default }
spec: { backend: backingimage, displayName: leap-backing, sourceType: download, url: ${images} }
---
apiVersion: harvesterhci.io/v1beta1
kind: VirtualMachineImage
metadata: { generateName: image-, namespace: default }
spec: { backend: cdi, displayName: leap-cdi, sourceType: download, url: ${images}, targetStorageClassName: lvm }
`;

/** Admission requires the volume to exist. */
const exportedDisk = `
apiVersion: harvesterhci.io/v1beta1
kind: VirtualMachineImage
metadata: { generateName: image-, namespace: default }
spec:
  backend: cdi
  displayName: exported-disk
  sourceType: export-from-volume
  pvcName: vm-root-disk
  pvcNamespace: default
  targetStorageClassName: lvm
`;

/** The example files of users, if they exist next to the repository. */
const folder = findShared('examples');

/** Addresses are filled in by whoever runs them: nothing else may differ. */
const withoutAddresses = (text: string): readonly unknown[] =>
  parseAllDocuments(text).map(
    (document) =>
      JSON.parse(JSON.stringify(document.toJS()), (_key, value: unknown) =>
        typeof value === 'string' && value.startsWith('https://') ? 'https://' : value,
      ) as unknown,
  );

it.skipIf(folder === undefined)('the manifests of this file are all example manifests of users', () => {
  const files = readdirSync(folder!).filter((name) => name.endsWith('.yaml') && !name.startsWith('golden-'));
  const theirs = files.flatMap((name) => withoutAddresses(readFileSync(join(folder!, name), 'utf8')));
  const [images, store] = ['https://images', 'https://store'];
  const ours = [hyperCloud(images, store), harvester(images), exportedDisk].flatMap(withoutAddresses);
  expect(theirs.length).toBeGreaterThan(0);
  expect(ours).toHaveLength(theirs.length);
  expect(ours).toEqual(expect.arrayContaining([...theirs]));
});

interface Stated extends KubeObject {
  readonly status?: {
    readonly state?: string;
    readonly progress?: number;
    readonly size?: number;
    readonly virtualSize?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly children?: { readonly volume?: string };
  };
}

describe('manifests of users', { timeout: 500_000 }, () => {
  let disk: Awaited<ReturnType<typeof startQcow2Cluster>>;
  let raw: string;
  let url: string;
  let cluster: DiskCluster['cluster'];
  let s3: S3Client;
  let made: readonly Stated[] = [];

  const typeOf = ({ apiVersion, kind }: KubeObject): ResourceType =>
    servedKinds.find(({ type }) => type.kind === kind && apiVersionOf(type) === apiVersion)!.type;
  const apply = async (text: string): Promise<void> => {
    for (const document of parseAllDocuments(text)) {
      const object = document.toJS() as KubeObject;
      const metadata = { namespace, ...object.metadata };
      made = [...made, await cluster.kube.create(typeOf(object), { ...object, metadata })];
    }
  };
  const reached = (object: Stated, isSo: (status: NonNullable<Stated['status']>) => boolean) =>
    untilStatus<Stated>(cluster.kube, typeOf(object), { namespace, name: object.metadata.name }, isSo);
  const named = (name: string): Stated => made.find(({ metadata }) => metadata.name === name)!;
  const displayed = (name: string): Stated =>
    made.find((object) => (object as { spec?: { displayName?: string } }).spec?.displayName === name)!;
  const isAvailable = ({ state }: { readonly state?: string }) => state === 'Available';
  const isImported = ({ conditions = [] }: NonNullable<Stated['status']>) =>
    conditions.some(({ type, status }) => type === 'Imported' && status === 'True');
  /** The difference to the published disk, in the output of qemu-img. */
  const differenceOf = (path: string, format: 'raw' | 'qcow2' = 'raw'): Promise<string> =>
    run('qemu-img', ['compare', '-f', 'raw', '-F', format, raw, path]).then(
      () => '',
      ({ stdout, stderr }: { readonly stdout: string; readonly stderr: string }) => `${stdout}${stderr}`,
    );
  const diskIn = (claim: string): Promise<string> => diskOf(cluster, { namespace, name: claim });

  beforeAll(async () => {
    disk = await startQcow2Cluster();
    ({ raw, url, cluster } = disk);
    const { data = {} } = (await cluster.kube.get(secrets, { namespace, name: 'object-store' })) ?? {};
    await cluster.kube.create(secrets, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'export-credentials', namespace },
      data: { AWS_ACCESS_KEY_ID: data['accessKeyId'] ?? '', AWS_SECRET_ACCESS_KEY: data['secretKey'] ?? '' },
    });
    const credentials = {
      accessKeyId: atob(data['accessKeyId'] ?? ''),
      secretAccessKey: atob(data['secretKey'] ?? ''),
    };
    s3 = new S3Client({ endpoint: cluster.objectStore.url, region: 'us-east-1', forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: 'vmimage' }));
    const Body = await readFile(disk.qcow2);
    await s3.send(new PutObjectCommand({ Bucket: 'vmimage', Key: 'bionic-server-cloudimg-amd64.img', Body }));
    const local = (await cluster.kube.get(storageClasses, { name: 'local' }))!;
    for (const name of ['cephrbd', 'lvm']) await cluster.kube.create(storageClasses, { ...local, metadata: { name } });
    const snapshots = (await cluster.kube.get(volumeSnapshotClasses, { name: 'local' }))!;
    await cluster.kube.create(volumeSnapshotClasses, { ...snapshots, metadata: { name: 'csi-snapclass' } });
    await apply(hyperCloud(url, cluster.objectStore.url));
    await apply(harvester(url));
  }, 300_000);
  afterAll(async () => {
    s3?.destroy();
    await disk?.close();
  });

  it.each(['ubuntu18.04', 'ubuntu-from-bucket', 'cirros'])('%s is available, with a snapshot of it', async (name) => {
    await reached(named(name), isAvailable);
    expect(await differenceOf(await diskIn(`${name}-image-pvc`))).toBe('');
    const snapshot = await cluster.kube.get(volumeSnapshots, { namespace, name: `${name}-image-snapshot` });
    expect(snapshot?.status?.readyToUse).toBe(true);
  });

  it.each([
    ['vm-root-disk', 'vm-root-disk'],
    ['vm-root-volume', 'vm-root-volume-vmv-pvc'],
  ])('%s is a bound claim that contains the image', async (name, claim) => {
    await reached(named(name), isAvailable);
    const { status } = (await cluster.kube.get(persistentVolumeClaims, { namespace, name: claim })) ?? {};
    expect(status?.phase).toBe('Bound');
    expect(await differenceOf(await diskIn(claim))).toBe('');
  });

  it.each([
    ['export', 'mydisk'],
    ['export-released-shape', 'mydisk-2.qcow2'],
  ])('%s is one qcow2 in the bucket, without parts', async (name, Key) => {
    const status = await reached(named(name), ({ state }) => state === 'Completed');
    const { Body, ContentLength } = await s3.send(new GetObjectCommand({ Bucket: 'vmimage', Key }));
    expect(status.size).toBe(ContentLength);
    const file = join(disk.dir, Key);
    await writeFile(file, await Body!.transformToByteArray());
    expect(await differenceOf(file, 'qcow2')).toBe('');
    // The other export may be in progress.
    const { Uploads = [] } = await s3.send(new ListMultipartUploadsCommand({ Bucket: 'vmimage' }));
    expect(Uploads.filter((upload) => upload.Key === Key)).toEqual([]);
  });

  it('leap-backing is imported as a backing image', async () => {
    const status = await reached(displayed('leap-backing'), isImported);
    expect(status).toMatchObject({ progress: 100, virtualSize: 64 * mib });
    expect(status.size).toBeGreaterThan(0);
  });

  it('leap-cdi is imported into a volume of its class', async () => {
    const status = await reached(displayed('leap-cdi'), isImported);
    expect(status).toMatchObject({ progress: 100, virtualSize: 64 * mib });
    expect(await differenceOf(await diskIn(displayed('leap-cdi').metadata.name))).toBe('');
  });

  it('exported-disk is imported from the disk of a machine', async () => {
    await apply(exportedDisk);
    const status = await reached(displayed('exported-disk'), isImported);
    expect(status).toMatchObject({ progress: 100, virtualSize: 10 * 1024 * mib });
    expect(await differenceOf(await diskIn(displayed('exported-disk').metadata.name))).toBe('');
  });
});
