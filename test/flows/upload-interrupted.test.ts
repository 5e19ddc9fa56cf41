// Uploads whose participants are each killed in the middle, at a random moment: the disk is that of the file, with each of the three protocols.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { request } from 'undici';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { namespace, run } from '#test/support/cluster.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { anUploadImage, anUploadVolume } from '#test/support/exchange.ts';
import { type Participant, type Stage, endClient, participants, startStage } from '#test/support/interruptions.ts';
import { drawn, seed, shuffle } from '#test/support/random.ts';

const mib = 2 ** 20;
const perSecond = 4 * mib;
const diskBytes = 48 * mib;
const dir = temporaryDirectory();
const [raw, file] = [join(dir, 'disk.raw'), join(dir, 'disk.qcow2')];
let size = 0;
let stage: Stage;

beforeAll(async () => {
  await writeBootDisk(raw, { bytes: diskBytes, dataBytes: 40 * mib });
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, file]);
  ({ size } = await stat(file));
  stage = await startStage(perSecond, seed);
}, 120_000);
afterAll(() => stage?.close());

interface Prepared {
  readonly path: string;
  readonly authorization: string;
  readonly place: string;
  readonly untilThere: () => Promise<unknown>;
}

/** What is downloaded again, byte for byte; a volume may be larger than the disk in it. */
const expectDisk = async (place: string): Promise<void> => {
  const url = `${stage.cluster.transferUrl}/downloads/${place}?format=raw`;
  const { statusCode, body } = await request(url, { headers: stage.cluster.editor, headersTimeout: 120_000 });
  const got = Buffer.from(await body.arrayBuffer());
  const disk = await readFile(raw);
  const isSame = got.subarray(0, disk.length).equals(disk) && got.subarray(disk.length).every((byte) => byte === 0);
  expect([statusCode, isSame]).toEqual([200, true]);
};

/** The offset of a resumable upload after all participants were killed. */
const standingOf = async (name: string): Promise<number> => {
  const url = `${stage.cluster.transferUrl}/files/virtualmachineimages/${namespace}/${name}`;
  const { body, statusCode } = await request(url, { headers: stage.cluster.editor });
  const { stage: at, upload } = (await body.json()) as { stage?: string; upload?: { offset: number } };
  if (statusCode !== 200) return 0;
  return at === 'done' ? size : (upload?.offset ?? 0);
};

