// Uploads and downloads behind a proxy, as with an ingress: its TLS, its path prefix, its limits, its short timeouts. Skipped without nginx.
import { execFile } from 'node:child_process';
import { readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '#cli/command.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { runBullion } from '#test/support/bullion.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise, writeDisk } from '#test/support/disk.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';
import { type Nginx, nginxPath, startNginx } from '#test/support/nginx.ts';
import { type TransferProcess, startTransferProcess } from '#test/support/transfer-process.ts';
import { imageUpload } from '#test/support/virtctl.ts';

const run = promisify(execFile);
const mib = 2 ** 20;
/** Timeout of the proxy between two reads or writes, in seconds. */
const timeLimit = 25;

describe.skipIf(nginxPath === undefined)('behind an ingress', { timeout: 300_000 }, () => {
  const dir = temporaryDirectory();
  const [raw, qcow2, vmdk] = [join(dir, 'disk.raw'), join(dir, 'disk.qcow2'), join(dir, 'disk.vmdk')];
  let cluster: ExchangeCluster;
  let fn: TransferProcess;
  let nginx: Nginx;
  beforeAll(async () => {
    writeDisk(raw, 48 * mib);
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'vmdk', raw, vmdk]);
    cluster = await startExchangeCluster();
    // The image has a second for its disk, and the response does not wait longer.
    fn = await startTransferProcess(cluster.kubeconfigPath, { ANSWER_SECONDS: '1', WORKER_SECONDS: '20' });
    nginx = await startNginx({
      upstream: fn.url,
      stripped: '/bullion',
      directives: `
      client_max_body_size 0;
      proxy_request_buffering off;
      proxy_read_timeout ${timeLimit}s;
      proxy_send_timeout ${timeLimit}s;`,
    });
  }, 120_000);
  afterAll(async () => {
    await nginx?.close();
    await fn?.kill('SIGTERM');
    await cluster?.close();
    if (nginx !== undefined) await rm(nginx.dir, { recursive: true, force: true });
  });

  const base = () => `${nginx.url}/bullion`;
  const bullion = (...args: readonly string[]) =>
    runBullion([...args, '--kubeconfig', cluster.kubeconfigPath], AbortSignal.timeout(250_000));
  const through = (): string[] => ['--transfer-url', base(), '--transfer-ca', nginx.ca];
  const curl = async (...args: readonly string[]) => {
    const { authorization } = cluster.editor;
    const { stdout } = await run('curl', [
      '-sS',
      '--cacert',
      nginx.ca,
      '-H',
      `Authorization: ${authorization}`,
      ...args,
    ]);
    return stdout;
  };

  it('the command line uploads and downloads, with a certificate of its own and below a prefix', async () => {
    const stranger = await bullion('upload', 'mine', qcow2, '--storage-class', 'local', '--transfer-url', base());
    expect([stranger.code, stranger.err]).toEqual([exitCodes.failed, expect.stringMatching(/certificate/i)]);
    const sent = await bullion('upload', 'mine', qcow2, '--storage-class', 'local', ...through());
    expect([sent.code, sent.err]).toEqual([exitCodes.done, expect.stringContaining('100% the image is ready to use')]);
    const back = join(dir, 'back.qcow2');
    const got = await bullion('download', 'mine', back, '--transfer-url', base(), '--transfer-insecure');
    expect(got.code).toBe(exitCodes.done);
    await run('qemu-img', ['compare', raw, back]);
  });

  it('virtctl uploads, with --insecure', async () => {
    await imageUpload({
      kube: cluster.kube,
      kubeconfigPath: cluster.kubeconfigPath,
      namespace,
      type: 'dv',
      name: 'virtctl',
      file: vmdk,
      proxyUrl: base(),
      size: '64Mi',
      storageClass: 'local',
      insecure: true,
    });
    await cluster.untilVolume('virtctl', 'Succeeded');
    const served = await readFile(join(nginx.dir, 'access.log'), 'utf8');
    expect(served).toMatch(
      /HEAD \/bullion\/v1beta1\/upload-async [^\n]* 200 [\s\S]*POST \/bullion\/v1beta1\/upload-async [^\n]* 200 /,
    );
  });

  it('addresses point to the proxy, below its prefix', async () => {
    const answer = await curl('-X', 'POST', `${base()}/downloads/virtualmachineimages/${namespace}/mine?seconds=60`);
    const { url } = JSON.parse(answer) as { url: string };
    expect(url.startsWith(`${base()}/downloads/virtualmachineimages/`)).toBe(true);
    const file = join(dir, 'linked.qcow2');
    await run('curl', ['-fsS', '--cacert', nginx.ca, '-o', file, url]);
    await run('qemu-img', ['compare', raw, file]);
  });

  it('a tus client is redirected below the prefix', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('tus'));
    const at = `/bullion/files/virtualmachineimages/${namespace}/tus`;
    const size = `virtualSize ${Buffer.from(String(48 * mib)).toString('base64')}`;
    const begin = [
      '-D',
      '-',
      '-o',
      '/dev/null',
      '-X',
      'POST',
      '-H',
      'Tus-Resumable: 1.0.0',
      '-H',
      'Upload-Length: 1000',
    ];
    const begun = await curl(...begin, '-H', `Upload-Metadata: ${size}`, `${nginx.url}${at}`);
    const [, location = ''] = /^location: (.*)$/im.exec(begun) ?? [];
    expect(location.startsWith(`${at}/`)).toBe(true);
    const head = ['-o', '/dev/null', '-w', '%{http_code}', '-I', '-H', 'Tus-Resumable: 1.0.0'];
    expect(await curl(...head, new URL(location.trim(), nginx.url).href)).toBe('200');
  });

  it('a client that has sent everything is answered in time, and the status reports the rest', async () => {
    await cluster.kube.create(harvesterImageKind.type, anUploadImage('slow'));
    const big = join(dir, 'big.vmdk');
    await writeFile(join(dir, 'big.raw'), noise('big', 64 * mib));
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'vmdk', join(dir, 'big.raw'), big]);
    const url = `${base()}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/slow?action=upload`;
    const code = await curl('-o', '/dev/null', '-w', '%{http_code}', '-T', big, '-X', 'POST', url);
    expect(['200', '202']).toContain(code);
    await cluster.untilImage('slow', 'Imported');
  });

  it('buffers no download on disk', async () => {
    await curl(
      '-o',
      join(dir, 'slow.qcow2'),
      '--limit-rate',
      '40M',
      `${base()}/downloads/virtualmachineimages/${namespace}/mine`,
    );
    expect(await readdir(join(nginx.dir, 'proxy'))).toEqual([]);
    expect(await readFile(join(nginx.dir, 'error.log'), 'utf8')).not.toMatch(/buffered to a temporary file/);
  });
});

