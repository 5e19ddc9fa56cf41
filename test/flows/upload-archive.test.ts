// Uploads of archives: `virtctl image-upload --archive-path`, request by request.
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type ExchangeCluster, anUploadVolume, startExchangeCluster } from '#test/support/exchange.ts';
import { tarOf } from '#test/support/registry/images.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
const bytes = noise('archive', 2 * 2 ** 20);
let cluster: ExchangeCluster;
let packed: Buffer;

beforeAll(async () => {
  cluster = await startExchangeCluster();
  const source = await mkdtemp(join(dir, 'source-'));
  await mkdir(join(source, 'sub'));
  await writeFile(join(source, 'sub', 'data.bin'), bytes);
  await writeFile(join(source, 'readme'), 'hello');
  await run('tar', ['-czf', join(dir, 'files.tar.gz'), '-C', source, '.']);
  packed = await readFile(join(dir, 'files.tar.gz'));
}, 180_000);
afterAll(() => cluster?.close());

const newVolume = async (name: string, spec: Partial<DataVolume['spec']> = { contentType: 'archive' }) => {
  await cluster.kube.create(dataVolumeKind.type, anUploadVolume(name, spec));
  await cluster.untilVolume(name, 'UploadReady');
  const file = join(dir, `token-${name}.json`);
  const kind = { apiVersion: 'upload.cdi.kubevirt.io/v1beta1', kind: 'UploadTokenRequest' };
  await writeFile(file, JSON.stringify({ ...kind, metadata: { name, namespace }, spec: { pvcName: name } }));
  return { authorization: `Bearer ${await cluster.kubectl('create', '-f', file, '-o', 'jsonpath={.status.token}')}` };
};

const post = async (path: string, body: Buffer, headers: Record<string, string>) => {
  const url = `${cluster.transferUrl}${path}`;
  const answer = await request(url, { method: 'POST', body, headers, headersTimeout: 120_000 });
  return { status: answer.statusCode, text: await answer.body.text() };
};

const fileIn = async (name: string): Promise<string> => {
  const { stdout } = await run('find', [
    join(cluster.dataDir, 'storage', 'volumes'),
    '-path',
    `*${name}`,
    '-type',
    'f',
  ]);
  return stdout.trim();
};

it.each(['/v1beta1/upload-async', '/v1beta1/upload-archive', '/v1alpha1/upload-archive'])(
  'by %s are unpacked into a volume',
  async (path) => {
    const name = `files-${path.replaceAll('/', '-').slice(1)}`;
    const headers = await newVolume(name);
    const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name });
    expect(claim?.metadata.annotations?.['cdi.kubevirt.io/storage.contentType']).toBe('archive');
    expect(await post(path, packed, headers)).toEqual({ status: 200, text: '' });
    await cluster.untilVolume(name, 'Succeeded');
    const file = await fileIn('sub/data.bin');
    expect((await readFile(file)).equals(bytes)).toBe(true);
    expect(await readFile(join(file, '..', '..', 'readme'), 'utf8')).toBe('hello');
    const got = await request(`${cluster.transferUrl}/downloads/datavolumes/${namespace}/${name}`, {
      headers: cluster.editor,
    });
    expect([got.statusCode, await got.body.json()]).toMatchObject([
      409,
      { message: expect.stringMatching(/contains files, not a disk/) },
    ]);
    await cluster.kube.delete(dataVolumeKind.type, { namespace, name });
    await expect.poll(() => fileIn('sub/data.bin'), { timeout: 60_000 }).toBe('');
  },
  120_000,
);

it('with a path outside the volume are rejected, and the error is in the answer and in the status', async () => {
  const headers = await newVolume('evil');
  const evil = tarOf([{ name: '../../evil', content: Buffer.from('x') }]);
  expect(await post('/v1beta1/upload-archive', evil, headers)).toEqual({
    status: 500,
    text: expect.stringMatching(/^Saving stream failed: the archive has an entry that leads out of it/),
  });
  const said = async () => {
    const volume = await cluster.kube.get(dataVolumeKind.type, { namespace, name: 'evil' });
    return JSON.stringify([volume?.status?.phase, volume?.status?.conditions]);
  };
  await expect.poll(said, { timeout: 60_000 }).toMatch(/UploadReady.*leads out of it/);
  expect(await post('/v1beta1/upload-archive', packed, headers)).toEqual({ status: 200, text: '' });
  await cluster.untilVolume('evil', 'Succeeded');
}, 120_000);

it('are for volumes with content type archive, and those for file systems', async () => {
  const headers = await newVolume('disk', {});
  expect(await post('/v1beta1/upload-archive', packed, headers)).toEqual({
    status: 503,
    text: expect.stringMatching(/^rejecting upload request for PVC disk - upload content-type archive is invalid/),
  });
  const pvc = { ...anUploadVolume('block').spec.pvc, volumeMode: 'Block' as const };
  const refused = cluster.kube.create(dataVolumeKind.type, anUploadVolume('block', { contentType: 'archive', pvc }));
  await expect(refused).rejects.toThrow(/volumeMode.*must be Filesystem where contentType is archive/);
}, 120_000);
