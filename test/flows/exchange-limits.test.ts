// What the transfer function rejects, as a separate process: requests that are too large, from the wrong page, or with a token that has expired.
import { request as httpRequest } from 'node:http';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { secrets } from '#shared/api/foreign/core.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { type ExchangeCluster, anUploadImage, anUploadVolume, startExchangeCluster } from '#test/support/exchange.ts';
import { type TransferProcess, startTransferProcess } from '#test/support/transfer-process.ts';

const mib = 2 ** 20;
const ours = 'https://ui.example';
const dir = temporaryDirectory();
let disk = Buffer.alloc(0);
let cluster: ExchangeCluster;
let fn: TransferProcess;
const start = () =>
  startTransferProcess(cluster.kubeconfigPath, {
    UPLOAD_MAX_BYTES: String(2 * mib),
    CORS_ORIGINS: `${ours},https://b.example`,
  });

beforeAll(async () => {
  const raw = join(dir, 'disk.raw');
  await writeBootDisk(raw, { bytes: 4 * mib, dataBytes: 3 * mib });
  disk = await readFile(raw);
  cluster = await startExchangeCluster();
  fn = await start();
  await cluster.kube.create(harvesterImageKind.type, anUploadImage('image'));
  await cluster.kube.create(dataVolumeKind.type, anUploadVolume('volume'));
  await cluster.untilVolume('volume', 'UploadReady');
}, 120_000);
afterAll(async () => {
  await fn?.kill('SIGTERM');
  await cluster?.close();
});

const action = (query: string) =>
  `/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/image?action=upload${query}`;
/** In pieces, as from a network. */
const cut = (bytes: Buffer): Buffer[] =>
  Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, at) => bytes.subarray(at * 65_536, (at + 1) * 65_536));
const file = (name: string) => `/files/datavolumes/${namespace}/${name}`;

interface Asked {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'OPTIONS';
  readonly headers?: Record<string, string>;
  readonly body?: Buffer;
  readonly origin?: string;
}

const ask = async (path: string, { method = 'POST', headers = {}, body, origin = ours }: Asked = {}) => {
  const answer = await request(`${fn.url}${path}`, {
    method,
    headers: { ...cluster.editor, origin, ...headers },
    ...(body === undefined ? {} : { body }),
  });
  const text = await answer.body.text();
  return {
    status: answer.statusCode,
    allowed: answer.headers['access-control-allow-origin'],
    said: text.startsWith('{') ? (JSON.parse(text) as { reason?: string; message?: string }) : text,
  };
};

