// Resumable uploads (tus): interrupted at a random position by the client, and resumed.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import * as tus from 'tus-js-client';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { childrenOf } from '#shared/api/object.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { noise } from '#test/support/disk.ts';
import { linuxDiskBytes, makeLinuxDisk, publish } from '#test/support/disks.ts';
import { anUploadImage } from '#test/support/exchange.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { createRandom, seed } from '#test/support/random.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
let cluster: TestCluster;
let token = '';
let file = '';
let raw = '';

/** Token of an account that may upload. */
const tokenIn = async ({ kubeconfigPath }: TestCluster): Promise<string> => {
  const config = ['--kubeconfig', kubeconfigPath];
  const binding = ['clusterrolebinding', 'uploader', '--clusterrole=edit', '--serviceaccount=default:default'];
  await run('kubectl', ['create', ...binding, ...config]);
  return (await run('kubectl', ['create', 'token', 'default', '-n', namespace, ...config])).stdout.trim();
};

beforeAll(async () => {
  raw = await makeLinuxDisk(dir);
  file = await publish(raw, 'qcow2');
  cluster = await startTestCluster();
  token = await tokenIn(cluster);
}, 400_000);
afterAll(() => cluster?.close());

const phaseOf = async (name: string, at = cluster) =>
  (await at.kube.get(dataVolumeKind.type, { namespace, name }))?.status?.phase;

const newVolume = async (name: string, storage = '1Gi', at = cluster): Promise<string> => {
  await at.kube.create(dataVolumeKind.type, {
    apiVersion: 'cdi.kubevirt.io/v1beta1',
    kind: 'DataVolume',
    metadata: { name, namespace },
    spec: {
      source: { upload: {} },
      pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, storageClassName: 'local' },
    },
  });
  await expect.poll(() => phaseOf(name, at), { timeout: 60_000 }).toBe('UploadReady');
  return `${at.transferUrl}/files/datavolumes/${namespace}/${name}`;
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

it(`resumes with what had arrived, after the client was cut (seed ${seed})`, async () => {
  const endpoint = await newVolume('cut');
  const { size } = await stat(file);
  const cut = Promise.withResolvers<string>();
  const at = Math.floor(size * (0.2 + 0.6 * createRandom(seed).next()));
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
  const { stdout } = await run('find', [
    `${cluster.dataDir}/storage/volumes`,
    '-ignore_readdir_race',
    '-name',
    'disk.img',
  ]).catch((error: { readonly stdout: string }) => error);
  const disks = stdout.trim().split('\n');
  expect(disks).toHaveLength(1);
  await run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', disks[0]!, raw]);
}, 300_000);

it.each([
  // The transfer function can detect it in the first part, so the Job gets none of it.
  ['first', 512, 400, 'UploadReady'],
  // The Job detects it, and waits for another file.
  ['few', 64, 413, 'UploadReady'],
] as const)(
  'reports by the %s bytes that the volume is too small, and accepts another file',
  async (name, kib, ...[status, phase]) => {
    const endpoint = await newVolume(name, '16Mi');
    const { size } = await stat(file);
    let most = 0;
    const { over } = send(endpoint, size, {
      chunkSize: kib * 1024,
      onProgress: (sent) => {
        most = Math.max(most, sent);
      },
    });
    const refused = (await over.then(
      () => undefined,
      (error: unknown) => error,
    )) as tus.DetailedError;
    expect(refused.originalResponse?.getStatus()).toBe(status);
    expect(JSON.parse(refused.originalResponse?.getBody() ?? '')).toMatchObject({
      reason: 'ImageTooLarge',
      message: expect.stringMatching(/the volume takes 15728640 bytes.*larger volume/) as string,
    });
    expect(most).toBeLessThan(size / 2);
    await expect.poll(() => phaseOf(name), { timeout: 60_000 }).toBe(phase);
    const small = noise(name, 1024 * 1024);
    const next = await begin(endpoint, small.length);
    expect((await next.go(small)).status).toBe(204);
    await expect.poll(() => phaseOf(name), { timeout: 60_000 }).toBe('Succeeded');
  },
  300_000,
);

it('reports to a late client that its file has expired', async () => {
  const endpoint = await newVolume('other');
  const answer = await fetch(`${endpoint}/deadbeef.100`, {
    method: 'HEAD',
    headers: { authorization: `Bearer ${token}`, 'tus-resumable': '1.0.0' },
  });
  expect(answer.status).toBe(410);
}, 120_000);

const metadataOf = (values: Record<string, string>): string =>
  Object.entries(values)
    .map(([name, value]) => `${name} ${Buffer.from(value).toString('base64')}`)
    .join(',');

interface Begun {
  readonly url: string;
  /** Sends the rest from `offset`. */
  readonly go: (body: Buffer | Readable, offset?: number) => Promise<{ status: number; said: string }>;
}

