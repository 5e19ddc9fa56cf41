import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { until } from '#test/support/until.ts';
import { type TestCluster, namespace, startTestCluster } from '#test/support/cluster.ts';
import { type Form, linuxDiskBytes, makeLinuxDisk, publish } from '#test/support/disks.ts';
import { temporaryDirectory } from '#test/support/directory.ts';

const run = promisify(execFile);
const dir = temporaryDirectory();
const files = new Map<Form, string>();
let cluster: TestCluster;
let token = '';

beforeAll(async () => {
  const raw = await makeLinuxDisk(dir);
  for (const form of ['qcow2', 'compressed.qcow2', 'raw.gz'] as const) files.set(form, await publish(raw, form));
  files.set('raw', raw);
  // Uploads must not wait for a tick.
  cluster = await startTestCluster({ tickSeconds: 3600 });
  token = (await run('kubectl', ['create', 'token', 'default', '-n', namespace, ...kubeconfig()])).stdout.trim();
  await run('kubectl', [
    'create',
    'clusterrolebinding',
    'uploader',
    '--clusterrole=edit',
    '--serviceaccount=default:default',
    ...kubeconfig(),
  ]);
}, 180_000);
afterAll(() => cluster?.close());

const kubeconfig = (): string[] => ['--kubeconfig', cluster.kubeconfigPath];
const kubectl = async (args: readonly string[], stdin?: string): Promise<string> => {
  const child = execFile('kubectl', [...args, ...kubeconfig()]);
  const out = new Promise<string>((resolve, reject) => {
    let text = '';
    let complaint = '';
    child.stdout?.on('data', (chunk: string) => (text += chunk));
    child.stderr?.on('data', (chunk: string) => (complaint += chunk));
    child.once('close', (code) => (code === 0 ? resolve(text) : reject(new Error(complaint))));
  });
  child.stdin?.end(stdin ?? '');
  return out;
};

const anUploadImage = (name: string): HarvesterImage => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineImage',
  metadata: { name, namespace },
  spec: { backend: 'csi', displayName: name, sourceType: 'upload', targetStorageClassName: 'local' },
});

const aDataVolume = (name: string, storage = '1Gi', className = 'local'): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace },
  spec: {
    source: { upload: {} },
    pvc: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } }, storageClassName: className },
  },
});

/** The disk in a claim, as the guest would read it. */
const diskOf = async (claimName: string): Promise<string> => {
  // It gets its volume once that is complete, shortly after the client of an upload was answered.
  const key = { namespace, name: claimName };
  const claim = await until(cluster.kube, persistentVolumeClaims, key, (now) => now?.status?.phase === 'Bound');
  const volume = await cluster.kube.get(persistentVolumes, { name: claim?.spec.volumeName ?? '' });
  const path = (volume as unknown as { spec: { csi?: { volumeHandle?: string } } }).spec.csi?.volumeHandle ?? '';
  const { stdout } = await run('find', [
    join(cluster.dataDir, 'storage', 'volumes'),
    // Other volumes may be deleted meanwhile, which makes the exit code 1.
    '-ignore_readdir_race',
    '-path',
    `*${path}*`,
    '-type',
    'f',
  ]).catch((error: { readonly stdout: string }) => error);
  const [file = ''] = stdout.split('\n');
  return file;
};

const expectDisk = async (claimName: string): Promise<void> => {
  const file = await diskOf(claimName);
  // qemu-img compares what guests see: a longer disk may have zeroes at its end.
  await run('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', file, files.get('raw')!]);
};

const imageOf = (name: string) => cluster.kube.get(harvesterImageKind.type, { namespace, name });
const untilImage = async (name: string, phase: string): Promise<HarvesterImage> => {
  await expect.poll(async () => (await imageOf(name))?.status?.phase, { timeout: 150_000, interval: 100 }).toBe(phase);
  return (await imageOf(name))!;
};
const untilVolume = async (name: string, phase: string): Promise<void> => {
  const read = async () => (await cluster.kube.get(dataVolumeKind.type, { namespace, name }))?.status?.phase;
  await expect.poll(read, { timeout: 150_000, interval: 100 }).toBe(phase);
};