describe('what is too large is rejected with JSON that says what to do', () => {
  it.each<[string, () => ReturnType<typeof ask>]>([
    ['a body by its length, before it is read', () => ask(action(''), { body: Buffer.alloc(3 * mib, 1) })],
    ['a file by its size', () => ask(action(`&size=${3 * mib}`), { body: Buffer.alloc(1000, 1) })],
  ])('413: %s', async (_what, send) => {
    expect(await send()).toEqual({
      status: 413,
      allowed: ours,
      said: expect.objectContaining({
        kind: 'Status',
        code: 413,
        reason: 'RequestEntityTooLarge',
        message: expect.stringMatching(/and the limit is 2097152: compress it, or publish it/),
      }),
    });
  });

  /** A disk of 4 MiB, whose length is not known in advance. */
  const unbounded = async (
    path: string,
    { headers = {}, around = [] }: { headers?: object; around?: string[] } = {},
  ) => {
    const [before = '', after = ''] = around;
    const pieces = [before, disk, after].map((piece) => Buffer.from(piece));
    const sent = request(`${fn.url}${path}`, {
      method: path.startsWith('/files') ? 'PATCH' : 'POST',
      headers: { ...cluster.editor, origin: ours, ...headers },
      body: Readable.from(
        pieces.flatMap((piece) => cut(piece)),
        { objectMode: false },
      ),
    });
    const { statusCode, headers: told, body } = await sent;
    return {
      status: statusCode,
      allowed: told['access-control-allow-origin'],
      type: told['content-type'],
      said: JSON.parse(await body.text()) as { message?: string },
    };
  };
  const refusal = (message: RegExp) => ({
    status: 413,
    allowed: ours,
    type: 'application/json',
    said: expect.objectContaining({ reason: 'RequestEntityTooLarge', message: expect.stringMatching(message) }),
  });
  const most = /more than 2097152 bytes, and the limit is 2097152: compress it, or publish it/;

  it.each<[string, () => ReturnType<typeof unbounded>]>([
    ['as it is', () => unbounded(action(`&virtualSize=${4 * mib}`))],
    [
      'in a form',
      () =>
        unbounded(action(`&virtualSize=${4 * mib}`), {
          headers: { 'content-type': 'multipart/form-data; boundary=b' },
          around: ['--b\r\nContent-Disposition: form-data; name="chunk"; filename="d.img"\r\n\r\n', '\r\n--b--\r\n'],
        }),
    ],
    [
      "to CDI's proxy",
      async () => {
        const file = join(dir, 'token.json');
        const kind = { apiVersion: 'upload.cdi.kubevirt.io/v1beta1', kind: 'UploadTokenRequest' };
        await writeFile(file, JSON.stringify({ ...kind, metadata: { name: 'volume' }, spec: { pvcName: 'volume' } }));
        const token = await cluster.kubectl('create', '-f', file, '-o', 'jsonpath={.status.token}');
        return unbounded('/v1beta1/upload', { headers: { authorization: `Bearer ${token}` } });
      },
    ],
  ])(
    '413: a file of unknown length, %s',
    async (_what, send) => {
      expect(await send()).toEqual(refusal(most));
    },
    60_000,
  );

  it('413: more data for a resumable upload than announced', async () => {
    const begun = await request(`${fn.url}${file('volume')}`, {
      method: 'POST',
      headers: { ...cluster.editor, 'tus-resumable': '1.0.0', 'upload-length': String(mib) },
    });
    expect(begun.statusCode).toBe(201);
    const { pathname } = new URL(String(begun.headers['location']), `${fn.url}${file('volume')}`);
    const headers = {
      'tus-resumable': '1.0.0',
      'upload-offset': '0',
      'content-type': 'application/offset+octet-stream',
    };
    expect(await unbounded(pathname, { headers })).toEqual(
      refusal(/more bytes arrived than Upload-Length allows: start a new upload/),
    );
  }, 60_000);

  it('413: a resumable upload by its announced length', async () => {
    const headers = { 'tus-resumable': '1.0.0', 'upload-length': String(3 * mib) };
    const answer = await ask(file('volume'), { headers });
    expect([answer.status, answer.allowed]).toEqual([413, ours]);
    expect(answer.said).toMatchObject({ message: expect.stringMatching(/and the limit is 2097152/) });
  });

  it('413: a request for a token', async () => {
    const huge = JSON.stringify({ spec: { pvcName: 'x'.repeat(1_200_000) } });
    const path = `/apis/upload.cdi.kubevirt.io/v1beta1/namespaces/${namespace}/uploadtokenrequests`;
    await expect(cluster.kube.raw({ method: 'POST', path, body: JSON.parse(huge) as object })).rejects.toMatchObject({
      message: expect.stringMatching(/UploadTokenRequest has \d+ bytes at most/),
    });
  });

  it('431: headers, readable by browsers of any origin', async () => {
    const { status, headers, text } = await new Promise<{
      status: number;
      headers: Record<string, unknown>;
      text: string;
    }>((resolve, reject) => {
      const sent = httpRequest(
        `${fn.url}/keys`,
        { headers: { cookie: 'c'.repeat(20_000), origin: ours } },
        (answer) => {
          let body = '';
          answer.on('data', (part: Buffer) => (body += part.toString()));
          answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, text: body }));
        },
      );
      sent.on('error', reject);
      sent.end();
    });
    expect([status, headers['access-control-allow-origin']]).toEqual([431, '*']);
    expect(JSON.parse(text)).toMatchObject({
      kind: 'Status',
      code: 431,
      message: expect.stringMatching(/16 KiB: send a shorter/),
    });
  });
});

