import { serve, sha256, transfer } from '#test/support/transfer.ts';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { reportEveryMs } from '#shared/transfer/meter.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type FileOptions, fileAnswer } from '#test/support/origin.ts';
import { qcow2Header } from '#test/support/qcow2.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { slowness } from '#test/support/slowness.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

describe('raw disks', () => {
  const raw = Buffer.concat([noise('boot', 4096), Buffer.alloc(8 * mib), noise('tail', 3 * mib + 5 * 512)]);

  it.each<[string, Buffer, object]>([
    ['plain', raw, { format: 'raw', compression: 'none', size: raw.length, virtualSize: raw.length }],
    ['gz', gzipSync(raw), { format: 'raw', compression: 'gz', virtualSize: raw.length }],
    [
      'gz of two members',
      Buffer.concat([gzipSync(raw.subarray(0, 5000)), gzipSync(raw.subarray(5000))]),
      { compression: 'gz' },
    ],
    ['zst', zstdCompressSync(raw), { format: 'raw', compression: 'zst', virtualSize: raw.length }],
    [
      'zst of two frames',
      Buffer.concat([zstdCompressSync(raw.subarray(0, 5000)), zstdCompressSync(raw.subarray(5000))]),
      {},
    ],
  ])('%s are copied byte for byte, sparse', async (_, published, inspection) => {
    const { report, target, leftovers } = await transfer(serve(published));
    expect(report).toMatchObject({ outcome: 'succeeded', inspection, digests: { sha256: sha256(published) } });
    expect(readFileSync(target).equals(raw)).toBe(true);
    expect(statSync(target).blocks * 512).toBeLessThan(5 * mib);
    expect(report).toMatchObject({ writtenBytes: expect.toSatisfy((bytes: number) => bytes < 4 * mib) });
    expect(leftovers).toEqual([]);
  });

  it.each<[string, FileOptions]>([
    ['has no ranges', { ranges: false }],
    ['has weak tags', { etag: 'W/"x"' }],
    ['reports no length', { ranges: false, chunked: true, etag: null }],
    ['claims a content encoding', { headers: { 'content-encoding': 'gzip' } }],
  ])('are copied from a server that %s', async (_, options) => {
    const { report, target } = await transfer(serve(raw, options));
    expect(report.outcome).toBe('succeeded');
    expect(readFileSync(target).equals(raw)).toBe(true);
  });

  it('are padded to whole sectors', async () => {
    const odd = raw.subarray(0, raw.length - 100);
    const { report, target } = await transfer(serve(odd));
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { size: odd.length, virtualSize: raw.length } });
    expect(readFileSync(target).equals(Buffer.concat([odd, Buffer.alloc(100)]))).toBe(true);
  });

  it('replace an older, larger disk', async () => {
    const own = mkdtempSync(join(root, 'old-'));
    const path = join(own, 'disk.img');
    writeFileSync(path, noise('old', 20 * mib));
    await transfer(serve(raw), { path });
    expect(readFileSync(path).equals(raw)).toBe(true);
  });

  it('fill a block target in place, with stale data zeroed', async () => {
    const path = join(mkdtempSync(join(root, 'block-')), 'device');
    writeFileSync(path, Buffer.alloc(16 * mib, 0xee));
    const { report } = await transfer(serve(raw), { path, volumeMode: 'Block', capacityBytes: 16 * mib });
    expect(report.outcome).toBe('succeeded');
    const device = readFileSync(path);
    expect(device).toHaveLength(16 * mib);
    expect(device.subarray(0, raw.length).equals(raw)).toBe(true);
    expect(device.subarray(raw.length).every((byte) => byte === 0)).toBe(true);
  });

  it('may be all zeroes', async () => {
    const { report, target } = await transfer(serve(gzipSync(Buffer.alloc(5 * mib))));
    expect(report).toMatchObject({ outcome: 'succeeded', writtenBytes: 0, inspection: { virtualSize: 5 * mib } });
    expect(readFileSync(target).equals(Buffer.alloc(5 * mib))).toBe(true);
  });

  it.each([
    ['md5', createHash('md5').update(raw).digest('hex')],
    ['sha1', createHash('sha1').update(raw).digest('hex')],
    ['sha512', createHash('sha512').update(raw).digest('hex')],
  ] as const)('are held against their %s', async (algorithm, hex) => {
    const right = await transfer(serve(raw), { checksum: { algorithm, hex } });
    expect(right.report).toMatchObject({ outcome: 'succeeded', digests: { [algorithm]: hex, sha256: sha256(raw) } });
    const wrong = await transfer(serve(raw), {
      checksum: { algorithm, hex: hex.replace(/^./, (digit) => (digit === '0' ? '1' : '0')) },
    });
    expect(wrong.report).toMatchObject({ outcome: 'failed', reason: 'ChecksumMismatch', retryable: false });
    expect(existsSync(wrong.target)).toBe(false);
    expect(wrong.leftovers).toEqual([]);
  });

  it('are read again when the object changes, and become the new one', async () => {
    const next = Buffer.concat([noise('new', 4096), Buffer.alloc(6 * mib), noise('end', mib)]);
    const { report, target, progress } = await transfer(
      (request) =>
        request.index < 2
          ? { ...fileAnswer(request, raw), ...(request.index === 1 ? { cutAfter: mib } : {}) }
          : fileAnswer(request, next, { etag: '"v2"' }),
      { retries: 3 },
    );
    expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(next) } });
    expect(readFileSync(target).equals(next)).toBe(true);
    const percents = progress.map(({ percent }) => percent);
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
  });

  it('are read again when an interrupted download cannot be resumed', async () => {
    let cuts = 0;
    const { report, target } = await transfer((request) => {
      const answer = fileAnswer(request, raw, { etag: null });
      return request.headers.range === undefined && cuts++ === 0 ? { ...answer, cutAfter: 2 * mib } : answer;
    });
    expect(report.outcome).toBe('succeeded');
    expect(readFileSync(target).equals(raw)).toBe(true);
  });
});

