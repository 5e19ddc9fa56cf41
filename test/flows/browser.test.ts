// A page of another origin, in a real browser: downloads an image and uploads it again. Skipped without Chromium.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';

const run = promisify(execFile);
const mib = 2 ** 20;
const browser = ['/usr/bin/chromium', '/usr/bin/chromium-browser'].find((path) => existsSync(path));

/** The script of the page; it reports its result to its own server. */
const script = async (image: string, second: string, authorization: string): Promise<void> => {
  const headers = { authorization };
  const told: Record<string, unknown> = {};
  try {
    const part = await fetch(`${image}/download`, { headers: { ...headers, range: 'bytes=0-3' } });
    told['part'] = [part.status, part.headers.get('content-range') !== null, await part.text()];
    const whole = await fetch(`${image}/download`, { headers });
    const file = await whole.blob();
    told['whole'] = [whole.status, Number(whole.headers.get('content-length')) === file.size];
    const form = new FormData();
    form.append('chunk', file, 'disk.qcow2');
    const sent = await fetch(`${second}?action=upload&size=${file.size}`, { method: 'POST', headers, body: form });
    told['sent'] = [sent.status, await sent.text()];
    const refused = await fetch(`${image}/download`);
    told['refused'] = [refused.status, ((await refused.json()) as { reason: string }).reason];
  } catch (error) {
    told['error'] = String(error);
  }
  await fetch('/told', { method: 'POST', body: JSON.stringify(told) });
};

describe.skipIf(browser === undefined)('a browser', { timeout: 240_000 }, () => {
  const dir = temporaryDirectory();
  const told = Promise.withResolvers<unknown>();
  let cluster: ExchangeCluster;
  let pages: Server;
  let child: ChildProcess | undefined;
  beforeAll(async () => {
    const raw = join(dir, 'disk.raw');
    await writeBootDisk(raw, { bytes: 16 * mib, dataBytes: mib });
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, join(dir, 'disk.qcow2')]);
    cluster = await startExchangeCluster();
    for (const name of ['first', 'second']) await cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
    const { authorization } = cluster.editor;
    await run('curl', [
      '-fsS',
      '-T',
      join(dir, 'disk.qcow2'),
      '-X',
      'POST',
      '-H',
      `Authorization: ${authorization}`,
      cluster.imageUrl('first', '?action=upload'),
    ]);
    await cluster.untilImage('first', 'Imported');
    const values = [cluster.imageUrl('first'), cluster.imageUrl('second'), authorization];
    const page = `<!doctype html><script>(${script.toString()})(...${JSON.stringify(values)})</script>`;
    pages = createServer((request, response) => {
      const parts: Buffer[] = [];
      request.on('data', (part: Buffer) => parts.push(part));
      request.on('end', () => {
        if (request.url === '/told') told.resolve(JSON.parse(Buffer.concat(parts).toString()));
        response.writeHead(200, { 'content-type': 'text/html' }).end(request.url === '/' ? page : '');
      });
    });
    await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  }, 240_000);
  afterAll(async () => {
    child?.kill('SIGKILL');
    pages?.close();
    await cluster?.close();
  });

  it('downloads an image and uploads it again, across origins', async () => {
    const { port } = pages.address() as AddressInfo;
    const flags = [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      `--user-data-dir=${dir}/b`,
    ];
    child = spawn(browser!, [...flags, '--remote-debugging-port=0', `http://localhost:${port}/`], { stdio: 'ignore' });
    expect(await told.promise).toEqual({
      part: [206, true, 'QFI\uFFFD'],
      whole: [200, true],
      sent: [200, ''],
      refused: [401, 'Unauthorized'],
    });
    await cluster.untilImage('second', 'Imported');
  });
});