describe(`interrupted uploads (seed ${seed})`, { timeout: 500_000 }, () => {
  it('by `bullion upload`, resumed: what had arrived is not sent again', async () => {
    const start = () => stage.bullion('upload', 'resumed', file, '--storage-class', 'local');
    let client = start();
    let now = 0;
    /** Of what was there after a kill, the next ones keep all but the last seconds. */
    let kept = mib;
    /** The reason why no more was sent, if any. */
    const untilMore = (bytes: number): Promise<string | undefined> => {
      const more = stage.untilMore('sent', bytes).then(
        () => undefined,
        (error) => `${String(error)}: ${client.said()}`,
      );
      return Promise.race([more, client.over.then(({ code, said }) => `ended with ${code}: ${said}`)]);
    };
    for (const who of shuffle(participants, stage.random)) {
      // More than what may not be flushed to disk yet, so that something of it is kept.
      const bytes = perSecond * (1.1 + 0.4 * stage.random.next());
      const hindrance = await untilMore(bytes);
      // The upload completed before its turn: no other participant is killed.
      if (hindrance?.startsWith('ended with 0:') === true) break;
      // A client that noticed the outage of the cluster may have given up: it is restarted, as its message says.
      if (hindrance?.startsWith('ended with 1:') === true) client = start();
      expect(hindrance?.startsWith('ended with 1:') === true ? await untilMore(bytes) : hindrance).toBeUndefined();
      if (who === 'client') await endClient(client, stage.random);
      else await stage.kill(who);
      if (who === 'client') client = start();
      const standing = async (): Promise<number> => (now = await standingOf('resumed').catch(() => 0));
      await expect.poll(standing, { timeout: 150_000 }).toBeGreaterThanOrEqual(kept);
      kept = Math.max(kept, now - 2 * perSecond);
    }
    stage.line.limit(false);
    const { code, said } = await client.over;
    stage.line.limit(true);
    expect({ code, said }).toEqual({ code: 0, said: expect.stringMatching(/resumed: 100% the image is ready to use/) });
    // For each kill the bytes of a second or two, and those in transit.
    expect(stage.line.sent()).toBeLessThan(size + participants.length * 2 * perSecond);
    const { status, metadata } = await stage.cluster.untilImage('resumed', 'Imported');
    const hex = createHash('sha256')
      .update(await readFile(file))
      .digest('hex');
    expect(status?.digests?.['sha256']).toBe(hex);
    await expectDisk(`virtualmachineimages/${namespace}/resumed`);
    const left = async (): Promise<readonly string[]> =>
      (await stage.cluster.kube.list(persistentVolumeClaims, { namespace })).items.map((claim) => claim.metadata.name);
    await expect.poll(left).toEqual([`vmi-${metadata.uid}`]);
  });

  const kind = { apiVersion: 'upload.cdi.kubevirt.io/v1beta1', kind: 'UploadTokenRequest' };
  const uploadToken = async (name: string): Promise<string> => {
    const path = join(dir, `${name}.json`);
    await writeFile(path, JSON.stringify({ ...kind, metadata: { name }, spec: { pvcName: name } }));
    return `Bearer ${await stage.cluster.kubectl('create', '-f', path, '-o', 'jsonpath={.status.token}')}`;
  };

  it.each<[what: string, name: string, prepare: (name: string) => Promise<Prepared>]>([
    [
      "by Harvester's action",
      'action',
      async (name) => {
        await stage.cluster.kube.create(harvesterImageKind.type, anUploadImage(name));
        const path = `/v1/harvester/harvesterhci.io.virtualmachineimages/${namespace}/${name}?action=upload&size=${size}`;
        const untilThere = () => stage.cluster.untilImage(name, 'Imported');
        return { path, ...stage.cluster.editor, place: `virtualmachineimages/${namespace}/${name}`, untilThere };
      },
    ],
    [
      "by CDI's upload proxy",
      'proxy',
      async (name) => {
        await stage.cluster.kube.create(dataVolumeKind.type, anUploadVolume(name));
        await stage.cluster.untilVolume(name, 'UploadReady');
        const authorization = await uploadToken(name);
        const untilThere = () => stage.cluster.untilVolume(name, 'Succeeded');
        return { path: '/v1beta1/upload', authorization, place: `datavolumes/${namespace}/${name}`, untilThere };
      },
    ],
  ])('%s, whose clients get an error and start over', async (_what, name, prepare) => {
    const { path, authorization, place, untilThere } = await prepare(name);
    const send = async (server: string, signal?: AbortSignal): Promise<number> => {
      const { statusCode, body } = await request(`${server}${path}`, {
        method: 'POST',
        body: createReadStream(file),
        headers: { authorization },
        headersTimeout: 120_000,
        ...(signal === undefined ? {} : { signal }),
      });
      await body.dump();
      return statusCode;
    };
    /** An upload in progress: while the previous connection is still known, it is rejected, and retried. */
    const begin = async (bytes: number, signal: AbortSignal): Promise<{ readonly status: Promise<number> }> => {
      for (;;) {
        const over = new AbortController();
        // What a worker writes while it starts is less.
        const written = stage.untilWritten(mib, over.signal);
        const status = send(stage.line.url, signal).catch(() => 0);
        const isUnderWay = await Promise.race([
          Promise.all([stage.untilMore('sent', bytes, over.signal), written]).then(() => true),
          status.then(() => false),
        ]);
        over.abort();
        if (isUnderWay) return { status };
        await sleep(200);
      }
    };
    /** The result for the client after each kill: no response, or one that allows a retry. */
    const left: Record<Participant, readonly number[]> = {
      client: [0],
      function: [0],
      job: [503],
      cluster: [503],
    };
    const interrupt = async (who: Participant): Promise<number> => {
      const gone = new AbortController();
      const { status } = await begin(mib * (1 + 4 * stage.random.next()), gone.signal);
      if (who === 'client') gone.abort();
      else await stage.kill(who);
      return status;
    };
    // Which of them differs from run to run: `bullion upload` above meets all. All with `BULLION_FUZZ=2`.
    for (const who of shuffle(drawn(participants, 1 / 2), stage.random)) {
      let status = await interrupt(who);
      // What the worker wrote was still of the upload before, and this one was rejected: it had not begun.
      while (status === 409) status = await interrupt(who);
      expect({ who, status }).toEqual({ who, status: expect.toBeOneOf([...left[who]]) });
    }
    const again = () => send(stage.cluster.transferUrl).catch(() => 0);
    await expect.poll(again, { timeout: 200_000, interval: 500 }).toBe(200);
    await untilThere();
    await expectDisk(place);
  });
});

it('an unfinished file expires', async () => {
  const { cluster } = stage;
  const { uid } = (await cluster.kube.create(harvesterImageKind.type, anUploadImage('left'))).metadata;
  const left = async () =>
    (await cluster.kube.list(persistentVolumeClaims, { namespace })).items.filter(
      ({ metadata }) => metadata.name === `spool-${uid}`,
    );
  const begun = await fetch(`${cluster.transferUrl}/files/virtualmachineimages/${namespace}/left`, {
    method: 'POST',
    headers: {
      ...cluster.editor,
      'tus-resumable': '1.0.0',
      'upload-length': String(size),
      'upload-metadata': `virtualSize ${Buffer.from(String(diskBytes)).toString('base64')}`,
    },
  });
  expect(begun.status).toBe(201);
  expect(await left()).toHaveLength(1);
  await cluster.kube.delete(harvesterImageKind.type, { namespace, name: 'left' });
  await expect.poll(left, { timeout: 150_000 }).toEqual([]);
}, 300_000);