describe('a file that differs at the second request', () => {
  const endless = { ranges: false, chunked: true, etag: null } as const;
  const raw = noise('first', 3 * mib);

  it('is not taken for the first one: an HTML page in its place is not a disk', async () => {
    const page = Buffer.from(`<!DOCTYPE html><html>${' '.repeat(600)}</html>`);
    const { report } = await transfer((request) => fileAnswer(request, request.index === 0 ? raw : page, endless));
    expect(report).toMatchObject({ outcome: 'failed', reason: 'NotADiskImage' });
  });

  it('is accepted once it stays the same', async () => {
    const next = noise('second', 3 * mib);
    const { report, target } = await transfer((request) =>
      fileAnswer(request, request.index === 0 ? raw : next, endless),
    );
    expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(next) } });
    expect(readFileSync(target).equals(next)).toBe(true);
  });
});

describe('a file whose server does not report its length', () => {
  const endless = { ranges: false, chunked: true, etag: null } as const;
  const raw = noise('endless', 3 * mib);
  const expected = { format: 'raw', compression: 'none', virtualSize: 3 * mib } as const;

  it('is accepted when it is as long as an earlier inspection found', async () => {
    const { report } = await transfer(serve(raw, endless), { expected });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { virtualSize: 3 * mib } });
  });

  it('is rejected when it ends before', async () => {
    const { report, target } = await transfer(serve(raw.subarray(0, 2 * mib), endless), { expected });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'SourceChanged', retryable: true });
    expect(JSON.stringify(report)).toContain(
      `ended after ${2 * mib} bytes, and an earlier inspection found ${3 * mib}`,
    );
    expect(existsSync(target)).toBe(false);
  });

  it('is accepted when its checksum is right', async () => {
    const short = raw.subarray(0, 2 * mib);
    const checksum = { algorithm: 'sha256', hex: sha256(short) } as const;
    const { report } = await transfer(serve(short, endless), { expected, checksum });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { virtualSize: short.length } });
  });
});

