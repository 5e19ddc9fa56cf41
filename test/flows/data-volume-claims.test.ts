// DataVolumes whose claim is not created and populated the usual way: files of an archive, objects of a store, claims that a user prepared or will create,
// and clones that wait for their consumer. On the local cluster, with real bytes.
import { mkdir, mkdtemp, readFile, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CreateBucketCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { diskOf } from '#infra/local/demo/import.ts';
import { type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, namespaces, persistentVolumeClaims, secrets } from '#shared/api/foreign/core.ts';
import { type TestCluster, leftOvers, namespace, run, startTestCluster } from '#test/support/cluster.ts';
import { aDataVolume, createDataVolumeFlow, isIn, isOver } from '#test/support/data-volumes.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type Origin, fileAnswer, startOrigin } from '#test/support/origin.ts';

const type = dataVolumeKind.type;
const mib = 2 ** 20;
const cdi = 'cdi.kubevirt.io';
const raw = noise('data-volume-claims', 8 * mib);
const files = { 'etc/motd': noise('motd', mib), readme: Buffer.from('hello') };
const archives = { tar: ['-cf'], 'tar.gz': ['-czf'], 'tar.xz': ['-cJf'] } as const;

const sized = (rest: object = {}) => ({ resources: { requests: { storage: '16Mi' } }, ...rest });
const aClaim = (name: string, annotations: Record<string, string> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace, annotations },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', volumeMode: 'Block', ...sized() },
});

