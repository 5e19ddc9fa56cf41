import { generateKeyPairSync } from 'node:crypto';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { request } from 'undici';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { publicHalfOf, signToken, toKeySet, toSigningKey } from '#shared/runtime/token.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { type Reception, openReception } from '#shared/transfer/upload/reception.ts';
import { openSpool } from '#shared/transfer/upload/spool.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, noise } from '#test/support/disk.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;
const key = toSigningKey(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
const tokenFor = (target: string, verb: 'work' | 'upload' = 'work'): string => {
  const iat = Math.floor(Date.now() / 1000);
  return signToken(key, { sub: 'test', verb, target, iat, exp: iat + 60 });
};

const keyServer = createServer((_request, response) => {
  response.end(JSON.stringify(toKeySet([publicHalfOf(key)])));
});
let keysUrl = '';
beforeAll(async () => {
  await new Promise<void>((resolve) => keyServer.listen(0, '127.0.0.1', resolve));
  keysUrl = `http://127.0.0.1:${(keyServer.address() as AddressInfo).port}/keys`;
});
afterAll(() => void keyServer.close());

interface Worker {
  readonly target: string;
  readonly report: Promise<TransferReport>;
  /** Ends like a pod that is terminated. */
  readonly kill: () => Promise<void>;
}

const workers: Worker[] = [];
afterEach(async () => {
  await Promise.all(workers.splice(0).map((worker) => worker.kill()));
});

const startWorker = async (
  directory: string,
  more: { capacityBytes?: number; idleSeconds?: number; pauseSeconds?: number } = {},
) => {
  const target = join(directory, 'disk.img');
  const source = {
    type: 'upload' as const,
    port: 0,
    keysUrl,
    subject: 'uid-1',
    idleSeconds: more.idleSeconds ?? 60,
    pauseSeconds: more.pauseSeconds ?? 60,
  };
  const spec = TransferSpec.parse({
    mode: 'import',
    source,
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: more.capacityBytes ?? 64 * mib },
    scratchDir: join(directory, 'scratch'),
    limits: { retries: 3 },
  });
  let port = 0;
  const log = (_message: string, facts: Readonly<Record<string, unknown>>): void => {
    if (typeof facts['port'] === 'number') port = facts['port'];
  };
  const reception: Reception = await openReception({ source, scratchDir: spec.scratchDir, host: '127.0.0.1', log });
  const cancel = new AbortController();
  const report = runTransfer(spec, {
    run: 'import-uid-1-a',
    signal: cancel.signal,
    send: () => Promise.resolve(),
    log,
    reception,
  });
  const over = report.then((ended) => reception.finish(ended));
  const worker: Worker = {
    target,
    report,
    kill: async () => {
      cancel.abort();
      await over;
    },
  };
  workers.push(worker);
  return { ...worker, url: `http://127.0.0.1:${port}/upload` };
};

const newDirectory = (): string => mkdtempSync(join(root, 'upload-'));

interface Part {
  readonly offset?: number;
  readonly begin?: object;
  readonly more?: boolean;
  readonly waits?: boolean;
  readonly takesOver?: boolean;
  readonly token?: string;
}

const send = async (url: string, body: Buffer | Readable, part: Part = {}) => {
  const {
    statusCode,
    headers,
    body: answer,
  } = await request(url, {
    method: 'PATCH',
    body,
    headersTimeout: 60_000,
    headers: {
      authorization: `Bearer ${part.token ?? tokenFor('uid-1')}`,
      'upload-offset': String(part.offset ?? 0),
      ...(part.begin === undefined
        ? {}
        : { 'upload-begin': Buffer.from(JSON.stringify({ id: 'a', ...part.begin })).toString('base64url') }),
      ...(part.more === true ? { 'upload-incomplete': '?1' } : {}),
      ...(part.takesOver === true ? { 'upload-takeover': '?1' } : {}),
      ...(part.waits === true ? { prefer: 'wait=100' } : {}),
    },
  });
  const text = await answer.text();
  const said = text === '' ? {} : (JSON.parse(text) as { reason?: string; message?: string });
  return { status: statusCode, offset: Number(headers['upload-offset']), ...said };
};

