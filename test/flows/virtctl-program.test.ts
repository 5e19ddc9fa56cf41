// KubeVirt's own `virtctl`, where `VIRTCTL` is the path of one: what its uploads fill is the disk that was sent. virtctl.test.ts has the same
// requests without the program, virtctl-create-vm.test.ts its machines.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type RequestListener, type Server, createServer, request as forward } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { type ExchangeCluster, startExchangeCluster } from '#test/support/exchange.ts';
import { makeCertificate } from '#test/support/nginx.ts';
import { virtctl } from '#test/support/virtctl.ts';

const run = promisify(execFile);
const mib = 2 ** 20;

if (virtctl === undefined) console.warn("skipped: set VIRTCTL to the path of KubeVirt's virtctl");

interface Ended {
  readonly code: number | null;
  readonly text: string;
}

describe.skipIf(virtctl === undefined)('virtctl', { timeout: 300_000 }, () => {
  const dir = temporaryDirectory();
  const at = (name: string): string => join(dir, name);
  const raw = at('disk.raw');
  let cluster: ExchangeCluster;
  beforeAll(async () => {
    writeDisk(raw, 64 * mib);
    await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, at('disk.qcow2')]);
    for (const [tool, file, packed] of [
      ['gzip', raw, 'disk.raw.gz'],
      ['xz', at('disk.qcow2'), 'disk.qcow2.xz'],
      ['zstd', raw, 'disk.raw.zst'],
    ] as const)
      await run('sh', ['-c', `${tool} -1 -c '${file}' > '${at(packed)}'`]);
    writeFileSync(at('notes.txt'), 'this is no disk\n'.repeat(10_000));
    writeFileSync(at('hello'), 'hello');
    await run('tar', ['-cf', at('files.tar'), '-C', dir, 'hello']);
    cluster = await startExchangeCluster({ tickSeconds: 1 });
  }, 300_000);
  afterAll(() => cluster?.close());

  const start = (args: readonly string[], env: object = {}): { child: ChildProcess; ended: Promise<Ended> } => {
    const child = spawn(virtctl ?? '', [...args, '--kubeconfig', cluster.kubeconfigPath, '-n', namespace], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const printed: string[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => printed.push(String(text)));
    const ended = once(child, 'close').then(([code]) => ({ code: code as number | null, text: printed.join('') }));
    return { child, ended };
  };
  const call = (...args: readonly string[]): Promise<Ended> => start(args).ended;
  const upload = (type: 'dv' | 'pvc', name: string, file: string, ...more: readonly string[]): Promise<Ended> =>
    call(
      'image-upload',
      type,
      name,
      `--image-path=${at(file)}`,
      ...(more.includes('--no-create') ? [] : ['--storage-class=local']),
      ...more,
    );

  const claimOf = (name: string) => cluster.kube.get(persistentVolumeClaims, { namespace, name });
  const fileOf = async (name: string, file: string): Promise<string> => {
    const folder = join(cluster.dataDir, 'storage', 'volumes', (await claimOf(name))?.spec.volumeName ?? 'none');
    return (await run('find', [folder, '-name', file])).stdout.trim();
  };
  /** A volume may be larger than its disk. */
  const expectDisk = async (name: string, file = 'block'): Promise<void> => {
    const disk = readFileSync(raw);
    expect(
      readFileSync(await fileOf(name, file))
        .subarray(0, disk.length)
        .equals(disk),
    ).toBe(true);
  };
  const makeVolume = (name: string, spec: DataVolume['spec']): Promise<unknown> =>
    cluster.kube.create(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace, name },
      spec,
    });
  const done = { code: 0, text: expect.stringContaining('completed successfully') as string };

  it.each([
    ['dv', 'disk.raw'],
    ['dv', 'disk.qcow2'],
    ['dv', 'disk.raw.gz'],
    ['pvc', 'disk.qcow2.xz'],
    ['pvc', 'disk.raw.zst'],
  ] as const)('fills a %s with %s', async (type, file) => {
    const name = `of-${file.replaceAll('.', '-')}`;
    expect(await upload(type, name, file, '--size=64Mi', '--volume-mode=block')).toEqual(done);
    await expectDisk(name);
    const again = await upload(type, name, file, '--size=64Mi');
    expect([again.code, again.text]).toEqual([1, expect.stringContaining('already successfully')]);
  });

  it.each(['dv', 'pvc'] as const)('fills a %s of a file system whose size is that of the disk', async (type) => {
    expect(await upload(type, `exact-${type}`, 'disk.qcow2', '--size=64Mi', '--volume-mode=filesystem')).toEqual(done);
    await expectDisk(`exact-${type}`, 'disk.img');
  });

  it.each(['dv', 'pvc'] as const)('fills a %s with the files of an archive', async (type) => {
    const name = `files-${type}`;
    const args = ['image-upload', type, name, `--archive-path=${at('files.tar')}`, '--size=64Mi'];
    expect(await call(...args, '--storage-class=local')).toEqual(done);
    expect(readFileSync(await fileOf(name, 'hello'), 'utf8')).toBe('hello');
  });

  it.each(['dv', 'pvc'] as const)('is told what is wrong with a file, and the %s takes the right one', async (type) => {
    const name = `wrong-${type}`;
    const wrong = await upload(type, name, 'notes.txt', '--size=64Mi', '--volume-mode=block');
    expect([wrong.code, wrong.text]).toEqual([1, expect.stringMatching(/400.*not a disk image/)]);
    expect(await upload(type, name, 'disk.raw', '--no-create')).toEqual(done);
    await expectDisk(name);
  });

  it.each(['dv', 'pvc'] as const)('is told that a %s is too small for the disk', async (type) => {
    const small = await upload(type, `small-${type}`, 'disk.qcow2', '--size=8Mi', '--volume-mode=block');
    expect([small.code, small.text]).toEqual([1, expect.stringMatching(/67108864 bytes/)]);
  });

  it('waits for no consumer with --force-bind, and says so without', async () => {
    const ofConsumer = (name: string, ...more: readonly string[]): Promise<Ended> =>
      call('image-upload', 'dv', name, `--image-path=${raw}`, '--size=64Mi', '--storage-class=local-wffc', ...more);
    const late = await ofConsumer('late');
    expect([late.code, late.text]).toEqual([1, expect.stringContaining('use force-bind flag')]);
    expect(await ofConsumer('forced', '--force-bind')).toEqual(done);
  });

  it('fills what is there with --no-create, and makes nothing', async () => {
    const storage = { resources: { requests: { storage: '64Mi' } }, storageClassName: 'local', volumeMode: 'Block' };
    await makeVolume('prepared', { source: { upload: {} }, storage } as DataVolume['spec']);
    await expect.poll(() => claimOf('prepared'), { timeout: 60_000 }).toBeDefined();
    expect(await upload('dv', 'prepared', 'disk.raw', '--no-create')).toEqual(done);
    await expectDisk('prepared');
    const missing = await upload('dv', 'missing', 'disk.raw', '--no-create');
    expect([missing.code, missing.text, await claimOf('missing')]).toEqual([
      1,
      expect.stringContaining('not found'),
      undefined,
    ]);
  });

  it('leaves instance type and preference for whoever uses the volume by its DataSource', async () => {
    const flags = ['--datasource', '--default-instancetype=u1.medium', '--default-preference=fedora'];
    expect(await upload('dv', 'typed', 'disk.raw', '--size=64Mi', '--volume-mode=block', ...flags)).toEqual(done);
    const labels = {
      'instancetype.kubevirt.io/default-instancetype': 'u1.medium',
      'instancetype.kubevirt.io/default-preference': 'fedora',
    };
    expect((await claimOf('typed'))?.metadata.labels).toMatchObject(labels);
    const source = () => cluster.kube.get(dataSourceKind.type, { namespace, name: 'typed' });
    await expect
      .poll(async () => (await source())?.status?.conditions?.find(({ type }) => type === 'Ready')?.status, {
        timeout: 60_000,
      })
      .toBe('True');
    expect((await source())?.metadata.labels).toMatchObject(labels);
  });

  /** Passes everything on, and calls `sent` with the bytes of a body as they go by. */
  const startCounting = async (
    sent: (bytes: number) => void,
    tls?: object,
  ): Promise<{ server: Server; url: string }> => {
    const to = new URL(cluster.transferUrl);
    const passOn: RequestListener = (incoming, answer) => {
      const { method, headers, url: path } = incoming;
      const onward = forward({ host: to.hostname, port: to.port, method, headers, path }, (response) => {
        answer.writeHead(response.statusCode ?? 500, response.headers);
        response.pipe(answer);
      });
      let bytes = 0;
      incoming.on('data', (chunk: Buffer) => sent((bytes += chunk.length)));
      incoming.on('error', () => onward.destroy()).on('aborted', () => onward.destroy());
      onward.on('error', () => answer.destroy());
      incoming.pipe(onward);
    };
    const server = tls === undefined ? createServer(passOn) : createSecureServer(tls, passOn);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    return { server, url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}` };
  };

  it.each([0, 50, 99])('ended by Ctrl-C at %d percent, fills the same target the next time', async (percent) => {
    const name = `ended-${percent}`;
    const limit = (64 * mib * percent) / 100;
    let child: ChildProcess | undefined;
    const { server, url } = await startCounting((bytes) => bytes >= limit && child?.kill('SIGINT'));
    const args = ['image-upload', 'dv', name, `--image-path=${raw}`, '--size=64Mi', '--volume-mode=block'];
    const first = start([...args, '--storage-class=local', `--uploadproxy-url=${url}`]);
    child = first.child;
    expect((await first.ended).code).not.toBe(0);
    server.close();
    // What was on its way may have been all of it: then the disk is made meanwhile, and whoever sends it again is told so.
    const again = await call(...args, '--storage-class=local');
    expect(again.text).toMatch(/completed successfully|already (finished uploading|successfully imported)/);
    await cluster.untilVolume(name, 'Succeeded');
    await expectDisk(name);
  });

  it('trusts an authority of its own, and nobody without it', async () => {
    const { key, cert } = await makeCertificate(dir);
    const { server, url } = await startCounting(() => {}, { key: readFileSync(key), cert: readFileSync(cert) });
    const args = ['image-upload', 'dv', 'secure', `--image-path=${raw}`, '--size=64Mi', '--volume-mode=block'];
    const secure = [...args, '--storage-class=local', `--uploadproxy-url=${url}`];
    try {
      const stranger = await start(secure).ended;
      expect([stranger.code, stranger.text]).toEqual([1, expect.stringContaining('certificate')]);
      expect(await start(secure, { SSL_CERT_FILE: cert }).ended).toEqual(done);
      await expectDisk('secure');
    } finally {
      server.close();
    }
  });
});
