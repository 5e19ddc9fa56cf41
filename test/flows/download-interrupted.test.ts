// Downloads whose participants are each killed in the middle, at a random moment: the file is the requested one, byte for byte.
import { createReadStream } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { namespace } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { anUploadImage } from '#test/support/exchange.ts';
import { type Stage, endClient, participants, startStage } from '#test/support/interruptions.ts';
import { drawn, seed, shuffle } from '#test/support/random.ts';

const mib = 2 ** 20;
const perSecond = 8 * mib;
const dir = temporaryDirectory();
const raw = join(dir, 'disk.raw');
let disk = Buffer.alloc(0);
let stage: Stage;

beforeAll(async () => {
  await writeBootDisk(raw, { bytes: 48 * mib, dataBytes: 40 * mib });
  disk = await readFile(raw);
  stage = await startStage(perSecond, seed);
  const { cluster } = stage;
  await cluster.kube.create(harvesterImageKind.type, anUploadImage('linux'));
  const sent = await request(cluster.imageUrl('linux', `?action=upload&size=${disk.length}`), {
    method: 'POST',
    body: createReadStream(raw),
    headers: cluster.editor,
    headersTimeout: 120_000,
  });
  await sent.body.dump();
  await cluster.untilImage('linux', 'Imported');
}, 180_000);
afterAll(() => stage?.close());

/** Whether it is in progress: some bytes have arrived, and some have not. Otherwise it has ended by itself. */
const isUnderWay = async (over: Promise<unknown>): Promise<boolean> => {
  const waiting = new AbortController();
  const more = stage.untilMore('taken', mib * (2 + 5 * stage.random.next()), waiting.signal);
  const isSo = await Promise.race([more.then(() => true), over.then(() => false)]);
  waiting.abort();
  return isSo;
};

describe(`an interrupted download (seed ${seed})`, { timeout: 500_000 }, () => {
  it('by `bullion download` resumes where it was cut', async () => {
    const back = join(dir, 'back.raw');
    const start = () => stage.bullion('download', 'linux', back, '--format', 'raw');
    let client = start();
    let [downloads, givenUp] = [1, 0];
    /** The file is complete. */
    const expectWhole = async (): Promise<void> => {
      const { code, out, said } = await client.over;
      expect({ code, out, said }).toMatchObject({ code: 0, out: `${back}\n` });
      expect((await readFile(back)).equals(disk)).toBe(true);
    };
    for (const who of shuffle(participants, stage.random)) {
      while (!(await isUnderWay(client.over))) {
        // A client that noticed the outage of the cluster may have given up: it is restarted, as its message says. Or the file was complete before this
        // participant was killed: it is downloaded once more.
        const hasGivenUp = (await client.over).code === 1 && givenUp < participants.length;
        if (hasGivenUp) givenUp += 1;
        else {
          await expectWhole();
          await rm(back);
          downloads += 1;
        }
        client = start();
      }
      if (who !== 'client') await stage.kill(who);
      else {
        await endClient(client, stage.random);
        client = start();
      }
    }
    stage.line.limit(false);
    if ((await client.over).code === 1) client = start();
    await expectWhole();
    stage.line.limit(true);
    // Bytes that had arrived were not sent again: in addition to the file only what was in transit at each kill.
    expect(stage.line.taken()).toBeLessThan(downloads * disk.length + participants.length * 4 * mib);
  });

  it('by Range and If-Range resumes as well, in another format', async () => {
    const url = `${stage.line.url}/downloads/virtualmachineimages/${namespace}/linux?format=qcow2`;
    const whole = await request(url.replace(stage.line.url, stage.cluster.transferUrl), {
      headers: stage.cluster.editor,
      headersTimeout: 120_000,
    });
    const expected = Buffer.from(await whole.body.arrayBuffer());
    const etag = String(whole.headers['etag']);
    const parts: Buffer[] = [];
    let at = 0;
    const expectWhole = (): void => expect(Buffer.concat(parts).equals(expected)).toBe(true);
    /** Appends what arrives, until the end or an interruption. */
    const take = async (signal: AbortSignal): Promise<void> => {
      const headers = { ...stage.cluster.editor, range: `bytes=${at}-`, 'if-range': etag };
      const { statusCode, body } = await request(url, { headers, signal, headersTimeout: 120_000 });
      if (statusCode !== 206) {
        await body.dump();
        return;
      }
      for await (const chunk of body as AsyncIterable<Buffer>) {
        parts.push(chunk);
        at += chunk.length;
      }
    };
    // Which of them differs from run to run: `bullion download` above meets all. All with `BULLION_FUZZ=2`.
    const order = shuffle(drawn(participants, 1 / 2), stage.random);
    for (const deadline = Date.now() + 300_000; Date.now() < deadline; await sleep(200)) {
      // It may be complete before some participants were killed: then once more.
      if (at >= expected.length && order.length > 0) {
        expectWhole();
        at = parts.length = 0;
      }
      if (at >= expected.length) break;
      const who = order[0];
      const gone = new AbortController();
      const taking = take(gone.signal).catch(() => undefined);
      if (who !== undefined && (await isUnderWay(taking))) {
        order.shift();
        if (who === 'client') gone.abort();
        else await stage.kill(who);
      }
      await taking;
    }
    expect(order).toEqual([]);
    expectWhole();
  });
});
