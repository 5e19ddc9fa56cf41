// The upload action and the links of images that are not stored in a claim of their own: by a DataVolume, and by Longhorn.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { linuxDiskBytes, makeLinuxDisk, publish } from '#test/support/disks.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
let cluster: ExchangeCluster;
let raw = '';
let qcow2 = '';

beforeAll(async () => {
  raw = await makeLinuxDisk(dir);
  qcow2 = await publish(raw, 'qcow2');
  cluster = await startExchangeCluster();
}, 400_000);
afterAll(() => cluster?.close());

const create = (name: string, spec: Parameters<typeof anUploadImage>[1]) =>
  cluster.kube.create(harvesterImageKind.type, anUploadImage(name, spec));

const post = async (name: string, file: string, query = '') => {
  const { size } = await stat(file);
  const answer = await request(cluster.imageUrl(name, `?action=upload&size=${size}${query}`), {
    method: 'POST',
    body: createReadStream(file),
    headers: cluster.editor,
    headersTimeout: 120_000,
  });
  return { status: answer.statusCode, text: await answer.body.text() };
};

const postForm = async (name: string, file: string) => {
  const form = new FormData();
  form.append('chunk', new Blob([await readFile(file)]), 'disk.img');
  const { size } = await stat(file);
  const url = cluster.imageUrl(name, `?action=upload&size=${size}`);
  const answer = await fetch(url, { method: 'POST', body: form, headers: cluster.editor });
  return { status: answer.status, text: await answer.text() };
};

const get = (url: string, method: 'GET' | 'HEAD' = 'GET') =>
  request(url, { method, headers: cluster.editor, headersTimeout: 120_000 });
const bytesOf = async (url: string): Promise<Buffer> => Buffer.from(await (await get(url)).body.arrayBuffer());
const plainUrl = (name: string, query = '') =>
  `${cluster.transferUrl}/downloads/virtualmachineimages/${namespace}/${name}${query}`;

const expectDisk = async (bytes: Buffer, format: 'raw' | 'qcow2'): Promise<void> => {
  const file = join(dir, `got-${Math.random()}`);
  await writeFile(file, bytes);
  await run('qemu-img', ['compare', '-f', format, '-F', 'raw', file, raw]);
};

const remove = async (name: string): Promise<void> => {
  await cluster.kube.delete(harvesterImageKind.type, { namespace, name });
  const read = () => cluster.kube.get(harvesterImageKind.type, { namespace, name });
  await expect.poll(read, { timeout: 120_000 }).toBeUndefined();
};