describe('a file that is not a disk', () => {
  const page = Buffer.from(`<!doctype html><html><title>Sign in</title>${'<p>please</p>'.repeat(100)}</html>`);
  it.each<[string, Buffer, string, RegExp]>([
    ['a page', page, 'NotADiskImage', /text\/html.*<!doctype html>/],
    ['a packed page', gzipSync(page), 'NotADiskImage', /<!doctype html>/],
    ['nothing', Buffer.alloc(0), 'NotADiskImage', /empty/],
    ['a few bytes', Buffer.alloc(100), 'NotADiskImage', /100 bytes/],
    ['a packed nothing', gzipSync(''), 'NotADiskImage', /nothing/],
    ['a packed few bytes', gzipSync(Buffer.alloc(20)), 'NotADiskImage', /20 bytes/],
    ['a zip', Buffer.concat([Buffer.from('PK\u0003\u0004'), noise('zip', 5000)]), 'UnsupportedFormat', /zip/],
    ['a twice packed disk', gzipSync(zstdCompressSync(noise('x', 5000))), 'UnsupportedFormat', /zst/],
    [
      'a broken gzip',
      Buffer.concat([gzipSync(noise('x', mib)).subarray(0, mib / 2), noise('y', 5000)]),
      'ImageCorrupt',
      /gzip/,
    ],
    ['half a gzip', gzipSync(noise('x', mib)).subarray(0, mib / 2), 'ImageTruncated', /gzip/],
    [
      'a qcow2 with a backing file',
      qcow2Header({ backingOffset: 512n, backingLength: 3 }),
      'ExternalReference',
      /backing file/,
    ],
    ['a packed qcow2 with a data file', gzipSync(qcow2Header({ incompatible: 4n })), 'ExternalReference', /data file/],
    ['an encrypted qcow2', qcow2Header({ encryption: 2 }), 'ImageEncrypted', /LUKS/],
    ['a qcow2 of another world', qcow2Header({ size: 2n ** 60n, l1Entries: 2 ** 21 }), 'ImageCorrupt', /virtual size/],
  ])('%s is rejected before anything is written', async (_, bytes, reason, words) => {
    const { report, target, leftovers } = await transfer(serve(bytes, { headers: { 'content-type': 'text/html' } }));
    expect(report).toMatchObject({ outcome: 'failed', reason, retryable: false });
    expect(report).toHaveProperty('message', expect.stringMatching(words));
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });
});

describe('a disk that does not fit', () => {
  it('as a raw disk is rejected with both sizes', async () => {
    const { report, target } = await transfer(serve(Buffer.alloc(8 * mib, 1)), { capacityBytes: 4 * mib });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ImageTooLarge', retryable: false });
    expect(report).toHaveProperty('message', expect.stringMatching(/8388608.*4194304/));
    expect(existsSync(target)).toBe(false);
  });

  it('as a qcow2 is rejected by its header alone', async () => {
    const { report } = await transfer(serve(Buffer.concat([qcow2Header(), Buffer.alloc(mib)])), {
      capacityBytes: 64 * mib,
    });
    expect(report).toMatchObject({ reason: 'ImageTooLarge', inspection: { format: 'qcow2', virtualSize: 2 ** 30 } });
  });

  it('as a decompression bomb ends at the size of the target', async () => {
    const bomb = gzipSync(Buffer.alloc(256 * mib));
    const { report, target, leftovers } = await transfer(serve(bomb), { capacityBytes: 2 * mib });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ImageTooLarge' });
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });

  it('is accepted when it fits a block target exactly', async () => {
    const path = join(mkdtempSync(join(root, 'block-')), 'device');
    writeFileSync(path, '');
    truncateSync(path, 4 * mib);
    const disk = noise('exact', 4 * mib);
    const { report } = await transfer(serve(gzipSync(disk)), { path, volumeMode: 'Block', capacityBytes: 8 * mib });
    expect(report.outcome).toBe('succeeded');
  });
});