describe.skipIf(nginxPath === undefined)('an ingress with default settings', { timeout: 300_000 }, () => {
  const dir = temporaryDirectory();
  const raw = join(dir, 'disk.raw');
  let cluster: ExchangeCluster;
  let fn: TransferProcess;
  let nginx: Nginx;
  beforeAll(async () => {
    writeDisk(raw, 16 * mib);
    cluster = await startExchangeCluster();
    fn = await startTransferProcess(cluster.kubeconfigPath, { PUBLIC_URL: 'https://images.example/up' });
    nginx = await startNginx({ upstream: fn.url, kept: '/up', directives: '' });
  }, 120_000);
  afterAll(async () => {
    await nginx?.close();
    await fn?.kill('SIGTERM');
    await cluster?.close();
    if (nginx !== undefined) await rm(nginx.dir, { recursive: true, force: true });
  });

  it('rejects what exceeds its limit, and the command line says what rejected it and what to do', async () => {
    const args = ['upload', 'mine', raw, '--storage-class', 'local', '--kubeconfig', cluster.kubeconfigPath];
    const way = ['--transfer-url', `${nginx.url}/up`, '--transfer-insecure'];
    const { code, err } = await runBullion([...args, ...way], AbortSignal.timeout(250_000));
    expect([code, err]).toEqual([exitCodes.failed, expect.stringMatching(/413.*proxy.*larger/is)]);
  });

  it('passes on a prefix that it does not strip', async () => {
    const { stdout } = await run('curl', ['-sSk', `${nginx.url}/up/keys`]);
    expect(JSON.parse(stdout)).toHaveProperty('keys');
  });
});
