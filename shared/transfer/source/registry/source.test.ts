import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { isSuccess, transferSpec } from '#test/support/registry/transfer.ts';
import { runTransfer } from '#shared/transfer/run.ts';
import { type Layer, type PushTarget, pushDisk, pushImage, pushIndex, sha256 } from '#test/support/registry/images.ts';
import { type TestRegistry, hasRegistry, startRegistry } from '#test/support/registry/server.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, noise, writeDisk } from '#test/support/disk.ts';
import { hasTools } from '#test/support/tools.ts';

const directory = temporaryDirectory();
const megabyte = 1024 * 1024;

const quiet = { run: 'test', signal: new AbortController().signal, send: () => Promise.resolve(), log: () => {} };

describe.skipIf(!hasRegistry())('a containerDisk', () => {
  let registry: TestRegistry;
  let target: PushTarget;
  const raw = join(directory, 'raw.img');
  let disk: Buffer;
  beforeAll(async () => {
    registry = await startRegistry();
    target = { host: registry.host, repository: 'disks/fedora' };
    writeDisk(raw, 5 * megabyte);
    disk = readFileSync(raw);
  });
  afterEach(() => {
    registry.intercept = undefined;
    registry.cutAfter = undefined;
    registry.requests.length = 0;
  });
  afterAll(() => registry.close());

  const url = (rest: string) => `docker://${registry.host}/disks/fedora${rest}`;
  const take = async (rest: string, options: Parameters<typeof transferSpec>[2] = {}) => {
    const path = join(directory, `out-${Math.random()}.img`);
    registry.requests.length = 0;
    const report = await runTransfer(transferSpec(url(rest), path, options), quiet);
    return { report, bytes: isSuccess(report) ? readFileSync(path) : undefined };
  };
  /** Without the image's configuration, which is requested once and first. */
  const blobs = () => registry.requests.filter(({ path }) => path.includes('/blobs/')).slice(1);

  it.each(['gzip', 'zstd', 'none', 'docker'] as const)(
    'arrives from a %s layer, with one GET of its bytes',
    async (packing) => {
      await pushDisk(target, disk, `p-${packing}`, packing);
      const { report, bytes } = await take(`:p-${packing}`);
      expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(disk).slice(7) } });
      expect(bytes?.equals(disk)).toBe(true);
      expect(blobs().length).toBe(1);
    },
  );

  it('has stalled below the minimum rate', async () => {
    await pushDisk(target, disk, 'slow', 'none');
    registry.intercept = ({ path }, response) => {
      if (!path.includes('/blobs/') || registry.requests.filter((one) => one.path.includes('/blobs/')).length < 2)
        return false;
      response.writeHead(200);
      const timer = setInterval(() => response.write(Buffer.alloc(512)), 50);
      response.on('close', () => clearInterval(timer));
      return true;
    };
    const { report } = await take(':slow', { floor: { bytes: megabyte, seconds: 0.5 }, retries: 0 });
    expect(report).toMatchObject({
      reason: 'SourceStalled',
      message: expect.stringMatching(
        /^127\.0\.0\.1:\d+ sent \d+ bytes in \d+ seconds: at least 1048576 in 0\.5 are needed/,
      ),
    });
  });

  it('reports how to run its disk when its environment does', async () => {
    const environment = ['PATH=/bin', 'INSTANCETYPE_KUBEVIRT_IO_DEFAULT_PREFERENCE=fedora'];
    await pushImage(target, [{ files: [{ name: 'disk/a.img', content: disk }] }], 'told', environment);
    const labels = { 'instancetype.kubevirt.io/default-preference': 'fedora' };
    expect((await take(':told')).report).toMatchObject({ outcome: 'succeeded', inspection: { labels } });
  });

  it('is identified by its bytes, not by the media type of its layer', async () => {
    const files = [{ name: './disk/d.img', content: disk }];
    await pushImage(target, [{ files, packing: 'zstd', mediaType: 'application/vnd.oci.image.layer.v1.tar' }], 'lies');
    expect((await take(':lies')).bytes?.equals(disk)).toBe(true);
  });

  it.skipIf(!hasTools('qemu-img'))('may be a qcow2', async () => {
    const qcow2 = convertDisk(raw, 'qcow2', join(directory, 'd.qcow2'), ['-c']);
    await pushImage(target, [{ files: [{ name: 'disk/d.qcow2', content: qcow2 }] }], 'qcow2');
    const { report, bytes } = await take(':qcow2');
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'qcow2', virtualSize: disk.length } });
    expect(bytes?.equals(disk)).toBe(true);
  });

  const other = noise('other', 700_000);
  const small = { name: 'etc/motd', content: Buffer.from('hello') };
  interface Case {
    readonly layers: Layer[];
    /** The disk that arrives, or why none does. */
    readonly expected: Buffer | string;
  }
  const cases: Readonly<Record<string, (disk: Buffer) => Case>> = {
    'the upper layer wins': (disk) => ({
      layers: [
        { files: [{ name: 'disk/a.img', content: other }] },
        { files: [small, { name: 'disk/a.img', content: disk }] },
      ],
      expected: disk,
    }),
    'a lower layer is found below others': (disk) => ({
      layers: [{ files: [{ name: 'disk/a.img', content: disk }] }, { files: [small] }],
      expected: disk,
    }),
    'a whiteout takes a disk away': (disk) => ({
      layers: [
        {
          files: [
            { name: 'disk/a.img', content: disk },
            { name: 'disk/b.img', content: other },
          ].slice(0, 1),
        },
        { files: [{ name: 'disk/.wh.a.img' }] },
      ],
      expected: 'no file in /disk/',
    }),
    'a whiteout leaves the others': (disk) => ({
      layers: [
        { files: [{ name: 'disk/b.img', content: other }] },
        { files: [{ name: 'disk/a.img', content: disk }] },
        { files: [{ name: 'disk/.wh.a.img' }] },
      ],
      expected: other,
    }),
    'an opaque folder hides what is below': (disk) => ({
      layers: [{ files: [{ name: 'disk/a.img', content: disk }] }, { files: [{ name: 'disk/.wh..wh..opq' }] }],
      expected: 'no file in /disk/',
    }),
    'two disks are refused': (disk) => ({
      layers: [
        {
          files: [
            { name: 'disk/a.img', content: disk },
            { name: 'disk/b.img', content: other },
          ],
        },
      ],
      expected: '(/disk/a.img, /disk/b.img)',
    }),
    'a link is refused': () => ({
      layers: [{ files: [{ name: 'disk/a.img', type: '2', link: '/etc/shadow' }] }],
      expected: 'a symbolic link',
    }),
    'a path that leads out is refused': () => ({
      layers: [{ files: [{ name: 'disk/../../etc/passwd', content: other }] }],
      expected: 'leads out of it',
    }),
    'no disk is refused': () => ({ layers: [{ files: [small] }], expected: 'not a containerDisk' }),
  };
  it.each(Object.entries(cases))('%s', async (_, build) => {
    const { layers, expected } = build(disk);
    await pushImage(target, layers, 'case');
    const { report, bytes } = await take(':case');
    const isAsExpected =
      report.outcome === 'failed'
        ? typeof expected === 'string' && report.message.includes(expected)
        : typeof expected !== 'string' && bytes?.subarray(0, expected.length).equals(expected);
    expect({ report, isAsExpected }).toMatchObject({ isAsExpected: true });
    expect(report).not.toMatchObject({ retryable: true });
  });

  it('is selected for the requested platform', async () => {
    const amd = await pushDisk(target, disk, 'amd');
    const arm = await pushDisk(target, other, 'arm');
    await pushIndex(
      target,
      [
        { architecture: 'amd64', image: amd },
        { architecture: 'arm64', image: arm },
      ],
      'multi',
    );
    expect((await take(':multi', { architecture: 'amd64' })).bytes?.equals(disk)).toBe(true);
    expect((await take(':multi', { architecture: 's390x' })).report).toMatchObject({
      reason: 'SourceNotFound',
      message: expect.stringContaining('it has linux/amd64, linux/arm64'),
    });
  });

  it('resumes after cuts, without requesting what it has', async () => {
    const plain = await pushDisk(target, disk, 'cut', 'none');
    registry.cutAfter = 2 * megabyte;
    const { report, bytes } = await take(`@${plain.digest}`, { retries: 8 });
    expect(report).toMatchObject({ outcome: 'succeeded' });
    expect(bytes?.equals(disk)).toBe(true);
    expect(
      blobs()
        .slice(1)
        .every(({ headers }) => headers.range !== undefined),
    ).toBe(true);
  }, 240_000);

  it('is downloaded again when its bytes do not match the digest, and rejected when that does not help', async () => {
    const pushed = await pushDisk(target, disk, 'rot', 'none');
    const whole = await fetch(`http://${registry.host}/v2/disks/fedora/blobs/${pushed.layers[0]!.digest}`);
    const rotten = Buffer.from(await whole.arrayBuffer());
    rotten.writeUInt8(rotten.readUInt8(1_100_000) ^ 1, 1_100_000);
    let answers = 1;
    registry.intercept = ({ path }, response) => {
      if (!path.includes('/blobs/') || answers <= 0) return false;
      answers -= 1;
      response.end(rotten);
      return true;
    };
    expect((await take(':rot')).bytes?.equals(disk)).toBe(true);
    answers = 100;
    expect((await take(':rot', { retries: 1 })).report).toMatchObject({ outcome: 'failed', reason: 'ImageCorrupt' });
  }, 240_000);

  it('stops at the size of the target, whatever the archive declares', async () => {
    await pushDisk(target, Buffer.alloc(9 * megabyte), 'large');
    expect((await take(':large', { capacityBytes: 8 * megabyte })).report).toMatchObject({ reason: 'ImageTooLarge' });
  });
});