describe('claims of data volumes', { timeout: 500_000 }, () => {
  const dir = temporaryDirectory();
  let cluster: TestCluster;
  let origin: Origin;
  const asked: string[] = [];

  const { until, make, consume } = createDataVolumeFlow(() => cluster.kube);
  const claimOf = (name: string) => cluster.kube.get(persistentVolumeClaims, { namespace, name });
  const diskIn = async (name: string): Promise<Buffer> =>
    (await readFile(await diskOf(cluster, { namespace, name }))).subarray(0, raw.length);
  const http = (path = 'disk.raw') => ({ http: { url: `${origin.url}/${path}` } });
  const bound = ({ conditions = [] }: DataVolumeStatus) => conditions.find((one) => one.type === 'Bound');

  beforeAll(async () => {
    const folder = await mkdtemp(join(dir, 'files-'));
    for (const [name, bytes] of Object.entries(files)) {
      await mkdir(dirname(join(folder, name)), { recursive: true });
      await writeFile(join(folder, name), bytes);
    }
    const published = new Map<string, Buffer>([['/disk.raw', raw]]);
    for (const [ending, flags] of Object.entries(archives)) {
      const path = join(dir, `files.${ending}`);
      await run('tar', [...flags, path, '-C', folder, '.']);
      published.set(`/files.${ending}`, await readFile(path));
    }
    origin = await startOrigin((request) => {
      asked.push(request.path);
      const bytes = published.get(request.path);
      return bytes === undefined ? { status: 404 } : fileAnswer(request, bytes);
    });
    cluster = await startTestCluster();
  }, 120_000);
  afterAll(async () => {
    await cluster?.close();
    await origin?.close();
  });

  it.each(Object.keys(archives))('the files of a %s on a web server are unpacked into a volume', async (ending) => {
    const name = `files-${ending.replace('.', '-')}`;
    const storage = sized({ storageClassName: 'local' });
    const status = await make(aDataVolume(name, { source: http(`files.${ending}`), contentType: 'archive', storage }));
    expect(status).toMatchObject({ phase: 'Succeeded', progress: '100.0%' });
    expect(await claimOf(name)).toMatchObject({
      metadata: {
        labels: { 'alerts.k8s.io/KubePersistentVolumeFillingUp': 'disabled' },
        annotations: { [`${cdi}/storage.contentType`]: 'archive' },
      },
      spec: { volumeMode: 'Filesystem' },
    });
    const folder = dirname(await diskOf(cluster, { namespace, name }));
    for (const [path, bytes] of Object.entries(files))
      expect((await readFile(join(folder, path))).equals(bytes)).toBe(true);
  });

  it('the files of a volume are copied into another one, also when its storage cannot clone', async () => {
    const source = { pvc: { namespace, name: 'files-tar' } };
    const storage = sized({ storageClassName: 'local-plain' });
    const made = await make(aDataVolume('files-copied', { source, contentType: 'archive', storage }));
    expect(made).toMatchObject({ phase: 'Succeeded', detail: { cloneStrategy: 'copy' } });
    const folder = dirname(await diskOf(cluster, { namespace, name: 'files-copied' }));
    for (const [path, bytes] of Object.entries(files))
      expect((await readFile(join(folder, path))).equals(bytes)).toBe(true);
  });

  it('the files of a volume are not accepted as a disk', async () => {
    const source = { pvc: { namespace, name: 'files-tar' } };
    const status = await make(aDataVolume('files-as-disk', { source, storage: { storageClassName: 'local-plain' } }));
    expect(bound(status)).toMatchObject({ status: 'False', reason: 'CloneValidationFailed' });
  });

  it.each([namespace, 'tenant'])(
    'a clone without a size, in %s, is as large as the disk has become in its file system',
    async (where) => {
      const name = `grown-${where}`;
      const storage = sized({ storageClassName: 'local', volumeMode: 'Filesystem' });
      const asked = { resources: { requests: { storage: '128Mi' } } };
      await make(aDataVolume(name, { source: http(), storage: { ...storage, ...asked } }));
      await truncate(await diskOf(cluster, { namespace, name }), 120 * mib);
      const into = { storageClassName: 'local', volumeMode: 'Block' as const };
      const clone = aDataVolume(`${name}-clone`, { source: { pvc: { namespace, name } }, storage: into });
      const key = { namespace: where, name: `${name}-clone` };
      if (where !== namespace)
        await cluster.kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: where } });
      await cluster.kube.create(type, { ...clone, metadata: { ...clone.metadata, namespace: where } });
      await vi.waitFor(
        async () => expect((await cluster.kube.get(type, key))?.status?.phase).toMatch(/Succeeded|Failed/),
        { timeout: 60_000, interval: 100 },
      );
      expect((await cluster.kube.get(type, key))?.status?.phase).toBe('Succeeded');
      const claim = await cluster.kube.get(persistentVolumeClaims, key);
      expect(claim?.spec.resources?.requests?.['storage']).toBe('120Mi');
      expect((await readFile(await diskOf(cluster, key))).subarray(0, raw.length).equals(raw)).toBe(true);
      await cluster.kube.delete(type, key);
    },
  );

  it('an invalid archive fails with its error', async () => {
    const storage = sized({ storageClassName: 'local' });
    const status = await make(aDataVolume('no-archive', { source: http(), contentType: 'archive', storage }));
    expect(status.phase).toBe('Failed');
    expect(status.conditions?.find((one) => one.type === 'Running')).toMatchObject({ reason: 'Error' });
  });

  it('an object of a store is read with the Secret that the volume names', async () => {
    const { data = {} } = (await cluster.kube.get(secrets, { namespace, name: 'object-store' })) ?? {};
    const credentials = {
      accessKeyId: atob(data['accessKeyId'] ?? ''),
      secretAccessKey: atob(data['secretKey'] ?? ''),
    };
    const { url: endpoint } = cluster.objectStore;
    const s3 = new S3Client({ endpoint, region: 'us-east-1', forcePathStyle: true, credentials });
    await s3.send(new CreateBucketCommand({ Bucket: 'disks' }));
    await s3.send(new PutObjectCommand({ Bucket: 'disks', Key: 'a/disk.raw', Body: raw }));
    s3.destroy();
    const source = { s3: { url: `${endpoint}/disks/a/disk.raw`, secretRef: 'object-store' } };
    expect(await make(aDataVolume('stored', { source, storage: sized() }))).toMatchObject({ phase: 'Succeeded' });
    expect((await diskIn('stored')).equals(raw)).toBe(true);
  });

  it('a clone by its storage is PendingPopulation until its consumer is created, and is the same disk then', async () => {
    await make(aDataVolume('golden', { source: http(), storage: sized({ storageClassName: 'local' }) }));
    const source = { pvc: { namespace, name: 'golden' } };
    const object = aDataVolume('lazy', { source, storage: { storageClassName: 'local-wffc' } });
    const status = await make(object, isIn('PendingPopulation'));
    expect(status).toMatchObject({ phase: 'PendingPopulation', detail: { cloneStrategy: 'snapshot' } });
    expect(bound(status)).toMatchObject({ status: 'False', reason: 'Pending' });
    await consume('lazy');
    expect((await diskIn('lazy')).equals(raw)).toBe(true);
  });

  it('a claim that a restore creates after its DataVolume is adopted unchanged, and no other is created before', async () => {
    asked.length = 0;
    const annotations = { [`${cdi}/storage.prePopulated`]: 'restored' };
    const status = await make(
      aDataVolume('restored', { source: http(), storage: sized() }, annotations),
      isIn('Pending'),
    );
    expect(bound(status)).toMatchObject({ status: 'False', reason: 'NotFound', message: 'No PVC found' });
    await sleep(2_000);
    expect(await claimOf('restored')).toBeUndefined();
    const { metadata } = await cluster.kube.create(persistentVolumeClaims, aClaim('restored'));
    expect(await until('restored', isOver)).toMatchObject({ phase: 'Succeeded', claimName: 'restored' });
    expect((await claimOf('restored'))?.metadata).toMatchObject({
      uid: metadata.uid,
      ownerReferences: [{ kind: 'DataVolume', name: 'restored', controller: true }],
    });
    expect(asked).toEqual([]);
  });

  it.each<[what: string, name: string, ofVolume: Record<string, string>, ofClaim: Record<string, string>]>([
    ['was populated for it', 'populated', {}, { [`${cdi}/storage.populatedFor`]: 'populated' }],
    ['was prepared for it', 'prepared', {}, { [`${cdi}/storage.prePopulated`]: 'prepared' }],
    ['is given to it', 'given', { [`${cdi}/allowClaimAdoption`]: 'true' }, {}],
  ])('a claim that %s is adopted, and nothing is written to it', async (_what, name, ofVolume, ofClaim) => {
    asked.length = 0;
    const { metadata } = await cluster.kube.create(persistentVolumeClaims, aClaim(name, ofClaim));
    const status = await make(aDataVolume(name, { source: http(), storage: sized() }, ofVolume));
    expect(status).toMatchObject({ phase: 'Succeeded', claimName: name });
    expect((await claimOf(name))?.metadata).toMatchObject({
      uid: metadata.uid,
      ownerReferences: [{ kind: 'DataVolume', name }],
    });
    expect(asked).toEqual([]);
  });

  it('a claim that was created for something else is rejected at admission', async () => {
    await cluster.kube.create(persistentVolumeClaims, aClaim('taken'));
    const made = cluster.kube.create(type, aDataVolume('taken', { source: http(), storage: sized() }));
    await expect(made).rejects.toThrow(/claim taken exists.*allowClaimAdoption/);
    await cluster.kube.delete(persistentVolumeClaims, { namespace, name: 'taken' });
  });

  it('all of them are deleted with their DataVolumes', async () => {
    for await (const { metadata } of cluster.kube.listAll(type))
      await cluster.kube.delete(type, { namespace, name: metadata.name });
    expect(await leftOvers(cluster.kube, cluster.dataDir)).toEqual([]);
  });
});