describe('an image of backend cdi', () => {
  it('is uploaded, downloaded, and uploaded again: the same disk', async () => {
    await create('dv', { backend: 'cdi', displayName: 'kept by a volume' });
    expect(await post('dv', qcow2)).toEqual({ status: 200, text: '' });
    const { status } = await cluster.untilImage('dv', 'Imported');
    expect(status).toMatchObject({ virtualSize: linuxDiskBytes, progress: 100, children: { volume: 'dv' } });
    const packed = await bytesOf(cluster.imageUrl('dv', '/download'));
    await expectDisk(packed, 'qcow2');
    expect((await bytesOf(plainUrl('dv', '?format=raw'))).equals(await readFile(raw))).toBe(true);
    const again = join(dir, 'again.qcow2');
    await writeFile(again, packed);
    await create('dv-again', { backend: 'cdi' });
    expect(await postForm('dv-again', again)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('dv-again', 'Imported');
    expect((await bytesOf(plainUrl('dv-again', '?format=raw'))).equals(await readFile(raw))).toBe(true);
    // The spool of the file is deleted.
    const left = async (): Promise<readonly string[]> => {
      const { items } = await cluster.kube.list(persistentVolumeClaims, { namespace });
      return items.map(({ metadata }) => metadata.name).toSorted();
    };
    await expect.poll(left).toEqual(['dv', 'dv-again']);
    for (const name of ['dv', 'dv-again']) await remove(name);
  }, 400_000);

  it('is verified with the checksum of its spec, and accepts another file', async () => {
    const file = await readFile(qcow2);
    const checksum = createHash('sha512').update(file).digest('hex');
    await create('sum', { backend: 'cdi', checksum });
    const broken = join(dir, 'broken.qcow2');
    const bytes = Buffer.from(file);
    bytes[bytes.length - 5] = (bytes[bytes.length - 5] ?? 0) ^ 255;
    await writeFile(broken, bytes);
    expect(await post('sum', broken)).toMatchObject({ status: 400, text: expect.stringMatching(/ChecksumMismatch/) });
    expect(await post('sum', qcow2)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('sum', 'Imported');
    await remove('sum');
  }, 400_000);

  it('rejects what is not a disk, and accepts another file', async () => {
    await create('page', { backend: 'cdi' });
    const page = join(dir, 'page.html');
    await writeFile(page, '<!doctype html><html><body>Log in</body></html>'.padEnd(4096));
    expect(await post('page', page)).toMatchObject({ status: 400, text: expect.stringMatching(/NotADiskImage/) });
    expect(await post('page', qcow2)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('page', 'Imported');
    await remove('page');
  }, 400_000);
});

describe('an image stored by Longhorn', () => {
  const longhorn = { backend: 'backingimage', targetStorageClassName: 'longhorn' } as const;

  it.each<[form: 'raw' | 'qcow2', send: typeof post]>([
    ['raw', post],
    ['qcow2', postForm],
  ])(
    'of %s is uploaded, downloaded, and uploaded again: the same bytes',
    async (format, send) => {
      const file = format === 'raw' ? raw : qcow2;
      const bytes = await readFile(file);
      const name = `lh-${format}`;
      await create(name, { ...longhorn, displayName: `Grüße ${format}` });
      expect(await send(name, file)).toEqual({ status: 200, text: '' });
      await cluster.untilImage(name, 'Imported');
      const link = await get(cluster.imageUrl(name, '/download'));
      expect(link.headers).toMatchObject({
        'content-type': 'application/gzip',
        'content-disposition': expect.stringContaining(`${format}.gz`),
        'accept-ranges': 'none',
      });
      expect(gunzipSync(Buffer.from(await link.body.arrayBuffer())).equals(bytes)).toBe(true);
      const head = await get(plainUrl(name), 'HEAD');
      expect([head.statusCode, head.headers['content-length']]).toEqual([200, String(bytes.length)]);
      const plain = await bytesOf(plainUrl(name));
      expect(plain.equals(bytes)).toBe(true);
      const again = join(dir, `again-${format}`);
      await writeFile(again, plain);
      await create(`${name}-again`, longhorn);
      expect(await post(`${name}-again`, again)).toEqual({ status: 200, text: '' });
      await cluster.untilImage(`${name}-again`, 'Imported');
      expect((await bytesOf(plainUrl(`${name}-again`))).equals(bytes)).toBe(true);
      const cancelled = await get(cluster.imageUrl(name, '/downloadcancel'));
      expect(cancelled.statusCode).toBe(200);
      for (const one of [name, `${name}-again`]) await remove(one);
    },
    400_000,
  );

  it('is rejected with a message when Longhorn would store a different disk, or none', async () => {
    await create('odd', longhorn);
    const odd = join(dir, 'odd.raw');
    await writeFile(odd, Buffer.alloc(4096 + 6, 1));
    expect(await post('odd', odd)).toMatchObject({
      status: 400,
      text: expect.stringMatching(/multiple of 512.*truncate/),
    });
    const packed = await publish(raw, 'raw.gz');
    expect(await post('odd', packed, `&virtualSize=${linuxDiskBytes}`)).toMatchObject({
      status: 400,
      text: expect.stringMatching(/raw in gz.*unpack/),
    });
    const resumed = await fetch(`${cluster.transferUrl}/files/virtualmachineimages/${namespace}/odd`, {
      method: 'POST',
      headers: { ...cluster.editor, 'tus-resumable': '1.0.0', 'upload-length': '4096' },
    });
    expect([resumed.status, await resumed.text()]).toEqual([409, expect.stringMatching(/whole files.*POST/)]);
    expect(await post('odd', raw)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('odd', 'Imported');
    const other = await get(plainUrl('odd', '?format=qcow2'));
    expect([other.statusCode, await other.body.json()]).toMatchObject([400, { message: /stores this file as raw/ }]);
    await remove('odd');
  }, 400_000);

  it('is rejected when it is a qcow2 without its end, or one that refers to other files', async () => {
    await create('cut', longhorn);
    const whole = await readFile(qcow2);
    for (const [share, send] of [
      [0.1, post],
      [0.5, postForm],
      [0.9, post],
    ] as const) {
      const cut = join(dir, `cut-${share}.qcow2`);
      await writeFile(cut, whole.subarray(0, Math.floor((whole.length * share) / 512) * 512));
      expect(await send('cut', cut)).toMatchObject({ status: 400, text: expect.stringMatching(/truncated/) });
    }
    const overlay = join(dir, 'overlay.qcow2');
    await run('qemu-img', ['create', '-q', '-u', '-f', 'qcow2', '-b', '/etc/passwd', '-F', 'raw', overlay, '64M']);
    expect(await post('cut', overlay)).toMatchObject({ status: 400, text: expect.stringMatching(/backing file/) });
    expect(await post('cut', qcow2)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('cut', 'Imported');
    expect((await bytesOf(plainUrl('cut'))).equals(whole)).toBe(true);
    await remove('cut');
  }, 400_000);

  it('fails when its checksum differs, which the client is told, and can be uploaded again', async () => {
    const checksum = createHash('sha512')
      .update(await readFile(raw))
      .digest('hex');
    await create('summed', { ...longhorn, checksum, retry: 0 });
    const wrong = join(dir, 'wrong.raw');
    const bytes = await readFile(raw);
    bytes[1000] = (bytes[1000] ?? 0) ^ 255;
    await writeFile(wrong, bytes);
    expect(await post('summed', wrong)).toMatchObject({ status: 400, text: expect.stringMatching(/checksum/) });
    await cluster.untilImage('summed', 'Failed');
    expect(await post('summed', raw)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('summed', 'Imported');
    await remove('summed');
  }, 400_000);

  it('that is deleted during its upload leaves nothing, and its name is free', async () => {
    await create('gone', longhorn);
    const image = () => cluster.kube.get(harvesterImageKind.type, { namespace, name: 'gone' });
    const childOf = async () => (await image())?.status?.children?.backingImage;
    await expect.poll(childOf, { timeout: 120_000 }).toBeDefined();
    const name = (await childOf())!;
    const stop = new AbortController();
    const { promise: removed, resolve: whenRemoved } = Promise.withResolvers<void>();
    const held = Readable.from(
      (async function* untilRemoved() {
        yield Buffer.alloc(2 ** 20, 1);
        await removed;
        yield Buffer.alloc(2 ** 20, 2);
      })(),
    );
    const url = cluster.imageUrl('gone', `?action=upload&size=${2 * 2 ** 20}`);
    const sending = request(url, { method: 'POST', body: held, headers: cluster.editor, signal: stop.signal }).then(
      ({ statusCode }) => statusCode,
      () => 0,
    );
    await expect.poll(async () => (await image())?.status?.phase, { timeout: 120_000 }).toBe('Downloading');
    await remove('gone');
    whenRemoved();
    expect(await sending).not.toBe(200);
    stop.abort();
    expect(await cluster.kube.get(backingImages, { namespace: longhornNamespace, name })).toBeUndefined();
    await create('gone', longhorn);
    expect(await post('gone', raw)).toEqual({ status: 200, text: '' });
    await cluster.untilImage('gone', 'Imported');
  }, 400_000);
});
