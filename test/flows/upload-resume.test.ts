// Resumable uploads (tus): cut at a random place by the client, and gone on with.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import * as tus from 'tus-js-client';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
let cluster: TestCluster;
let token = '';
let file = '';
let raw = '';

beforeAll(async () => {
  raw = await makeLinuxDisk(dir);
  file = await publish(raw, 'qcow2');
  cluster = await startTestCluster();
  const config = ['--kubeconfig', cluster.kubeconfigPath];
  await run('kubectl', [
    'create',
    'clusterrolebinding',
    'uploader',
    '--clusterrole=edit',
    '--serviceaccount=default:default',
    ...config,
  ]);
  token = (await run('kubectl', ['create', 'token', 'default', '-n', namespace, ...config])).stdout.trim();
}, 180_000);
afterAll(() => cluster?.close());

const phaseOf = async (name: string) =>
  (await cluster.kube.get(dataVolumeKind.type, { namespace, name }))?.status?.phase;

const newVolume = async (name: string): Promise<string> => {
  await cluster.kube.create(dataVolumeKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name, namespace },
    spec: {
      source: { upload: {} },
      pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'local' },
    },
  });
  await expect.poll(() => phaseOf(name), { timeout: 60_000 }).toBe('UploadReady');
  return `${cluster.transferUrl}/files/datavolumes/${namespace}/${name}`;
};

interface Sent {
  readonly upload: tus.Upload;
  readonly over: Promise<void>;
}

const send = (endpoint: string, size: number, more: Partial<tus.UploadOptions> = {}): Sent => {
  const over = Promise.withResolvers<void>();
  const upload = new tus.Upload(createReadStream(file), {
    endpoint,
    uploadSize: size,
    chunkSize: 512 * 1024,
    retryDelays: [0, 200, 500, 1000, 2000, 4000],
    headers: { authorization: `Bearer ${token}` },
    onError: (error) => over.reject(error),
    onSuccess: () => over.resolve(),
    ...more,
  });
  upload.start();
  return { upload, over: over.promise };
};

it('goes on after the client was cut, with what had arrived', async () => {
  const endpoint = await newVolume('cut');
  const { size } = await stat(file);
  const cut = Promise.withResolvers<string>();
  const at = Math.floor(size * (0.2 + 0.6 * Math.random()));
  const first = send(endpoint, size, {
    onProgress: (sent) => {
      if (sent < at || first.upload.url === null) return;
      void first.upload.abort();
      cut.resolve(first.upload.url);
    },
  });
  const url = await cut.promise;
  let begunAt = -1;
  const second = send(endpoint, size, {
    uploadUrl: url,
    onProgress: (sent) => {
      if (begunAt < 0) begunAt = sent;
    },
  });
  await second.over;
  expect(begunAt).toBeGreaterThan(0);
  await expect.poll(() => phaseOf('cut'), { timeout: 60_000 }).toBe('Succeeded');
  const { stdout } = await run('find', [`${cluster.dataDir}/storage/volumes`, '-name', 'disk.img']);
  const disks = stdout.trim().split('\n');
  expect(disks).toHaveLength(1);
  await run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', disks[0]!, raw]);
}, 120_000);

it('tells a client that asks too late that its file is gone', async () => {
  const endpoint = await newVolume('other');
  const answer = await fetch(`${endpoint}/deadbeef.100`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${token}`, 'tus-resumable': '1.0.0' },
  });
  expect(answer.status).toBe(410);
}, 60_000);