describe.skipIf(!hasRegistry())('a private containerDisk', () => {
  it('is fetched with the credentials of a mounted Secret, which appear nowhere', async () => {
    const registry = await startRegistry({ withLogin: true });
    try {
      const authorization = `Basic ${Buffer.from('tester:s3cret-pass').toString('base64')}`;
      const target = { host: registry.host, repository: 'private', authorization };
      await pushDisk(target, noise('p', megabyte), '1');
      const url = `docker://${registry.host}/private:1`;
      const auths = { [registry.host]: { username: 'tester', password: 's3cret-pass' } };
      const secretDir = join(directory, 'secret');
      mkdirSync(secretDir);
      writeFileSync(join(secretDir, '.dockerconfigjson'), JSON.stringify({ auths }));
      const logged: unknown[] = [];
      const options = { ...quiet, log: (...line: unknown[]) => void logged.push(line) };
      const path = join(directory, 'private.img');
      const allowed = await runTransfer(transferSpec(url, path, { secretDir }), options);
      expect(allowed).toMatchObject({ outcome: 'succeeded' });
      const refused = await runTransfer(transferSpec(url, path), options);
      expect(refused).toMatchObject({ outcome: 'failed', reason: 'SourceForbidden', retryable: false });
      expect(JSON.stringify([logged, allowed, refused])).not.toContain('s3cret-pass');
    } finally {
      await registry.close();
    }
  });
});