/** Without a client library, which would retry what is rejected. */
const begin = async (
  endpoint: string,
  length: number,
  metadata: Record<string, string> = {},
  bearer = token,
): Promise<Begun> => {
  const common = { authorization: `Bearer ${bearer}`, 'tus-resumable': '1.0.0' };
  const made = await request(endpoint, {
    method: 'POST',
    headers: {
      ...common,
      'upload-length': String(length),
      ...(Object.keys(metadata).length === 0 ? {} : { 'upload-metadata': metadataOf(metadata) }),
    },
  });
  expect([made.statusCode, await made.body.text()]).toEqual([201, '']);
  const url = new URL(String(made.headers['location']), endpoint).href;
  return {
    url,
    go: async (body, offset = 0) => {
      const { statusCode, body: answer } = await request(url, {
        method: 'PATCH',
        headers: { ...common, 'content-type': 'application/offset+octet-stream', 'upload-offset': String(offset) },
        body,
        headersTimeout: 120_000,
      });
      return { status: statusCode, said: await answer.text() };
    },
  };
};

it('verifies a file with its announced checksum, and accepts another one', async () => {
  const endpoint = await newVolume('summed');
  const bytes = await readFile(file);
  const checksum = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  const broken = Buffer.from(bytes);
  broken[broken.length - 5] = (broken[broken.length - 5] ?? 0) ^ 255;
  const refused = await (await begin(endpoint, bytes.length, { checksum })).go(broken);
  expect(refused).toEqual({ status: 400, said: expect.stringMatching(/"ChecksumMismatch".*upload it again/) });
  const taken = await (await begin(endpoint, bytes.length, { checksum })).go(bytes);
  expect(taken).toEqual({ status: 204, said: '' });
  await expect.poll(() => phaseOf('summed'), { timeout: 60_000 }).toBe('Succeeded');
}, 300_000);

describe('a file whose client is silent', () => {
  let impatient: TestCluster;
  let own = '';
  beforeAll(async () => {
    impatient = await startTestCluster({ functionEnvironment: { UPLOAD_IDLE_SECONDS: '10' } });
    own = await tokenIn(impatient);
  }, 200_000);
  afterAll(() => impatient?.close());

  it('is kept without its Job, and continues where it was', async () => {
    const { kube } = impatient;
    const endpoint = await newVolume('asleep', '64Mi', impatient);
    const bytes = noise('asleep', 4 * 2 ** 20);
    const { url, go } = await begin(endpoint, bytes.length, {}, own);
    const half = bytes.length / 2;
    expect(await go(bytes.subarray(0, half))).toEqual({ status: 204, said: '' });
    const volume = () => kube.get(dataVolumeKind.type, { namespace, name: 'asleep' });
    const reasonOf = async () => (await volume())?.status?.conditions?.find(({ type }) => type === 'Ready')?.reason;
    await expect.poll(reasonOf, { timeout: 60_000 }).toBe('UploadPaused');
    const uid = (await volume())?.metadata.uid ?? '';
    const left = async () => [
      ...(await kube.list(jobs, { namespace, labelSelector: childrenOf(uid) })).items,
      ...(await kube.list(pods, { namespace, labelSelector: childrenOf(uid) })).items,
    ];
    await expect.poll(left, { timeout: 60_000 }).toEqual([]);
    expect(await phaseOf('asleep', impatient)).toBe('UploadReady');
    // A browser asks where its file stands, and continues from there.
    const standing = await request(endpoint, { headers: { authorization: `Bearer ${own}` } });
    const { upload } = (await standing.body.json()) as { readonly upload?: { readonly offset: number } };
    expect([upload?.offset, url.endsWith(`.${bytes.length}`)]).toEqual([half, true]);
    expect(await go(bytes.subarray(half), half)).toEqual({ status: 204, said: '' });
    await expect.poll(() => phaseOf('asleep', impatient), { timeout: 60_000 }).toBe('Succeeded');
  }, 300_000);

  it('expires if nothing of it has arrived, and says what to do', async () => {
    const { kube } = impatient;
    const image = () => kube.get(harvesterImageKind.type, { namespace, name: 'late' });
    await kube.create(harvesterImageKind.type, anUploadImage('late'));
    const headers = { authorization: `Bearer ${own}`, 'tus-resumable': '1.0.0', 'upload-length': '1000000' };
    const endpoint = `${impatient.transferUrl}/files/virtualmachineimages/${namespace}/late`;
    const virtualSize = metadataOf({ virtualSize: String(linuxDiskBytes) });
    const begun = await request(endpoint, { method: 'POST', headers: { ...headers, 'upload-metadata': virtualSize } });
    expect(begun.statusCode).toBe(201);
    await expect.poll(async () => (await image())?.status?.phase, { timeout: 60_000 }).toBe('Failed');
    const ready = (await image())?.status?.conditions?.find(({ type }) => type === 'Ready');
    expect(ready).toMatchObject({ reason: 'UploadExpired', message: expect.stringMatching(/bullion\.dev\/retry/) });
    const spools = async () =>
      (await kube.list(persistentVolumeClaims, { namespace })).items.filter(({ metadata }) =>
        metadata.name.startsWith('spool-'),
      );
    await expect.poll(spools, { timeout: 60_000 }).toEqual([]);
    // A browser on a computer that slept asks where its file stands, and begins again.
    const standing = await request(endpoint, { headers: { authorization: headers.authorization } });
    expect(await standing.body.json()).toMatchObject({ stage: 'failed' });
    const beginAgain = async () => {
      const answer = await request(endpoint, {
        method: 'POST',
        headers: { ...headers, 'upload-metadata': virtualSize },
      });
      await answer.body.dump();
      return answer.statusCode;
    };
    await expect.poll(beginAgain, { timeout: 60_000 }).toBe(201);
  }, 400_000);
});
