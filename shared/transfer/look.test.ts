// An inspection of a source determines the size of its disk before anything is created for it: each published format, plain and compressed, over HTTP, whether
// or not the server reports the length of the file.
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { beforeAll, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, noise, writeDisk } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { serve, transfer } from '#test/support/transfer.ts';

const mib = 2 ** 20;
const diskBytes = 24 * mib;
/** `CD001` at the offset of the first descriptor of a disc. */
const disc = noise('disc', 4 * mib);
disc.write('CD001', 0x80_01, 'latin1');

describe.skipIf(!hasTools('qemu-img', 'xz'))('the size of a disk is determined before its transfer', () => {
  const dir = temporaryDirectory();
  const raw = join(dir, 'disk.raw');
  beforeAll(() => writeDisk(raw, diskBytes));
  const made =
    (driver: string, ...options: string[]) =>
    (): Buffer =>
      convertDisk(raw, driver, join(dir, [driver, ...options].join('-').replaceAll(/[^a-z0-9-]/gi, '_')), options);
  const forms: readonly (readonly [name: string, format: string, make: () => Buffer, virtualSize: number])[] = [
    ['raw', 'raw', made('raw'), diskBytes],
    ['qcow2', 'qcow2', made('qcow2'), diskBytes],
    ['vmdk', 'vmdk', made('vmdk'), diskBytes],
    ['vmdk as OVA has it', 'vmdk', made('vmdk', '-o', 'subformat=streamOptimized'), diskBytes],
    ['vdi', 'vdi', made('vdi'), diskBytes],
    ['vhd', 'vhd', made('vpc', '-o', 'force_size=on'), diskBytes],
    ['vhdx', 'vhdx', made('vhdx', '-o', 'block_size=1M'), diskBytes],
    ['ISO', 'iso', () => disc, disc.length],
  ];
  const packings: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
    gz: (bytes) => gzipSync(bytes, { level: 1 }),
    zst: (bytes) => zstdCompressSync(bytes),
    xz: (bytes) => runTool('xz', ['-0', '-c'], bytes),
  };

  it.each(forms)('of %s, from a small part of it', async (_name, format, make, virtualSize) => {
    const { report } = await transfer(serve(make()), { mode: 'inspect' });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format, virtualSize }, writtenBytes: 0 });
    expect(report).toMatchObject({ receivedBytes: expect.toSatisfy((count: number) => count <= 3 * mib) });
  });

  it.each(forms)('of %s, of any length and without ranges', async (_name, format, make, virtualSize) => {
    const { report } = await transfer(serve(make(), { ranges: false, chunked: true, etag: null }), { mode: 'inspect' });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format, virtualSize }, writtenBytes: 0 });
  });

  it.each(Object.keys(packings))('of each of them in %s', async (compression) => {
    for (const [, format, make, virtualSize] of forms) {
      const { report } = await transfer(serve(packings[compression]!(make())), { mode: 'inspect' });
      expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format, compression, virtualSize } });
    }
  });
});