describe('a transfer that fails', () => {
  const raw = noise('raw', 3 * mib);

  it.each<[number, string, boolean]>([
    [404, 'SourceNotFound', false],
    [403, 'SourceForbidden', false],
    [500, 'SourceUnavailable', true],
  ])('with status %i is %s', async (status, reason, retryable) => {
    const { report, log } = await transfer(() => ({ status, headers: { 'retry-after': '0' } }), { retries: 1 });
    expect(report).toMatchObject({ outcome: 'failed', reason, retryable });
    expect(report).toHaveProperty('message', expect.stringContaining('/disk'));
    expect(JSON.stringify(report) + log.replace(/"spec".*/, '')).not.toContain('s3cret');
  });

  it('because of an address that is not allowed names it', async () => {
    const { report } = await transfer(serve(raw), { allowedAddresses: [] });
    expect(report).toMatchObject({ reason: 'SourceAddressRefused', retryable: false });
  });

  it('because of a malformed range of allowed addresses has an invalid spec', async () => {
    const { report } = await transfer(serve(raw), { allowedAddresses: ['everything'] });
    expect(report).toMatchObject({ reason: 'InvalidSpec', retryable: false });
  });

  it('because the server stalls ends after its retries', async () => {
    const { report, target, leftovers } = await transfer(
      (request) => ({ ...fileAnswer(request, raw), ...(request.index === 0 ? {} : { stallAfter: 0 }) }),
      { idleSeconds: 0.2, retries: 1 },
    );
    expect(report).toMatchObject({ reason: 'SourceStalled', retryable: true });
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });

  it('because the server sends less than the minimum ends after its retries, with a note in between', async () => {
    const { report, progress } = await transfer(
      (request) => ({ ...fileAnswer(request, raw), ...(request.index === 0 ? {} : { pace: 100 }) }),
      { floor: { bytes: 100 * mib, seconds: 0.6 }, retries: 1, waitMs: reportEveryMs + 500 },
    );
    const said = /^127\.0\.0\.1:\d+ sent \d+ bytes in \d+ seconds: at least 104857600 in 0\.6 are needed/;
    expect(report).toMatchObject({ reason: 'SourceStalled', retryable: true, message: expect.stringMatching(said) });
    expect(progress.map(({ note }) => note ?? '')).toContainEqual(expect.stringMatching(said));
  });

  it('because the server is too slow ends at its deadline', async () => {
    const begin = Date.now();
    const { report } = await transfer((request) => ({ ...fileAnswer(request, raw), pace: 200 }), { totalSeconds: 1.2 });
    expect(report).toMatchObject({ reason: 'DeadlineExceeded', retryable: true });
    expect((Date.now() - begin) / slowness()).toBeLessThan(2500);
  });

  it('because it is cancelled ends within a second and leaves nothing', async () => {
    const controller = new AbortController();
    let cancelledAt = 0;
    setTimeout(() => {
      cancelledAt = Date.now();
      controller.abort();
    }, 500);
    const { report, target, leftovers } = await transfer((request) => ({ ...fileAnswer(request, raw), pace: 100 }), {
      signal: controller.signal,
    });
    expect(report).toMatchObject({ reason: 'Cancelled', retryable: true });
    expect(Date.now() - cancelledAt).toBeLessThan(5000);
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });

  it('because of a missing target directory reports a fault of the target', async () => {
    const { report } = await transfer(serve(raw), { path: join(root, 'nowhere', 'disk.img') });
    expect(report).toMatchObject({ reason: 'TargetFailed', retryable: true });
  });

  it('sends secret headers, and never shows them', async () => {
    const directory = mkdtempSync(join(root, 'headers-'));
    mkdirSync(join(directory, '..data'));
    writeFileSync(join(directory, 'login'), 'Authorization: Bearer t0ps3cret\n');
    const observed: (string | undefined)[] = [];
    const { report, log } = await transfer(
      (request) => {
        observed.push(request.headers.authorization);
        return { status: 401 };
      },
      { headerSecrets: [{ dir: directory, name: 'login' }] },
    );
    expect(observed).toEqual(['Bearer t0ps3cret']);
    expect(report).toMatchObject({ reason: 'SourceForbidden' });
    expect(JSON.stringify(report) + log).not.toContain('t0ps3cret');
  });
});