const actionOf = (name: string, query: string): string =>
  `${cluster.transferUrl}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${name}?action=upload${query}`;

describe('the upload action of an image', () => {
  it.each(['qcow2', 'compressed.qcow2', 'raw'] as const)(
    'accepts %s',
    async (form) => {
      const name = `raw-${form.replace('.', '-')}`;
      await cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
      const file = files.get(form)!;
      const { size } = await stat(file);
      const { stdout } = await run('curl', [
        '-sS',
        '-f',
        '-w',
        '%{http_code}',
        '-X',
        'POST',
        '-H',
        `Authorization: Bearer ${token}`,
        '-H',
        'Content-Type: application/octet-stream',
        '-T',
        file,
        actionOf(name, `&size=${size}`),
      ]);
      expect(stdout).toBe('200');
      const { status, metadata } = await untilImage(name, 'Imported');
      expect(status).toMatchObject({ size, virtualSize: linuxDiskBytes, progress: 100 });
      await expectDisk(`vmi-${metadata.uid}`);
    },
    300_000,
  );

  it.each(['chunk', 'file'])(
    'accepts a form whose part is named %s',
    async (part) => {
      const name = `form-${part}`;
      await cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
      const file = files.get('qcow2')!;
      const { size } = await stat(file);
      const { stdout } = await run('curl', [
        '-sS',
        '-w',
        '%{http_code}',
        '-H',
        `Authorization: Bearer ${token}`,
        '-F',
        `${part}=@${file}`,
        actionOf(name, `&size=${size}`),
      ]);
      expect(stdout).toBe('200');
      await untilImage(name, 'Imported');
      await expectDisk(`vmi-${(await imageOf(name))!.metadata.uid}`);
    },
    300_000,
  );

  it('reports what is wrong with a file that is not a disk, and accepts another one', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('page'));
    const page = Buffer.from('<!doctype html><html><body>Log in</body></html>'.padEnd(4096));
    const headers = { authorization: `Bearer ${token}` };
    const refused = await request(actionOf('page', `&size=${page.length}`), { method: 'POST', body: page, headers });
    expect(refused.statusCode).toBe(400);
    expect(await refused.body.json()).toMatchObject({ kind: 'Status', reason: 'NotADiskImage' });
    const file = files.get('qcow2')!;
    const taken = await request(actionOf('page', `&size=${(await stat(file)).size}`), {
      method: 'POST',
      body: createReadStream(file),
      headers,
    });
    expect({ status: taken.statusCode, text: await taken.body.text() }).toEqual({ status: 200, text: '' });
  }, 300_000);

  it('verifies the checksum of the file', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('sum'));
    const file = await readFile(files.get('qcow2')!);
    const hex = createHash('sha256').update(file).digest('hex');
    const send = (body: Buffer) =>
      request(actionOf('sum', `&size=${body.length}&checksum=sha256:${hex}`), {
        method: 'POST',
        body,
        headers: { authorization: `Bearer ${token}` },
      });
    const broken = Buffer.from(file);
    broken[broken.length - 5] = (broken[broken.length - 5] ?? 0) ^ 255;
    const refused = await send(broken);
    expect(await refused.body.json()).toMatchObject({ code: 400, reason: 'ChecksumMismatch' });
    const taken = await send(file);
    expect([taken.statusCode, await taken.body.text()]).toEqual([200, '']);
    await untilImage('sum', 'Imported');
  }, 300_000);

  it.each([
    ['nobody', {}, 401],
    ['an unknown user', { authorization: 'Bearer a.b.c' }, 401],
  ])('rejects %s', async (_who, headers, status) => {
    const answer = await request(actionOf('raw-qcow2', '&size=1'), {
      method: 'POST',
      body: 'x',
      headers: { ...headers, origin: 'https://ui.example' },
    });
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    expect(await answer.body.json()).toMatchObject({ kind: 'Status', code: status });
  });

  it('rejects users who may not change the image', async () => {
    await kubectl(['create', 'serviceaccount', 'viewer', '-n', namespace]);
    const weak = (await kubectl(['create', 'token', 'viewer', '-n', namespace])).trim();
    const answer = await request(actionOf('raw-qcow2', '&size=1'), {
      method: 'POST',
      body: 'x',
      headers: { authorization: `Bearer ${weak}` },
    });
    expect(await answer.body.json()).toMatchObject({
      code: 403,
      message: expect.stringContaining('viewer may not upload'),
    });
  });
});