const offsetOf = async (url: string): Promise<number> => {
  const { headers } = await request(url, { method: 'HEAD', headers: { authorization: `Bearer ${tokenFor('uid-1')}` } });
  return Number(headers['upload-offset']);
};

const disk = Buffer.concat([noise('a', 5 * mib), Buffer.alloc(7 * mib), noise('b', 2 * mib), Buffer.alloc(2 * mib)]);
const published = {
  raw: () => disk,
  'raw.gz': () => gzipSync(disk),
  qcow2: () => {
    const directory = newDirectory();
    writeFileSync(join(directory, 'disk.raw'), disk);
    return convertDisk(join(directory, 'disk.raw'), 'qcow2', join(directory, 'disk.qcow2'));
  },
} as const;

describe('an upload', () => {
  it.each(Object.keys(published) as (keyof typeof published)[])('of %s becomes the disk', async (format) => {
    const worker = await startWorker(newDirectory());
    const file = published[format]();
    const answer = await send(worker.url, file, { begin: { length: file.length }, waits: true });
    expect(answer).toMatchObject({ status: 200, outcome: 'succeeded' });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('may be sent without a length, in parts', async () => {
    const worker = await startWorker(newDirectory());
    const first = await send(worker.url, disk.subarray(0, 3 * mib), { begin: {}, more: true });
    expect(first).toMatchObject({ status: 204, offset: 3 * mib });
    await send(worker.url, disk.subarray(3 * mib), { offset: 3 * mib });
    expect(await worker.report).toMatchObject({ outcome: 'succeeded' });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('resumes at its position after the worker was killed, wherever it was cut', async () => {
    const file = published.qcow2();
    const cuts = fc.uniqueArray(fc.integer({ min: 1, max: file.length - 1 }), { minLength: 1, maxLength: 3 });
    const check = async (unsorted: readonly number[]): Promise<void> => {
      const directory = newDirectory();
      const places = unsorted.toSorted((a, b) => a - b);
      const first = await startWorker(directory);
      await send(first.url, file.subarray(0, places[0]), { begin: { length: file.length }, more: true });
      await first.kill();
      for (const place of places.slice(1)) {
        const next = await startWorker(directory);
        const offset = await offsetOf(next.url);
        await send(next.url, file.subarray(offset, place), { offset, more: true });
        await next.kill();
      }
      const last = await startWorker(directory);
      const offset = await offsetOf(last.url);
      expect(offset).toBe(places.at(-1));
      await send(last.url, file.subarray(offset), { offset, waits: true });
      expect(readFileSync(last.target).equals(disk)).toBe(true);
    };
    await fc.assert(fc.asyncProperty(cuts, check), { numRuns: 5 });
  }, 240_000);

  it('is converted by the next worker when the last one was killed after receiving all of it', async () => {
    const directory = newDirectory();
    const spool = await openSpool(join(directory, 'scratch', 'upload'));
    await spool.begin({ id: 'a', length: disk.length });
    await spool.append(disk);
    await spool.complete();
    await spool.close();
    const worker = await startWorker(directory);
    expect(await worker.report).toMatchObject({ outcome: 'succeeded' });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('starts over, also while the disk is being written', async () => {
    const worker = await startWorker(newDirectory());
    const other = noise('other', 10 * mib);
    await send(worker.url, other.subarray(0, 10 * mib), { begin: { length: disk.length }, more: true });
    await sleep(300);
    const answer = await send(worker.url, disk, { begin: { length: disk.length }, waits: true });
    expect(answer).toMatchObject({ status: 200, outcome: 'succeeded' });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('of a file that is too large is rejected by its header, before the rest is read', async () => {
    const worker = await startWorker(newDirectory(), { capacityBytes: 4 * mib });
    const file = published.qcow2();
    let given = 0;
    const body = Readable.from(
      (async function* slowly() {
        yield file.subarray(0, mib);
        for (given = mib; given < file.length; given += 65_536) {
          await sleep(50);
          yield file.subarray(given, given + 65_536);
        }
      })(),
    );
    const answer = await send(worker.url, body, { begin: { length: file.length } });
    expect(answer).toMatchObject({ status: 422, reason: 'ImageTooLarge', message: expect.stringContaining('4194304') });
    expect(given).toBeLessThan(file.length);
  });

  it('does not fail when its Job is terminated in the middle', async () => {
    const directory = newDirectory();
    const first = await startWorker(directory);
    const rest = new Readable({ read: () => undefined });
    rest.push(disk.subarray(0, mib));
    const cut = send(first.url, rest, { begin: { length: disk.length } });
    await expect.poll(() => offsetOf(first.url)).toBe(mib);
    const killed = first.kill();
    expect(await cut).toMatchObject({ status: 503, reason: 'Cancelled', offset: mib });
    rest.destroy();
    await killed;
    const second = await startWorker(directory);
    expect(await send(second.url, disk.subarray(mib), { offset: mib, waits: true })).toMatchObject({ status: 200 });
    expect(readFileSync(second.target).equals(disk)).toBe(true);
  });

  it('that is rejected between two parts returns the error for the next part', async () => {
    let port = 0;
    const reception = await openReception({
      source: { type: 'upload', port: 0, keysUrl, subject: 'uid-1', idleSeconds: 60, pauseSeconds: 60 },
      scratchDir: newDirectory(),
      host: '127.0.0.1',
      log: (_message, facts) => {
        port = Number(facts['port'] ?? port);
      },
    });
    const url = `http://127.0.0.1:${port}/upload`;
    const piece = Buffer.alloc(65_536, 1);
    expect(await send(url, piece, { begin: { length: mib }, more: true })).toMatchObject({ status: 204 });
    const failure = { reason: 'ImageTooLarge', message: 'a larger volume is needed' } as const;
    const over = reception.finish({ outcome: 'failed', ...failure, retryable: false, receivedBytes: piece.length });
    expect(await send(url, piece, { offset: piece.length, more: true })).toMatchObject({ status: 422, ...failure });
    await over;
  });

  // The disk of a qcow2 file is written whole before its last byte was vouched for.
  it.each(['raw', 'qcow2'] as const)('of %s with another checksum than announced may be sent again', async (form) => {
    const worker = await startWorker(newDirectory());
    const file = published[form]();
    const hex = createHash('sha256').update(file).digest('hex');
    const begin = { length: file.length, checksum: { algorithm: 'sha256', hex } };
    const wrong = Buffer.from(file);
    wrong[wrong.length - 5] = (wrong[wrong.length - 5] ?? 0) ^ 1;
    expect(await send(worker.url, wrong, { begin })).toMatchObject({ status: 422, reason: 'ChecksumMismatch' });
    expect(await offsetOf(worker.url)).toBe(0);
    await sleep(300);
    expect(await send(worker.url, file, { begin, waits: true })).toMatchObject({ status: 200 });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('accepts bytes from one client at a time, and from one that reconnects', async () => {
    const worker = await startWorker(newDirectory());
    const stuck = new Readable({ read: () => undefined });
    stuck.push(disk.subarray(0, mib));
    const dead = send(worker.url, stuck, { begin: { length: disk.length }, more: true }).catch(() => undefined);
    await expect.poll(() => offsetOf(worker.url)).toBe(mib);
    expect(await send(worker.url, disk, { begin: { length: disk.length } })).toMatchObject({ status: 423 });
    const back = await send(worker.url, disk.subarray(mib), { offset: mib, takesOver: true, waits: true });
    expect(back).toMatchObject({ status: 200 });
    stuck.destroy();
    await dead;
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it.each<[string, Part, number]>([
    ['a token for something else', { token: tokenFor('uid-2') }, 401],
    ['a token of a user', { token: tokenFor('uid-1', 'upload') }, 401],
    ['no token', { token: 'none' }, 401],
    ['bytes that belong elsewhere', { offset: 5 }, 409],
  ])('is rejected with %s', async (_what, part, status) => {
    const worker = await startWorker(newDirectory());
    expect(await send(worker.url, disk.subarray(0, 100), part)).toMatchObject({ status });
    expect(await offsetOf(worker.url)).toBe(0);
  });

  it('of a file that is not a disk image returns an error to the client and in the report', async () => {
    const worker = await startWorker(newDirectory());
    const page = Buffer.from('<!doctype html><html><body>Log in</body></html>'.padEnd(5000));
    const answer = await send(worker.url, page, { begin: { length: page.length }, waits: true });
    expect(answer).toMatchObject({ status: 422, reason: 'NotADiskImage' });
    expect(await worker.report).toMatchObject({ outcome: 'failed', reason: 'NotADiskImage', retryable: false });
  });

  const large = gzipSync(Buffer.concat([noise('large', 9 * mib), Buffer.alloc(9 * mib, 1)]), { level: 1 });
  const cut = published['raw.gz']().subarray(0, 3 * mib);
  const faulty: readonly (readonly [string, Buffer, string])[] = [
    [
      'that only unpacking shows to be too large',
      Buffer.concat([large, gzipSync(Buffer.alloc(1024))]),
      'ImageTooLarge',
    ],
    ['whose packing is cut', cut, 'ImageTruncated'],
    ['that is not a disk', Buffer.from('<!doctype html>'.padEnd(5000)), 'NotADiskImage'],
  ];
  const begin = (file: Buffer) => ({ length: file.length, maybeFollowed: true });

  it.each(faulty)('of a file %s is rejected, and the next one becomes the disk', async (_what, file, reason) => {
    const worker = await startWorker(newDirectory(), { capacityBytes: 16 * mib });
    const answer = await send(worker.url, file, { begin: begin(file), waits: true });
    expect(answer).toMatchObject({ status: 422, reason });
    expect(await offsetOf(worker.url)).toBe(0);
    const next = await send(worker.url, disk, { begin: begin(disk), waits: true });
    expect(next).toMatchObject({ status: 200, outcome: 'succeeded' });
    expect(readFileSync(worker.target).equals(disk)).toBe(true);
  });

  it('that is rejected between parts accepts the next file, even one that arrives before the failure was detected', async () => {
    const worker = await startWorker(newDirectory(), { capacityBytes: 4 * mib });
    const small = disk.subarray(0, 4 * mib);
    const first = await send(worker.url, disk.subarray(0, mib), { begin: begin(disk), more: true });
    expect([204, 422]).toContain(first.status);
    await sleep(300);
    const next = await send(worker.url, small, { begin: begin(small), waits: true });
    expect(next).toMatchObject({ status: 200 });
    expect(readFileSync(worker.target).equals(small)).toBe(true);
  });

  it('that is rejected after its client has disconnected, or polls later, ends the transfer', async () => {
    const worker = await startWorker(newDirectory(), { capacityBytes: 16 * mib });
    const page = Buffer.from('<!doctype html>'.padEnd(5000));
    // Nobody waits for more than that the bytes are there.
    await send(worker.url, page, { begin: begin(page) });
    expect(await worker.report).toMatchObject({ outcome: 'failed', reason: 'NotADiskImage' });
  });

  it('that no client begins expires', async () => {
    const worker = await startWorker(newDirectory(), { idleSeconds: 1 });
    expect(await worker.report).toMatchObject({ outcome: 'failed', reason: 'UploadExpired', retryable: false });
  });

  it('that no client continues is paused, and continues in the next Job with what had arrived', async () => {
    const directory = newDirectory();
    const first = await startWorker(directory, { pauseSeconds: 1 });
    await send(first.url, disk.subarray(0, 1000), { begin: { length: disk.length }, more: true });
    const report = await first.report;
    expect(report).toMatchObject({ outcome: 'failed', reason: 'UploadPaused', retryable: true });
    expect(JSON.stringify(report)).toContain('after 1000 of them');
    await first.kill();
    const second = await startWorker(directory);
    expect(await offsetOf(second.url)).toBe(1000);
    const rest = await send(second.url, disk.subarray(1000), { offset: 1000, waits: true });
    expect(rest).toMatchObject({ status: 200, outcome: 'succeeded' });
    expect(readFileSync(second.target).equals(disk)).toBe(true);
  });
});
