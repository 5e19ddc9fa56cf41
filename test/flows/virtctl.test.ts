// `virtctl image-upload`, request by request as in its source code: into a DataVolume and into a claim, new and prepared ones, disks and archives.
import { execFile } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, kubeEvents, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { type ExchangeCluster, startExchangeCluster } from '#test/support/exchange.ts';
import { type ImageUpload, imageUpload } from '#test/support/virtctl.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
const raw = join(dir, 'disk.raw');
const qcow2 = join(dir, 'disk.qcow2');
const archive = join(dir, 'files.tar');
let cluster: ExchangeCluster;

beforeAll(async () => {
  writeDisk(raw, 32 * 2 ** 20);
  await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
  await mkdir(join(dir, 'source'));
  await writeFile(join(dir, 'source', 'readme'), 'hello');
  await run('tar', ['-cf', archive, '-C', join(dir, 'source'), '.']);
  cluster = await startExchangeCluster();
}, 180_000);
afterAll(() => cluster?.close());

const upload = (type: ImageUpload['type'], name: string, more: Partial<ImageUpload> = {}): Promise<void> =>
  imageUpload({
    kube: cluster.kube,
    kubeconfigPath: cluster.kubeconfigPath,
    namespace,
    type,
    name,
    file: qcow2,
    size: '64Mi',
    storageClass: 'local',
    ...more,
  });

/** Changes without an event. */
const withTicks = async (work: () => Promise<unknown>): Promise<void> => {
  const ticks = setInterval(cluster.eventing.tick, 1000);
  try {
    await work();
  } finally {
    clearInterval(ticks);
  }
};

const read = async (name: string): Promise<PersistentVolumeClaim | undefined> =>
  cluster.kube.get(persistentVolumeClaims, { namespace, name });

const fileOf = async (name: string, file: 'block' | 'disk.img' | 'readme'): Promise<string> => {
  const { stdout } = await run('find', [
    join(cluster.dataDir, 'storage', 'volumes', (await read(name))?.spec.volumeName ?? 'none'),
    '-name',
    file,
  ]);
  return stdout.trim();
};
const expectDisk = async (name: string, file: 'block' | 'disk.img'): Promise<void> => {
  const { stdout } = await run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, await fileOf(name, file)]);
  expect(stdout).toMatch(/identical/);
};

const aClaim = (name: string, more: Partial<PersistentVolumeClaim['spec']> = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { namespace, name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'local',
    resources: { requests: { storage: '64Mi' } },
    ...more,
  },
});

describe('virtctl image-upload dv', { timeout: 400_000 }, () => {
  it('creates a DataVolume, populates it, and names it with --datasource', async () => {
    // The upload URL is read from the cluster, as any user with access can.
    expect(await cluster.kubectl('auth', 'can-i', 'get', 'cdiconfigs/config', '--as', 'somebody')).toBe('yes');
    await upload('dv', 'fedora-dv', { dataSource: true, volumeMode: 'block' });
    await expectDisk('fedora-dv', 'block');
    const isReady = async () => {
      const source = await cluster.kube.get(dataSourceKind.type, { namespace, name: 'fedora-dv' });
      return source?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    };
    // Created before the disk was: the tick reconciles it.
    await withTicks(() => expect.poll(isReady, { timeout: 120_000 }).toBe('True'));
    await expect(upload('dv', 'fedora-dv')).rejects.toThrow('already successfully imported/cloned/updated');
  });

  it('populates an existing one, with --no-create', async () => {
    await cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'prepared', namespace },
      spec: {
        source: { upload: {} },
        storage: { resources: { requests: { storage: '64Mi' } }, storageClassName: 'local' },
      },
    });
    await expect.poll(() => read('prepared'), { timeout: 120_000 }).toBeDefined();
    await imageUpload({
      kube: cluster.kube,
      kubeconfigPath: cluster.kubeconfigPath,
      namespace,
      type: 'dv',
      name: 'prepared',
      file: raw,
      proxyUrl: cluster.transferUrl,
    });
    await cluster.untilVolume('prepared', 'Succeeded');
  });

  it('reports a class that waits for its consumer, and populates it with --force-bind', async () => {
    await expect(upload('dv', 'late', { storageClass: 'local-wffc' })).rejects.toThrow(
      'cannot upload to DataVolume in WaitForFirstConsumer phase, make sure the PVC is Bound, or use force-bind flag',
    );
    await upload('dv', 'forced', { storageClass: 'local-wffc', forceBind: true });
    await cluster.untilVolume('forced', 'Succeeded');
  });

  it('uploads an archive', async () => {
    await upload('dv', 'files', { isArchive: true, file: archive });
    expect(await readFile(await fileOf('files', 'readme'), 'utf8')).toBe('hello');
  });

  it('sends the file again after a 503', async () => {
    let posts = 0;
    const flaky = createServer((incoming, answer) => {
      const isFirst = incoming.method === 'POST' && ++posts === 1;
      if (isFirst) return void incoming.resume().on('end', () => answer.writeHead(503).end('try later'));
      const { authorization = '', 'content-type': type = '', 'content-length': length } = incoming.headers;
      const headers = { authorization, ...(type === '' ? {} : { 'content-type': type, 'content-length': length }) };
      void request(`${cluster.transferUrl}${incoming.url}`, {
        method: incoming.method as 'HEAD' | 'POST',
        headers: headers as Record<string, string>,
        ...(incoming.method === 'POST' ? { body: incoming } : {}),
      }).then(
        async ({ statusCode, body }) => answer.writeHead(statusCode).end(await body.text()),
        () => answer.destroy(),
      );
    });
    await new Promise<void>((resolve) => flaky.listen(0, '127.0.0.1', resolve));
    try {
      await upload('dv', 'again', { proxyUrl: `http://127.0.0.1:${(flaky.address() as AddressInfo).port}` });
      expect(posts).toBe(2);
    } finally {
      flaky.close();
    }
  });

  it('reports the error after its last retry', async () => {
    await expect(upload('dv', 'tiny', { size: '8Mi', volumeMode: 'block' })).rejects.toThrow(
      /after 5 retries: unexpected return value (400|503), .*33554432 bytes/,
    );
  });
});

