// A file with mirrors, as imports meet them: web servers that are down, cut connections, have another file, or want credentials.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isSameFile } from '#shared/transfer/source/mirrored.ts';
import type { SourceFacts } from '#shared/transfer/source/source.ts';
import { type RunOptions, runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { type Answer, type Origin, type OriginRequest, fileAnswer, startOrigin } from '#test/support/origin.ts';

const directory = temporaryDirectory();
const size = 6 * 1024 * 1024;
const disk = noise('mirrored file', size);
const other = noise('another file', size);
/** The same beginning, which is compared at once. */
const stale = Buffer.concat([disk.subarray(0, size / 2), other.subarray(size / 2)]);
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');
/** Nobody listens there. */
const gone = 'http://127.0.0.1:9/disk.img';

type Respond = (request: OriginRequest) => Answer;
const honest: Respond = (request) => fileAnswer(request, disk);

describe('a file with mirrors', () => {
  let own: Origin;
  let mirror: Origin;
  let respond: { own: Respond; mirror: Respond };
  beforeAll(async () => {
    own = await startOrigin((request) => respond.own(request));
    mirror = await startOrigin((request) => respond.mirror(request));
  });
  afterEach(() => {
    own.requests.length = 0;
    mirror.requests.length = 0;
    respond = { own: honest, mirror: honest };
  });
  afterAll(() => Promise.all([own.close(), mirror.close()]));
  respond = { own: honest, mirror: honest };

  interface Asked {
    readonly url?: string;
    readonly mirrors?: readonly string[];
    readonly checksum?: string;
    readonly headers?: readonly string[];
    readonly retries?: number;
    readonly capacityBytes?: number;
  }
  const take = async ({ url, mirrors, checksum, headers = [], retries = 1, capacityBytes = 2 * size }: Asked = {}) => {
    const path = join(directory, `out-${Math.random()}.img`);
    const spec = TransferSpec.parse({
      mode: 'import',
      source: {
        type: 'http',
        url: url ?? `${own.url}/disk.img`,
        mirrors: mirrors ?? [`${mirror.url}/copy.img`],
        secretHeaders: headers,
      },
      ...(checksum === undefined ? {} : { checksum: { algorithm: 'sha256', hex: checksum } }),
      target: { path, volumeMode: 'Filesystem', capacityBytes },
      scratchDir: directory,
      limits: { idleSeconds: 5, totalSeconds: 60, retries },
      allowedAddresses: ['127.0.0.0/8'],
    });
    const quiet: RunOptions = {
      run: 'test',
      signal: new AbortController().signal,
      send: () => Promise.resolve(),
      log: () => {},
      wait: () => Promise.resolve(),
    };
    const report = await runTransfer(spec, quiet);
    return report.outcome === 'succeeded'
      ? { sha256: sha256(readFileSync(path)), from: report.servedFrom }
      : { failed: `${report.reason}: ${report.message}` };
  };
  const cutOnce = (bytes: Buffer, after: number, options = {}): Respond => {
    let isCut = false;
    return (request) => {
      const answer = fileAnswer(request, bytes, options);
      const isBody = (answer.body?.length ?? 0) > after;
      if (isCut) return { status: 503 };
      isCut = isBody;
      return isBody ? { ...answer, cutAfter: after } : answer;
    };
  };

  it('is fetched from the first mirror, and the server itself is not asked', async () => {
    expect(await take()).toEqual({ sha256: sha256(disk), from: `${mirror.url}/copy.img` });
    expect(own.requests).toEqual([]);
  });

  it('is fetched from the server where no mirror has it, and the report says why', async () => {
    respond.mirror = () => ({ status: 404 });
    const { sha256: found, from } = await take({ mirrors: [gone, `${mirror.url}/copy.img`] });
    expect(found).toBe(sha256(disk));
    expect(from).toMatch(/\/disk\.img \(.*127\.0\.0\.1:9\/disk\.img: cannot connect .*answered 404/);
  });

  it('is fetched from a mirror though the server is gone', async () => {
    expect(await take({ url: gone })).toMatchObject({ sha256: sha256(disk) });
  });

  it.each<[string, object, string | undefined]>([
    ['the same strong tag', {}, undefined],
    ['another tag, where a checksum is compared', { etag: '"copy"' }, sha256(disk)],
    [
      'another tag and the same stated digest',
      { etag: '"copy"', headers: { 'x-checksum-sha256': sha256(disk) } },
      undefined,
    ],
  ])('continues at the server from the byte that was reached, with %s', async (_, options, checksum) => {
    respond.mirror = cutOnce(disk, 3 * 1024 * 1024, options);
    respond.own = (request) => fileAnswer(request, disk, { headers: { 'x-checksum-sha256': sha256(disk) } });
    const before = own.sentBytes();
    const { sha256: found, from } = await take(checksum === undefined ? {} : { checksum });
    expect(found).toBe(sha256(disk));
    expect(from).toContain(`${mirror.url}/copy.img, then ${own.url}/disk.img`);
    expect(own.sentBytes() - before).toBeLessThan(size - 2 * 1024 * 1024);
  });

  it('continues in the middle of a compressed file, which is read as a stream', async () => {
    const packed = gzipSync(disk);
    respond.mirror = cutOnce(packed, 3 * 1024 * 1024);
    respond.own = (request) => fileAnswer(request, packed);
    const before = own.sentBytes();
    expect(await take()).toMatchObject({ sha256: sha256(disk) });
    expect(own.sentBytes() - before).toBeLessThan(size - 2 * 1024 * 1024);
  });

  it.skipIf(!hasTools('qemu-img'))('continues a qcow2, which is read in parallel ranges', async () => {
    const raw = join(directory, 'whole.raw');
    const packed = join(directory, 'whole.qcow2');
    const whole = Buffer.concat([disk, Buffer.alloc(2 * size), noise('end of it', 6 * size)]);
    writeFileSync(raw, whole);
    runTool('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, packed]);
    const file = readFileSync(packed);
    let sent = 0;
    respond.mirror = (request) => {
      const answer = fileAnswer(request, file);
      sent += answer.body?.length ?? 0;
      return sent > 3 * size ? { status: 502 } : answer;
    };
    respond.own = (request) => fileAnswer(request, file);
    const before = own.sentBytes();
    expect(await take({ capacityBytes: whole.length })).toMatchObject({ sha256: sha256(whole) });
    const fetched = own.sentBytes() - before;
    expect(fetched).toBeGreaterThan(2 * size);
    expect(fetched).toBeLessThan(file.length - size);
  });

  it.each<[string, Buffer, object]>([
    ['that cannot be shown to be the same', disk, { etag: '"copy"' }],
    ['of another size', disk.subarray(0, size - 512), { etag: '"copy"' }],
    ['with another stated digest', stale, { headers: { 'x-checksum-sha256': sha256(stale) } }],
  ])(
    'starts over at the server after the mirror served a file %s: nothing is put together',
    async (_, bytes, options) => {
      respond.mirror = cutOnce(bytes, 3 * 1024 * 1024, options);
      respond.own = (request) => fileAnswer(request, disk, { headers: { 'x-checksum-sha256': sha256(disk) } });
      const before = own.sentBytes();
      expect(await take()).toMatchObject({ sha256: sha256(disk) });
      expect(own.sentBytes() - before).toBeGreaterThanOrEqual(size);
    },
  );

  it('is read from the server where what the mirror serves does not have the checksum', async () => {
    respond.mirror = (request) => fileAnswer(request, other, { etag: '"other"' });
    const { sha256: found, from } = await take({ checksum: sha256(disk) });
    expect(found).toBe(sha256(disk));
    expect(from).toMatch(/copy\.img: .*sha256/);
  });

  it('is read from the server where a mirror that took over had other bytes with the same beginning', async () => {
    respond.mirror = cutOnce(disk, 3 * 1024 * 1024);
    const wrong = await startOrigin((request) => fileAnswer(request, stale, { etag: '"stale"' }));
    const mirrors = [`${mirror.url}/copy.img`, `${wrong.url}/copy.img`];
    expect(await take({ mirrors, checksum: sha256(disk) })).toMatchObject({ sha256: sha256(disk) });
    await wrong.close();
  });

  it('is read from the server where the mirror answers with a page instead', async () => {
    respond.mirror = () => ({ headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>sign in</html>') });
    expect(await take()).toMatchObject({ sha256: sha256(disk) });
  });

  it('fails for what the server itself serves wrongly, although a mirror is there', async () => {
    respond.mirror = () => ({ status: 404 });
    respond.own = (request) => fileAnswer(request, other);
    expect((await take({ checksum: sha256(disk) })).failed).toMatch(/^ChecksumMismatch/);
  });

  it('gives no mirror the credentials of the server', async () => {
    const url = own.url.replace('http://', 'http://user:secret@');
    respond.mirror = () => ({ status: 401 });
    await take({ url: `${url}/disk.img`, headers: ['X-Token: secret'] });
    const sent = ({ requests }: Origin) => requests.map(({ headers }) => [headers.authorization, headers['x-token']]);
    expect(new Set(sent(mirror).flat())).toEqual(new Set([undefined]));
    expect(sent(own)[0]).toEqual([`Basic ${Buffer.from('user:secret').toString('base64')}`, 'secret']);
  });

  it('names every place where none has it', async () => {
    respond.own = () => ({ status: 404 });
    expect((await take({ mirrors: [gone] })).failed).toMatch(/127\.0\.0\.1:9.*elsewhere:.*answered 404/);
  });
});

describe('a file at another place', () => {
  const facts: SourceFacts = {
    size: 9,
    head: Buffer.from('head'),
    isWhole: false,
    hasRanges: true,
    isPinned: true,
    identity: '"v1"',
  };
  it.each<[string, Partial<SourceFacts>, Partial<SourceFacts>, boolean, boolean]>([
    ['the same strong tag', {}, {}, false, true],
    ['another tag', {}, { identity: '"v2"' }, false, false],
    ['another tag, with a checksum', {}, { identity: '"v2"' }, true, true],
    ['the same date', { identity: 'Mon' }, { identity: 'Mon' }, false, false],
    ['the same tag, and other digests', { digest: 'sha256:a' }, { digest: 'sha256:b' }, true, false],
    ['another tag, and the same digest', { digest: 'sha256:a' }, { digest: 'sha256:a', identity: '"v2"' }, false, true],
    ['another size', {}, { size: 8 }, true, false],
    ['no size', { size: undefined }, { size: undefined }, true, false],
    ['another beginning', {}, { head: Buffer.from('tail') }, true, false],
    ['no ranges', {}, { hasRanges: false }, true, false],
    ['no validator', {}, { isPinned: false, identity: undefined }, true, false],
  ])('with %s', (_, one, two, hasChecksum, expected) => {
    expect(isSameFile({ ...facts, ...one }, { ...facts, ...two }, hasChecksum)).toBe(expected);
  });
});