const tokenRequest = (pvcName: string): string =>
  JSON.stringify({
    apiVersion: 'upload.cdi.kubevirt.io/v1beta1',
    kind: 'UploadTokenRequest',
    metadata: { name: pvcName, namespace },
    spec: { pvcName },
  });

const uploadToken = (pvcName: string): Promise<string> =>
  kubectl(['create', '-f', '-', '-o', 'jsonpath={.status.token}'], tokenRequest(pvcName));

const post = async (
  path: string,
  body: Buffer | ReturnType<typeof createReadStream>,
  headers: Record<string, string>,
) => {
  const answer = await request(`${cluster.transferUrl}${path}`, {
    method: 'POST',
    body,
    headers,
    headersTimeout: 120_000,
  });
  return { status: answer.statusCode, text: await answer.body.text() };
};

/** Bytes that have arrived for a volume. */
const offsetOf = async (name: string): Promise<number> => {
  const url = `${cluster.transferUrl}/files/datavolumes/${namespace}/${name}`;
  const { body } = await request(url, { headers: { authorization: `Bearer ${token}` } });
  return ((await body.json()) as { upload?: { offset: number } }).upload?.offset ?? 0;
};

describe('requests of virtctl', () => {
  it('upload into a data volume: wait, token, HEAD, POST, poll the claim', async () => {
    await kubectl(['create', '-f', '-'], JSON.stringify(aDataVolume('virtctl')));
    await kubectl([
      'wait',
      'dv/virtctl',
      '-n',
      namespace,
      '--for=jsonpath={.status.phase}=UploadReady',
      '--timeout=150s',
    ]);
    const bearer = { authorization: `Bearer ${await uploadToken('virtctl')}` };
    const head = await request(`${cluster.transferUrl}/v1beta1/upload-async`, { method: 'HEAD', headers: bearer });
    expect(head.statusCode).toBe(200);
    const file = files.get('compressed.qcow2')!;
    const sent = await post('/v1beta1/upload-async', createReadStream(file), {
      ...bearer,
      'content-type': 'application/octet-stream',
      'content-length': String((await stat(file)).size),
    });
    expect(sent).toEqual({ status: 200, text: '' });
    const phase = async () =>
      (await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'virtctl' }))?.metadata.annotations?.[
        'cdi.kubevirt.io/storage.pod.phase'
      ];
    await expect.poll(phase, { timeout: 150_000 }).toBe('Succeeded');
    await untilVolume('virtctl', 'Succeeded');
    await expectDisk('virtctl');
    expect(await post('/v1beta1/upload', Buffer.from('x'), bearer)).toMatchObject({
      status: 503,
      text: 'rejecting Upload Request for PVC virtctl that already finished uploading',
    });
  }, 300_000);

  it.each(['/v1beta1/upload', '/v1alpha1/upload'])(
    'wait for the end of %s',
    async (path) => {
      const name = `sync-${path.replaceAll('/', '-').slice(1)}`;
      await cluster.kube.create(dataVolumeKind.type, aDataVolume(name));
      await untilVolume(name, 'UploadReady');
      const sent = await post(path, createReadStream(files.get('raw.gz')!), {
        authorization: `Bearer ${await uploadToken(name)}`,
      });
      expect(sent).toEqual({ status: 200, text: '' });
      await expectDisk(name);
    },
    300_000,
  );

  it.each(['/v1beta1/upload-form', '/v1alpha1/upload-form-async'])(
    'send a form to %s, whose part is named file',
    async (path) => {
      const name = `form-${path.replaceAll('/', '-').slice(1)}`;
      await cluster.kube.create(dataVolumeKind.type, aDataVolume(name));
      await untilVolume(name, 'UploadReady');
      const authorization = `Bearer ${await uploadToken(name)}`;
      const plain = await post(path, Buffer.from('x'), { authorization });
      expect(plain).toEqual({ status: 400, text: 'send the file as multipart/form-data' });
      const form = new FormData();
      form.append('note', 'no file');
      form.append('file', new Blob([await readFile(files.get('qcow2')!)]), 'disk.qcow2');
      const headers = { authorization };
      const sent = await fetch(`${cluster.transferUrl}${path}`, { method: 'POST', body: form, headers });
      expect([sent.status, await sent.text()]).toEqual([200, '']);
      await expectDisk(name);
    },
    300_000,
  );

  it('find the asynchronous paths by HEAD, and get an error while another client is sending', async () => {
    await cluster.kube.create(dataVolumeKind.type, aDataVolume('busy'));
    await untilVolume('busy', 'UploadReady');
    const headers = { authorization: `Bearer ${await uploadToken('busy')}` };
    const answers: [string, number][] = [];
    for (const path of ['upload', 'upload-async', 'upload-form', 'upload-form-async', 'upload-archive']) {
      const { statusCode } = await request(`${cluster.transferUrl}/v1beta1/${path}`, { method: 'HEAD', headers });
      answers.push([path, statusCode]);
    }
    expect(Object.fromEntries(answers)).toEqual({
      upload: 404,
      'upload-async': 200,
      'upload-form': 404,
      'upload-form-async': 200,
      'upload-archive': 404,
    });
    const bytes = await readFile(files.get('qcow2')!);
    const goOn = Promise.withResolvers<void>();
    const slow = Readable.from(
      (async function* slowly() {
        yield bytes.subarray(0, 2 ** 20);
        await goOn.promise;
        yield bytes.subarray(2 ** 20);
      })(),
      { objectMode: false },
    );
    const url = `${cluster.transferUrl}/v1beta1/upload`;
    const first = request(url, { method: 'POST', body: slow, headers, headersTimeout: 120_000 });
    const second = () => post('/v1beta1/upload', Buffer.from(bytes), headers);
    await expect.poll(() => offsetOf('busy'), { timeout: 150_000 }).toBeGreaterThan(0);
    expect(await second()).toEqual({
      status: 503,
      text: 'rejecting Upload Request for PVC busy: another upload is running',
    });
    goOn.resolve();
    const { statusCode, body } = await first;
    expect([statusCode, await body.text()]).toEqual([200, '']);
    await expectDisk('busy');
  }, 300_000);

  it('get an error at once when a volume is too small, which then accepts another file', async () => {
    await cluster.kube.create(dataVolumeKind.type, aDataVolume('small', '32Mi'));
    await untilVolume('small', 'UploadReady');
    const sent = await post('/v1beta1/upload', createReadStream(files.get('qcow2')!), {
      authorization: `Bearer ${await uploadToken('small')}`,
    });
    expect(sent).toMatchObject({
      status: 400,
      text: expect.stringMatching(new RegExp(`${linuxDiskBytes} bytes.*larger volume`)),
    });
    await untilVolume('small', 'UploadReady');
    const fitting = Buffer.alloc(8 * 2 ** 20);
    fitting.write('a disk that fits', 4096);
    const next = await post('/v1beta1/upload', fitting, { authorization: `Bearer ${await uploadToken('small')}` });
    expect(next).toEqual({ status: 200, text: '' });
    await untilVolume('small', 'Succeeded');
  }, 300_000);

  it('get an error when a disk turns out to be too large after decompression, and the volume accepts another file', async () => {
    await cluster.kube.create(dataVolumeKind.type, aDataVolume('packed', '16Mi'));
    await untilVolume('packed', 'UploadReady');
    // The size of its disk is known only after all of it was decompressed.
    const large = gzipSync(randomBytes(20 * 2 ** 20), { level: 1 });
    const headers = async () => ({ authorization: `Bearer ${await uploadToken('packed')}` });
    for (const path of ['/v1beta1/upload', '/v1beta1/upload-async']) {
      expect(await post(path, large, await headers())).toMatchObject({
        status: 400,
        text: expect.stringMatching(/at least \d+ bytes.*larger volume/),
      });
      const claim = await cluster.kube.get(persistentVolumeClaims, { namespace, name: 'packed' });
      expect(claim?.metadata.annotations).toMatchObject({
        'cdi.kubevirt.io/storage.pod.phase': 'Running',
        'cdi.kubevirt.io/storage.pod.ready': 'true',
      });
      await untilVolume('packed', 'UploadReady');
    }
    const next = await post('/v1beta1/upload', randomBytes(2 ** 20), await headers());
    expect(next).toEqual({ status: 200, text: '' });
    await untilVolume('packed', 'Succeeded');
  }, 300_000);

  it('get the result after the last byte, and so does the status', async () => {
    await cluster.kube.create(dataVolumeKind.type, aDataVolume('broken'));
    await untilVolume('broken', 'UploadReady');
    const file = await readFile(files.get('raw.gz')!);
    // Of the last member: length and checksum of the uncompressed data.
    file.fill(0x5a, file.length - 8);
    const sent = await post('/v1beta1/upload-async', file, { authorization: `Bearer ${await uploadToken('broken')}` });
    expect(sent).toEqual({ status: 500, text: expect.stringMatching(/^Saving stream failed: ./) });
    const said = sent.text.replace('Saving stream failed: ', '');
    const messages = async () => {
      const volume = await cluster.kube.get(dataVolumeKind.type, { namespace, name: 'broken' });
      return [volume?.status?.phase, ...(volume?.status?.conditions?.map(({ message }) => message) ?? [])];
    };
    await expect.poll(messages, { timeout: 60_000 }).toContainEqual(expect.stringContaining(`refused: ${said}`));
    expect(await messages()).toContain('UploadReady');
  }, 300_000);

  it.each<[string, () => Promise<Record<string, string>>, number, string]>([
    ['no token', () => Promise.resolve({}), 401, 'the request has no upload token'],
    [
      'a token of the cluster',
      () => Promise.resolve({ authorization: `Bearer ${token}` }),
      401,
      'this token is not for an upload',
    ],
    [
      'a modified token',
      async () => {
        const [head, payload] = (await uploadToken('nowhere')).split('.');
        return { authorization: `Bearer ${head}.${payload}.${Buffer.alloc(64).toString('base64url')}` };
      },
      401,
      'this token is not valid here, or has expired',
    ],
    [
      'a token of a CDI that is installed',
      () => {
        const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
        const token = `${part({ alg: 'PS256' })}.${part({ iss: 'cdi-apiserver', sub: 'x' })}.c2ln`;
        return Promise.resolve({ authorization: `Bearer ${token}` });
      },
      401,
      'this token was issued by the installed CDI, which receives the file itself: send it to its upload proxy (status.uploadProxyURL of its CDIConfig)',
    ],
    [
      'a claim that is not there',
      async () => ({ authorization: `Bearer ${await uploadToken('nowhere')}` }),
      503,
      "rejecting Upload Request for PVC nowhere that doesn't exist",
    ],
  ])('are rejected with %s', async (_what, headers, status, text) => {
    const refused = await post('/v1beta1/upload', Buffer.from('x'), await headers());
    expect(refused).toEqual({ status, text: expect.stringContaining(text) });
  });

  it('find the kind in discovery', async () => {
    expect(await kubectl(['api-resources', '--api-group=upload.cdi.kubevirt.io'])).toMatch(
      /uploadtokenrequests +utr,utrs +upload.cdi.kubevirt.io\/v1beta1 +true +UploadTokenRequest/,
    );
    expect(await kubectl(['explain', 'uploadtokenrequest.spec'])).toMatch(/pvcName/);
  });
});