describe('virtctl image-upload pvc', { timeout: 400_000 }, () => {
  it('creates a claim, populates it, and leaves it to its owner', async () => {
    await upload('pvc', 'fedora-pvc', { volumeMode: 'block' });
    await expectDisk('fedora-pvc', 'block');
    const claim = await read('fedora-pvc');
    expect(claim?.metadata.ownerReferences ?? []).toEqual([]);
    const marks = claim?.metadata.annotations;
    expect(marks?.['cdi.kubevirt.io/storage.pod.ready']).toBe('false');
    await expect(upload('pvc', 'fedora-pvc')).rejects.toThrow('already successfully imported/cloned/updated');
    // The pod and the Service that served it are deleted with it.
    await cluster.kube.delete(persistentVolumeClaims, { namespace, name: 'fedora-pvc' });
    const served = () => cluster.kube.get(dataVolumeKind.type, { namespace, name: 'fedora-pvc' });
    await expect.poll(served, { timeout: 120_000 }).toBeUndefined();
    await expect.poll(() => read('fedora-pvc'), { timeout: 120_000 }).toBeUndefined();
  });

  it('populates an existing file system with --no-create', async () => {
    await cluster.kube.create(persistentVolumeClaims, aClaim('mine', { volumeMode: 'Filesystem' }));
    // virtctl does not retry its write after a conflict.
    await expect.poll(async () => (await read('mine'))?.status?.phase).toBe('Bound');
    // There is no event for it: it existed before, and has no label.
    await withTicks(() =>
      imageUpload({
        kube: cluster.kube,
        kubeconfigPath: cluster.kubeconfigPath,
        namespace,
        type: 'pvc',
        name: 'mine',
        file: qcow2,
      }),
    );
    await expectDisk('mine', 'disk.img');
    expect((await read('mine'))?.metadata.annotations?.['cdi.kubevirt.io/storage.pod.phase']).toBe('Succeeded');
  });

  it('uploads an archive, and binds at once with --force-bind', async () => {
    await upload('pvc', 'pvc-files', {
      isArchive: true,
      file: archive,
      storageClass: 'local-wffc',
      forceBind: true,
    });
    expect(await readFile(await fileOf('pvc-files', 'readme'), 'utf8')).toBe('hello');
  });

  it('populates a claim with the size of the disk and the overhead of its file system', async () => {
    const full = join(dir, 'full.raw');
    writeDisk(full, 64 * 2 ** 20);
    await upload('pvc', 'exact', { size: '64Mi', volumeMode: 'filesystem', file: full });
    expect((await read('exact'))?.spec).toMatchObject({ resources: { requests: { storage: '71135396' } } });
    expect((await readFile(await fileOf('exact', 'disk.img'))).equals(await readFile(full))).toBe(true);
  });

  it('keeps the claim when the file does not fit, and populates it with one that does', async () => {
    await expect(upload('pvc', 'small', { size: '8Mi', volumeMode: 'block' })).rejects.toThrow(/33554432 bytes/);
    const { uid } = (await read('small'))!.metadata;
    const small = join(dir, 'small.raw');
    writeDisk(small, 4 * 2 ** 20);
    await upload('pvc', 'small', { file: small });
    expect((await read('small'))?.metadata.uid).toBe(uid);
    expect((await readFile(await fileOf('small', 'block'))).subarray(0, 4 * 2 ** 20)).toEqual(await readFile(small));
  });

  it('never writes to a claim that a pod mounts, and reports it there', async () => {
    const claim = aClaim('busy', { volumeMode: 'Filesystem' });
    const marks = { 'cdi.kubevirt.io/storage.upload.target': '' };
    await cluster.kube.create(pods, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'guest', namespace },
      spec: {
        containers: [{ name: 'a', image: 'a' }],
        volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'busy' } }],
      },
    } as never);
    await cluster.kube.create(persistentVolumeClaims, {
      ...claim,
      metadata: {
        ...claim.metadata,
        annotations: marks,
        labels: { 'cdi.kubevirt.io/applyStorageProfile': 'true' },
      },
    });
    const said = async () =>
      (await cluster.kube.list(kubeEvents, { namespace, fieldSelector: 'involvedObject.name=busy' })).items.map(
        ({ message }) => message,
      );
    await expect
      .poll(said, { timeout: 120_000 })
      .toContain('claim busy is not made an upload target while pod guest may write to it: stop it');
    expect(await cluster.kube.get(dataVolumeKind.type, { namespace, name: 'busy' })).toBeUndefined();
  });
});
