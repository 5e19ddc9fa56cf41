// Images and volumes as files: the downloaded bytes are the uploaded ones, however often the connection was cut.
import { execFile } from 'node:child_process';
import { createReadStream } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { transferJobName } from '#shared/populate/job/transfer-job.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { makeLinuxDisk, publish } from '#test/support/disks.ts';
import { type ExchangeCluster, anUploadImage, anUploadVolume, startExchangeCluster } from '#test/support/exchange.ts';
import { createRandom, seed } from '#test/support/random.ts';
import { untilGone } from '#test/support/until.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
const random = createRandom(seed);
let cluster: ExchangeCluster;
let raw = '';

const uploadTo = async (url: string, file: string): Promise<void> => {
  const { editor: headers } = cluster;
  const answer = await request(url, { method: 'POST', body: createReadStream(file), headers, headersTimeout: 120_000 });
  expect([answer.statusCode, await answer.body.text()]).toEqual([200, '']);
};

const newImage = async (name: string, file: string, displayName = name): Promise<void> => {
  await cluster.kube.create(harvesterImageKind.type, anUploadImage(name, { displayName }));
  await uploadTo(cluster.imageUrl(name, '?action=upload'), file);
  await cluster.untilImage(name, 'Imported');
};

beforeAll(async () => {
  raw = await makeLinuxDisk(dir);
  const qcow2 = await publish(raw, 'qcow2');
  cluster = await startExchangeCluster();
  await newImage('linux', qcow2, 'Grüße 1.0.img');
}, 240_000);
afterAll(() => cluster?.close());

const get = (url: string, more: { headers?: Record<string, string>; method?: 'GET' | 'HEAD' } = {}) =>
  request(url, {
    method: more.method ?? 'GET',
    headers: { ...cluster.editor, ...more.headers },
    headersTimeout: 120_000,
  });

const isDisk = async (bytes: Buffer, format: 'qcow2' | 'raw'): Promise<void> => {
  const file = join(dir, `got-${Math.random()}.${format}`);
  await writeFile(file, bytes);
  if (format === 'qcow2') await run('qemu-img', ['check', file]);
  await run('qemu-img', ['compare', '-f', format, '-F', 'raw', file, raw]);
};

it('returns an image as compressed qcow2 under its name, which can be uploaded again as the same disk', async () => {
  const url = cluster.imageUrl('linux', '/download');
  const head = await get(url, { method: 'HEAD' });
  const { statusCode, headers, body } = await get(url);
  const bytes = Buffer.from(await body.arrayBuffer());
  expect(statusCode).toBe(200);
  expect(headers).toMatchObject({
    'content-length': String(bytes.length),
    'content-disposition': `attachment; filename="Gru_e 1.0.qcow2"; filename*=UTF-8''Gr%C3%BC%C3%9Fe%201.0.qcow2`,
    'content-type': 'application/x-qemu-disk',
    'accept-ranges': 'bytes',
  });
  const { date: _, connection: _c, 'keep-alive': _k, ...told } = headers;
  expect(head.headers).toMatchObject(told);
  await isDisk(bytes, 'qcow2');
  const again = join(dir, 'again.qcow2');
  await writeFile(again, bytes);
  await newImage('again', again);
  const second = await get(`${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/again?format=raw`);
  const disk = Buffer.from(await second.body.arrayBuffer());
  expect(disk.equals(await readFile(raw))).toBe(true);
}, 240_000);

it(`resumes where it was cut, also after its Job was killed (seed ${seed})`, async () => {
  const url = `${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/linux`;
  const whole = await get(url);
  const { etag } = whole.headers as { etag: string };
  const bytes = Buffer.from(await whole.body.arrayBuffer());
  const parts: Buffer[] = [];
  let at = 0;
  for (let cut = 0; at < bytes.length; cut += 1) {
    const { statusCode, headers, body } = await get(url, { headers: { range: `bytes=${at}-`, 'if-range': etag } });
    expect([statusCode, headers['etag']]).toEqual([206, etag]);
    const most = cut < 3 ? Math.floor(random.next() * bytes.length * 0.4) : Number.POSITIVE_INFINITY;
    let taken = 0;
    for await (const chunk of body as AsyncIterable<Buffer>) {
      parts.push(chunk);
      taken += chunk.length;
      if (taken >= most) break;
    }
    at += taken;
    if (cut !== 1) continue;
    for (const { metadata } of (await cluster.kube.list(jobs, { namespace })).items)
      if (metadata.name.startsWith('serve-')) await cluster.kube.delete(jobs, { namespace, name: metadata.name });
  }
  expect(Buffer.concat(parts).equals(bytes)).toBe(true);
  await isDisk(bytes, 'qcow2');
}, 240_000);

it('returns a volume raw and compressed, which can be uploaded again, once it exists', async () => {
  await cluster.kube.create(dataVolumeKind.type, anUploadVolume('data'));
  await cluster.untilVolume('data', 'UploadReady');
  const early = await get(`${cluster.transferUrl}/downloads/datavolumes/${namespace}/data`);
  expect([early.statusCode, await early.body.json()]).toMatchObject([409, { reason: 'NotReady' }]);
  await uploadToVolume('data', createReadStream(raw));
  const unpack = { gz: gunzipSync, zst: zstdDecompressSync };
  for (const [compression, undo] of Object.entries(unpack)) {
    const { headers, body } = await get(
      `${cluster.transferUrl}/downloads/persistentvolumeclaims/${namespace}/data?compression=${compression}`,
    );
    expect(headers['content-disposition']).toBe(`attachment; filename="data.raw.${compression}"`);
    expect(headers).not.toHaveProperty('content-length');
    const packed = Buffer.from(await body.arrayBuffer());
    await isDisk(undo(packed), 'raw');
    if (compression === 'gz') continue;
    await cluster.kube.create(dataVolumeKind.type, anUploadVolume('second'));
    await cluster.untilVolume('second', 'UploadReady');
    await uploadToVolume('second', packed);
    const again = await get(`${cluster.transferUrl}/downloads/datavolumes/${namespace}/second?format=raw`);
    await isDisk(Buffer.from(await again.body.arrayBuffer()), 'raw');
  }
}, 240_000);