describe('progress', () => {
  it('contains the inspection before the target is written', async () => {
    const touched: boolean[] = [];
    await transfer(serve(noise('p', 2 * mib)), {
      onProgress: ({ inspection }, target) => {
        if (inspection !== undefined) touched.push(existsSync(target) || existsSync(`${target}.partial`));
      },
    });
    expect(touched[0]).toBe(false);
  });

  it.each([
    ['gz', gzipSync(noise('p', 2 * mib))],
    ['zst', zstdCompressSync(noise('p', 2 * mib))],
  ])('reads raw in %s once, and shows nothing of it before its end', async (_, packed) => {
    const shown: boolean[] = [];
    const { report, target } = await transfer(serve(packed), {
      onProgress: (_progress, path) => shown.push(existsSync(path)),
    });
    expect(shown).not.toContain(true);
    expect(existsSync(target)).toBe(true);
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { virtualSize: 2 * mib } });
    expect(report.receivedBytes).toBeLessThan(packed.length + 300 * 1024);
  });

  it.each([
    ['gz', Buffer.concat([gzipSync(Buffer.alloc(8 * mib)), gzipSync(noise('end', 512))])],
    ['zst', Buffer.concat([zstdCompressSync(noise('begin', 512)), zstdCompressSync(Buffer.alloc(8 * mib))])],
  ])('stops at the size of the target when members hide the size of raw in %s', async (_, packed) => {
    const { report, target } = await transfer(serve(packed), { capacityBytes: 4 * mib });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ImageTooLarge', retryable: false });
    expect([existsSync(target), existsSync(`${target}.partial`)]).toEqual([false, false]);
  });

  it('rejects a compressed disk that is too large without writing to the target', async () => {
    const touched: boolean[] = [];
    const { report, target } = await transfer(serve(gzipSync(Buffer.alloc(8 * mib))), {
      capacityBytes: 4 * mib,
      onProgress: (_, path) => touched.push(existsSync(path) || existsSync(`${path}.partial`)),
    });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ImageTooLarge', retryable: false });
    expect(touched).not.toContain(true);
    expect(existsSync(target)).toBe(false);
  });

  it('has its phases in order, increases, and stays below 100', async () => {
    const { progress } = await transfer(serve(gzipSync(noise('p', 2 * mib))));
    expect([...new Set(progress.map(({ phase }) => phase))]).toEqual(['Inspecting', 'Downloading', 'Verifying']);
    expect(progress.map(({ sequence }) => sequence)).toEqual(progress.map((_, index) => index));
    expect(progress.every(({ percent }) => percent <= 99)).toBe(true);
  });
});

describe('inspect', () => {
  const raw = Buffer.concat([noise('r', mib), Buffer.alloc(3 * mib)]);

  it.each<[string, Buffer, object]>([
    ['raw', raw, { format: 'raw', size: raw.length, virtualSize: raw.length }],
    ['raw in gz, by counting', gzipSync(raw), { format: 'raw', compression: 'gz', virtualSize: raw.length }],
    ['raw in zst, by counting', zstdCompressSync(raw), { compression: 'zst', virtualSize: raw.length }],
    ['qcow2', Buffer.concat([qcow2Header(), Buffer.alloc(mib)]), { format: 'qcow2', virtualSize: 2 ** 30 }],
    [
      'qcow2 in gz',
      gzipSync(Buffer.concat([qcow2Header(), Buffer.alloc(mib)])),
      { compression: 'gz', virtualSize: 2 ** 30 },
    ],
  ])('finds format and size of %s and writes nothing', async (_, bytes, inspection) => {
    const { report, target, progress } = await transfer(serve(bytes), { mode: 'inspect' });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection, writtenBytes: 0 });
    expect(existsSync(target)).toBe(false);
    expect(progress.at(-1)?.inspection).toMatchObject(inspection);
  });

  it('of a large plain image reads only its beginning', async () => {
    const { report } = await transfer(serve(noise('large', 20 * mib)), { mode: 'inspect' });
    expect(report).toMatchObject({ receivedBytes: expect.toSatisfy((bytes: number) => bytes < mib) });
  });

  it('reads the size of an xz from its index', async () => {
    if (!hasTools('xz')) return;
    const packed = runTool('xz', ['-0', '-c'], noise('large', 4 * mib));
    const { report } = await transfer(serve(packed), { mode: 'inspect' });
    expect(report).toMatchObject({ inspection: { virtualSize: 4 * mib } });
    expect(report).toMatchObject({ receivedBytes: expect.toSatisfy((bytes: number) => bytes < mib) });
  });
});
