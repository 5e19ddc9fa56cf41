import { serve, sha256, transfer } from '#test/support/transfer.ts';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { type Damage, damaged, damagesOf } from '#test/support/damage.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, writeDisk } from '#test/support/disk.ts';
import { drawn, effort, fuzzTimeout } from '#test/support/random.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const mib = 1024 * 1024;
const root = temporaryDirectory();
const diskBytes = 24 * mib;

describe.skipIf(!hasTools('qemu-img', 'xz'))('images that qemu-img made', () => {
  const raw = join(root, 'reference.raw');
  let reference: Buffer = Buffer.alloc(0);
  const images = new Map<string, Buffer>();

  beforeAll(() => {
    writeDisk(raw, diskBytes);
    reference = readFileSync(raw);
    const make = (name: string, driver: string, ...options: string[]) =>
      images.set(name, convertDisk(raw, driver, join(root, name), options));
    make('qcow2', 'qcow2');
    make('qcow2 v2', 'qcow2', '-o', 'compat=0.10');
    make('zlib qcow2', 'qcow2', '-c');
    make('zstd qcow2', 'qcow2', '-c', '-o', 'compression_type=zstd');
    make('qcow2 of 4 KiB clusters', 'qcow2', '-o', 'cluster_size=4k');
    make('zlib qcow2 of 2 MiB clusters', 'qcow2', '-c', '-o', 'cluster_size=2M');
    make('qcow2 with extended L2', 'qcow2', '-o', 'extended_l2=on');
    make('vmdk', 'vmdk');
    make('streamOptimized vmdk', 'vmdk', '-o', 'subformat=streamOptimized');
    make('vdi', 'vdi');
    make('vhd', 'vpc', '-o', 'force_size=on');
    make('fixed vhd', 'vpc', '-o', 'subformat=fixed,force_size=on');
    make('vhdx', 'vhdx');
    const of = (name: string) => images.get(name) ?? Buffer.alloc(0);
    images.set('gz of qcow2', gzipSync(of('qcow2')));
    images.set('zst of qcow2', zstdCompressSync(of('qcow2')));
    images.set('xz of qcow2', runTool('xz', ['-0', '-c'], of('qcow2')));
    images.set('gz of fixed vhd', gzipSync(of('fixed vhd')));
    images.set('xz of raw', runTool('xz', ['-0', '-c'], reference));
    images.set('gz of vmdk', gzipSync(of('vmdk')));
    images.set('zst of vhdx', zstdCompressSync(of('vhdx')));
  });

  const names = [
    'qcow2',
    'qcow2 v2',
    'zlib qcow2',
    'zstd qcow2',
    'qcow2 of 4 KiB clusters',
    'zlib qcow2 of 2 MiB clusters',
    'qcow2 with extended L2',
    'vmdk',
    'streamOptimized vmdk',
    'vdi',
    'vhd',
    'fixed vhd',
    'vhdx',
    'gz of qcow2',
    'zst of qcow2',
    'xz of qcow2',
    'gz of fixed vhd',
    'xz of raw',
    'gz of vmdk',
    'zst of vhdx',
  ];

  it.each(names)('a %s becomes the same disk', async (name) => {
    const published = images.get(name) ?? Buffer.alloc(0);
    const { report, target, leftovers, progress } = await transfer(serve(published));
    expect(report).toMatchObject({
      outcome: 'succeeded',
      inspection: { virtualSize: diskBytes },
      digests: { sha256: sha256(published) },
    });
    expect(readFileSync(target).equals(reference)).toBe(true);
    expect(statSync(target).blocks * 512).toBeLessThan(4 * mib);
    expect(leftovers).toEqual([]);
    const percents = progress.map(({ percent }) => percent);
    expect(percents).toEqual([...percents].sort((a, b) => a - b));
  });

  it.each(names.filter((_, index) => index % 3 === 0))(
    'a %s from a server without ranges, to a block target, becomes the same disk',
    async (name) => {
      const path = join(mkdtempSync(join(root, 'block-')), 'device');
      writeFileSync(path, Buffer.alloc(diskBytes + mib, 0xaa));
      const { report } = await transfer(serve(images.get(name) ?? Buffer.alloc(0), { ranges: false }), {
        path,
        volumeMode: 'Block',
      });
      expect(report).toMatchObject({ outcome: 'succeeded', inspection: { virtualSize: diskBytes } });
      expect(readFileSync(path).equals(Buffer.concat([reference, Buffer.alloc(mib)]))).toBe(true);
    },
  );

  it.each(names.filter((name) => name !== 'fixed vhd'))(
    'a %s without its end is reported as truncated',
    async (name) => {
      const published = images.get(name) ?? Buffer.alloc(0);
      const whole = published.subarray(0, published.findLastIndex((byte) => byte !== 0) + 1);
      const cut = whole.subarray(0, Math.floor((whole.length * 0.8) / 512) * 512);
      const { report, target } = await transfer(serve(cut));
      expect(report).toMatchObject({ outcome: 'failed', retryable: false });
      expect(['ImageTruncated', 'ImageCorrupt']).toContain((report as { reason: string }).reason);
      expect(existsSync(target)).toBe(false);
    },
  );

  /** The regions of headers and tables of a format: at its beginning and its end. */
  const tables = { vmdk: 128 * 1024, vdi: 4096, vpc: 4096, vhdx: 4 * mib, qcow2: 512 * 1024 };
  const kinds: readonly (readonly [what: string, driver: keyof typeof tables, options: readonly string[]])[] = [
    ['vmdk', 'vmdk', []],
    ['streamOptimized vmdk', 'vmdk', ['-o', 'subformat=streamOptimized']],
    ['vdi', 'vdi', []],
    ['fixed vdi', 'vdi', ['-o', 'static=on']],
    ['vhd', 'vpc', ['-o', 'force_size=on']],
    ['fixed vhd', 'vpc', ['-o', 'subformat=fixed,force_size=on']],
    ['vhdx of small blocks', 'vhdx', ['-o', 'block_size=1M']],
    ['vhdx of large blocks', 'vhdx', ['-o', 'block_size=32M']],
    ['fixed vhdx', 'vhdx', ['-o', 'subformat=fixed']],
    ['qcow2', 'qcow2', []],
    ['zlib qcow2', 'qcow2', ['-c']],
    ['zstd qcow2 of 4 KiB clusters', 'qcow2', ['-c', '-o', 'compression_type=zstd,cluster_size=4k']],
    ['qcow2 with extended L2', 'qcow2', ['-o', 'extended_l2=on']],
  ];
  const drivers: Readonly<Record<string, string>> = { vhd: 'vpc,force_size_calc=current_size' };

  /** The guest's disk according to qemu-img; `undefined` if it rejects the file. */
  const byQemu = (file: Buffer, format: string): Buffer | undefined => {
    const [path, to] = [join(root, 'damaged'), join(root, 'damaged.raw')];
    writeFileSync(path, file);
    const source = `driver=${drivers[format] ?? format},file.driver=file,file.filename=${path}`;
    const args = ['convert', '--image-opts', source, '-O', 'raw', to];
    return spawnSync('qemu-img', args, { timeout: 60_000 }).status === 0 ? readFileSync(to) : undefined;
  };
  const ofImage = /^(NotADiskImage|Image(Truncated|Corrupt|TooLarge|Encrypted)|ExternalReference|UnsupportedFormat)$/;

  it.each(drawn(kinds, 1 / 2))(
    'a damaged %s becomes the disk that qemu-img makes of it, or is rejected',
    async (what, driver, options) => {
      const image = convertDisk(raw, driver, join(root, `damaged ${what}`), options);
      const places = damagesOf([
        [0, 4096],
        [0, Math.min(tables[driver], image.length)],
        [image.length - 2048, image.length],
        [0, image.length],
      ]);
      const verdicts: Record<string, number> = {};
      const check = async (changes: readonly Damage[], ranges: boolean): Promise<void> => {
        const changed = damaged(image, driver === 'vpc' || driver === 'qcow2' ? 'BE' : 'LE', changes);
        const { report, target } = await transfer(serve(changed, { ranges }), { retries: 0 });
        let verdict = report.outcome === 'failed' ? report.reason : 'different';
        if (report.outcome === 'succeeded') {
          const { format } = report.inspection;
          if (byQemu(changed, format)?.equals(readFileSync(target)) === true) verdict = `same as ${format}`;
        } else if (existsSync(target)) verdict = 'refused, and there';
        rmSync(target, { force: true });
        verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
        expect(verdict.startsWith('same') ? 'ImageCorrupt' : verdict).toMatch(ofImage);
      };
      await fc.assert(fc.asyncProperty(fc.array(places, { minLength: 1, maxLength: 3 }), fc.boolean(), check), {
        numRuns: 2 * effort,
      });
      console.info(`${what}, damaged:`, JSON.stringify(verdicts));
    },
    2 * fuzzTimeout,
  );

  it('a qcow2 reports Converting before it is done', async () => {
    const { progress } = await transfer(serve(images.get('qcow2') ?? Buffer.alloc(0)));
    expect([...new Set(progress.map(({ phase }) => phase))]).toEqual([
      'Inspecting',
      'Downloading',
      'Converting',
      'Verifying',
    ]);
    const downloading = progress.filter(({ phase }) => phase === 'Downloading');
    expect(downloading.every(({ percent }) => percent < 90)).toBe(true);
  });
});