const uploadToVolume = async (name: string, body: Buffer | ReturnType<typeof createReadStream>): Promise<void> => {
  const token = await cluster.kubectl('create', '-f', await tokenRequest(name), '-o', 'jsonpath={.status.token}');
  const sent = await request(`${cluster.transferUrl}/v1beta1/upload`, {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${token}` },
    headersTimeout: 120_000,
  });
  expect([sent.statusCode, await sent.body.text()]).toEqual([200, '']);
  await cluster.untilVolume(name, 'Succeeded');
};

const tokenRequest = async (pvcName: string): Promise<string> => {
  const file = join(dir, `token-${pvcName}.json`);
  const kind = { apiVersion: 'upload.cdi.kubevirt.io/v1beta1', kind: 'UploadTokenRequest' };
  await writeFile(file, JSON.stringify({ ...kind, metadata: { name: pvcName, namespace }, spec: { pvcName } }));
  return file;
};

it('is allowed for users with permission, and for holders of an address that they signed', async () => {
  const viewer = await cluster.accountOf('viewer', 'view');
  const url = `${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/linux`;
  for (const [headers, status] of [
    [viewer, 403],
    [{}, 401],
  ] as const) {
    const answer = await request(url, { headers: { ...headers, origin: 'https://ui.example' } });
    expect([answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([status, '*']);
    expect(await answer.body.json()).toMatchObject({ kind: 'Status', code: status });
  }
  const refused = await request(url, { method: 'POST', headers: viewer });
  expect(refused.statusCode).toBe(403);
  const signed = await request(`${url}?seconds=60`, { method: 'POST', headers: cluster.editor });
  const link = ((await signed.body.json()) as { url: string }).url;
  const taken = await request(link, { headers: { range: 'bytes=0-3' } });
  expect([taken.statusCode, taken.headers['content-range']]).toEqual([206, expect.stringMatching(/^bytes 0-3\//)]);
  await taken.body.dump();
  const other = await request(link.replace('/linux', '/again'));
  expect(other.statusCode).toBe(403);
  const more = await request(link, { method: 'POST' });
  expect(more.statusCode).toBe(403);
}, 300_000);

/** Never the bytes: a failing test would print them. */
const endOf = (body: { bytes(): Promise<Uint8Array> }): Promise<string> =>
  body.bytes().then(
    ({ length }) => `${length} bytes`,
    () => 'cut',
  );

it('is reported by a Downloader, which is deleted with it; and can be cancelled', async () => {
  await cluster.kube.create(downloaderKind.type, {
    apiVersion: 'harvesterhci.io/v1beta1',
    kind: 'VirtualMachineImageDownloader',
    metadata: { name: 'linux', namespace },
    spec: { imageName: 'linux' },
  });
  const read = () => cluster.kube.get(downloaderKind.type, { namespace, name: 'linux' });
  await expect.poll(async () => (await read())?.status?.status, { timeout: 100_000 }).toBe('Ready');
  const url = (await read())?.status?.downloadUrl ?? '';
  const part = await get(url, { headers: { range: 'bytes=0-3' } });
  expect(await part.body.text()).toBe('QFI\uFFFD');
  expect(await read()).toBeDefined();
  const { body } = await get(url);
  await body.dump({ limit: 1e9 });
  await expect.poll(read, { timeout: 100_000 }).toBeUndefined();
  const slow = await get(`${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/linux?format=raw`);
  const image = await cluster.kube.get(harvesterImageKind.type, { namespace, name: 'linux' });
  const serving = () =>
    cluster.kube.get(jobs, { namespace, name: transferJobName('serve', { uid: image?.metadata.uid ?? '' }) });
  expect(await serving()).toBeDefined();
  const cancelled = await get(cluster.imageUrl('linux', '/downloadcancel'));
  expect(cancelled.statusCode).toBe(200);
  // Not read earlier: a pod that has not noticed its termination yet would send all of it.
  await expect.poll(serving, { timeout: 60_000 }).toBeUndefined();
  expect(await endOf(slow.body)).toBe('cut');
}, 300_000);

it('does not block the deletion of an image', async () => {
  const { body } = await get(`${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/again?format=raw`);
  const cut = endOf(body);
  await cluster.kube.delete(harvesterImageKind.type, { namespace, name: 'again' });
  const read = () => cluster.kube.get(harvesterImageKind.type, { namespace, name: 'again' });
  await expect.poll(read, { timeout: 60_000 }).toBeUndefined();
  await cut;
}, 300_000);

it('does not keep the claim of a deleted volume', async () => {
  const { statusCode } = await get(`${cluster.transferUrl}/downloads/datavolumes/${namespace}/second`, {
    method: 'HEAD',
  });
  expect(statusCode).toBe(200);
  await cluster.kube.delete(dataVolumeKind.type, { namespace, name: 'second' });
  // Without a request the Job would keep it for a minute.
  await untilGone(cluster.kube, persistentVolumeClaims, { namespace, name: 'second' }, 50);
}, 300_000);
