// Faults that users have reported in public about uploads and downloads, each reproduced on the local cluster. The reference in a case's title is
// the report.
import { execFile } from 'node:child_process';
import { createReadStream, openAsBlob } from 'node:fs';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { leftOvers, namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { type ExchangeCluster, anUploadImage, startExchangeCluster } from '#test/support/exchange.ts';
import { type TransferProcess, startTransferProcess } from '#test/support/transfer-process.ts';

const run = promisify(execFile);
const mib = 2 ** 20;
const timeLimit = { timeout: 60_000, interval: 100 };

describe('cases that users have reported about uploads and downloads', { timeout: 120_000 }, () => {
  const dir = temporaryDirectory();
  const [raw, qcow2] = [join(dir, 'disk.raw'), join(dir, 'disk.qcow2')];
  let cluster: ExchangeCluster;
  let fn: TransferProcess;
  beforeAll(async () => {
    writeDisk(raw, 16 * mib);
    await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, qcow2]);
    cluster = await startExchangeCluster({ tickSeconds: 2 });
    // A proxy for the web that answers nobody: addresses in the cluster are reached without it.
    const proxy = 'http://127.0.0.1:1';
    fn = await startTransferProcess(cluster.kubeconfigPath, { HTTP_PROXY: proxy, HTTPS_PROXY: proxy });
  }, 120_000);
  afterAll(async () => {
    await fn?.kill('SIGTERM');
    await cluster?.close();
  });

  const urlOf = (name: string, rest: string): string =>
    `${fn.url}/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${name}${rest}`;
  const make = (name: string) => cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
  const remove = (name: string) => cluster.kube.delete(harvesterImageKind.type, { namespace, name });
  const isThere = async (name: string): Promise<boolean> =>
    (await cluster.kube.get(harvesterImageKind.type, { namespace, name })) !== undefined;
  const send = async (name: string, path: string): Promise<readonly [status: number, text: string]> => {
    const { size } = await stat(path);
    const answer = await request(urlOf(name, `?action=upload&size=${size}`), {
      method: 'POST',
      headers: cluster.editor,
      body: createReadStream(path),
    });
    return [answer.statusCode, await answer.body.text()];
  };
  const expectDisk = async (name: string): Promise<void> => {
    const answer = await request(urlOf(name, '/download?format=raw'), { headers: cluster.editor });
    expect(answer.statusCode).toBe(200);
    expect(Buffer.from(await answer.body.arrayBuffer()).equals(await readFile(raw))).toBe(true);
  };

  it('with a proxy for the web in its environment, uploads and downloads reach the pods in the cluster (harvester#2436, #10195)', async () => {
    await make('inside');
    expect(await send('inside', qcow2)).toEqual([200, '']);
    await cluster.untilImage('inside', 'Imported');
    await expectDisk('inside');
  });

  it('a raw file is accepted in a form, whatever the name of its part, also after one that failed with a reason (harvester#8636, #9843)', async () => {
    const sendForm = async (name: string, part: string, file: Blob): Promise<readonly [number, string]> => {
      const form = new FormData();
      form.append(part, file, 'disk.raw');
      const url = urlOf(name, `?action=upload&size=${file.size}`);
      const answer = await fetch(url, { method: 'POST', headers: cluster.editor, body: form });
      return [answer.status, await answer.text()];
    };
    await make('page');
    const page = new Blob([`<html>${' '.repeat(4096)}</html>`]);
    expect(await sendForm('page', 'chunk', page)).toEqual([400, expect.stringMatching(/HTML/i)]);
    for (const part of ['chunk', 'file']) {
      await make(part);
      expect(await sendForm(part, part, await openAsBlob(raw))).toEqual([200, '']);
      await cluster.untilImage(part, 'Imported');
      await expectDisk(part);
    }
  });

  it('an image is created again under its name while the old one is still being deleted (harvester#4293)', async () => {
    await make('again');
    expect(await send('again', qcow2)).toEqual([200, '']);
    await remove('again');
    await expect
      .poll(
        () =>
          make('again').then(
            () => true,
            () => false,
          ),
        timeLimit,
      )
      .toBe(true);
    expect(await send('again', qcow2)).toEqual([200, '']);
    await cluster.untilImage('again', 'Imported');
    await expectDisk('again');
  });

  it('an image whose object is changed all the time accepts its file (harvester#9620)', async () => {
    await make('busy');
    let isOver = false;
    const changing = (async () => {
      for (let count = 0; !isOver; count++) {
        const change = { metadata: { annotations: { 'example.com/count': String(count) } } };
        await cluster.kube.mergePatch(harvesterImageKind.type, { namespace, name: 'busy' }, change);
        // About thirty times a second: without a delay a client in the process of the server would starve all others.
        await sleep(30);
      }
    })();
    const sent = await send('busy', qcow2);
    isOver = true;
    await changing;
    expect(sent).toEqual([200, '']);
    const { status } = await cluster.untilImage('busy', 'Imported');
    expect(status?.virtualSize).toBe(16 * mib);
  });

  it('what is downloaded can be uploaded again, with the name and type it was given (harvester#5044)', async () => {
    const answer = await request(urlOf('inside', '/download'), { headers: cluster.editor });
    expect(answer.headers).toMatchObject({
      'content-type': 'application/x-qemu-disk',
      'content-disposition': expect.stringMatching(/filename="inside\.qcow2"/),
    });
    await make('round');
    const body = Buffer.from(await answer.body.arrayBuffer());
    const url = urlOf('round', `?action=upload&size=${body.length}`);
    const sent = await request(url, { method: 'POST', headers: cluster.editor, body });
    expect([sent.statusCode, await sent.body.text()]).toEqual([200, '']);
    await cluster.untilImage('round', 'Imported');
    await expectDisk('round');
  });

  it('an image that is deleted during its upload leaves nothing behind (harvester#1947)', async () => {
    for (const name of ['inside', 'page', 'chunk', 'file', 'again', 'busy', 'round']) await remove(name);
    await make('gone');
    const { authorization } = cluster.editor;
    const told = ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-H', `Authorization: ${authorization}`];
    const url = urlOf('gone', `?action=upload&size=${16 * mib}`);
    const slow = run('curl', [...told, '--limit-rate', '100K', '-T', raw, '-X', 'POST', url]).then(
      ({ stdout }) => stdout,
      () => 'cut',
    );
    const phase = async () =>
      (await cluster.kube.get(harvesterImageKind.type, { namespace, name: 'gone' }))?.status?.phase;
    await expect.poll(phase, timeLimit).toBe('Downloading');
    await remove('gone');
    expect(await slow).not.toBe('200');
    await expect.poll(() => isThere('gone'), timeLimit).toBe(false);
    expect(await leftOvers(cluster.kube, cluster.dataDir, 30)).toEqual([]);
  });
});