describe('pages of other origins', () => {
  it.each<[string, string, Asked, number]>([
    ['without a token', action(''), { headers: { authorization: '' }, body: Buffer.from('x') }, 401],
    ['for a missing object', `/downloads/datavolumes/${namespace}/nothing`, { method: 'GET' }, 404],
    ['at a path that is none', '/nothing', { method: 'GET' }, 404],
    ['for an object that is not ready', `/downloads/datavolumes/${namespace}/volume`, { method: 'GET' }, 409],
    [
      'of tus for an upload that was never started',
      `${file('volume')}/x.1`,
      {
        method: 'PATCH',
        headers: { 'tus-resumable': '1.0.0', 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
        body: Buffer.from('x'),
      },
      410,
    ],
    ['of CDI without a token', '/v1beta1/upload', { headers: { authorization: '' }, body: Buffer.from('x') }, 401],
  ])('can read an error %s, on the paths of the transfer function', async (_what, path, asked, status) => {
    expect(await ask(path, asked)).toMatchObject({ status, allowed: ours });
    const strange = await ask(path, { ...asked, origin: 'https://evil.example' });
    expect(strange).toMatchObject({ status });
    expect(strange.allowed).not.toBe('https://evil.example');
    expect(strange.allowed).not.toBe('*');
  });

  it('get the allowed methods and headers before a request', async () => {
    const headers = {
      'access-control-request-method': 'PATCH',
      'access-control-request-headers': 'authorization,upload-offset,tus-resumable',
    };
    const answer = await request(`${fn.url}${file('volume')}/x.1`, {
      method: 'OPTIONS',
      headers: { origin: ours, ...headers },
    });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['access-control-allow-origin']).toBe(ours);
    expect(answer.headers['access-control-allow-methods']).toMatch(/PATCH/);
    expect(String(answer.headers['access-control-allow-headers']).toLowerCase()).toMatch(/upload-offset/);
  });
});

describe('a signed address', () => {
  const keys = { namespace: 'bullion-system', name: 'transfer-keys' };
  /** Like a rotation after a day. */
  const renew = async (): Promise<void> => {
    await cluster.kube.mergePatch(secrets, keys, {
      metadata: { annotations: { 'bullion.dev/made-at': new Date(Date.now() - 25 * 3_600_000).toISOString() } },
    });
    // An instance that has just started reads the keys, and renews them.
    await fn.kill('SIGTERM');
    fn = await start();
    const before = (await cluster.kube.get(secrets, keys))?.data?.['current'];
    await (await fetch(`${fn.url}/keys`)).text();
    expect((await cluster.kube.get(secrets, keys))?.data?.['current']).not.toBe(before);
  };
  const link = async (seconds: number): Promise<string> => {
    const answer = await ask(`/downloads/datavolumes/${namespace}/volume?seconds=${seconds}`);
    expect(answer.status).toBe(201);
    return new URL((answer.said as { url: string }).url).search;
  };
  /** 409: the caller is authenticated; the volume is not populated yet. */
  const use = async (search: string): Promise<number> =>
    (await request(`${fn.url}/downloads/datavolumes/${namespace}/volume${search}`)).statusCode;

  it('is valid until it expires, also after a rotation of the key that signed it', async () => {
    const long = await link(3600);
    expect(await use(long)).toBe(409);
    await renew();
    expect(await use(long)).toBe(409);
    const young = await link(3600);
    await renew();
    // Its key was rotated twice: after a day and another day.
    expect(await use(long)).toBe(401);
    expect(await use(young)).toBe(409);
  });

  it('is revoked at once with its key', async () => {
    const search = await link(3600);
    await cluster.kube.delete(secrets, keys);
    await fn.kill('SIGTERM');
    fn = await start();
    expect(await use(search)).toBe(401);
    expect(await use(await link(60))).toBe(409);
  });
});
