import { spawnSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { beforeAll, describe, expect, it } from 'vitest';
import { bufferReader, roundToSector } from '#shared/transfer/format/disk.ts';
import { type StructuredFormat, inspectDisk, verifyDisk } from '#shared/transfer/format/inspect.ts';
import { fixedVhdSize } from '#shared/transfer/format/vhd.ts';
import { vhdxSum } from '#shared/transfer/format/vhdx.ts';
import { damaged, damagesOf } from '#test/support/damage.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { convertDisk, writeDisk } from '#test/support/disk.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const diskBytes = 24 * 1024 * 1024;

interface Kind {
  readonly name: string;
  readonly format: StructuredFormat;
  readonly driver: string;
  readonly options: readonly string[];
}

const kinds: readonly Kind[] = [
  { name: 'dynamic vdi', format: 'vdi', driver: 'vdi', options: [] },
  { name: 'fixed vdi', format: 'vdi', driver: 'vdi', options: ['-o', 'static=on'] },
  { name: 'dynamic vhd', format: 'vhd', driver: 'vpc', options: ['-o', 'force_size=on'] },
  { name: 'vhdx', format: 'vhdx', driver: 'vhdx', options: ['-o', 'block_size=1M'] },
  { name: 'sparse vmdk', format: 'vmdk', driver: 'vmdk', options: [] },
  { name: 'streamOptimized vmdk', format: 'vmdk', driver: 'vmdk', options: ['-o', 'subformat=streamOptimized'] },
];

/** qemu-img pads some files with zeroes that mean nothing. */
const withoutPadding = (image: Buffer): Buffer => image.subarray(0, image.findLastIndex((byte) => byte !== 0) + 1);

const look = async (format: StructuredFormat, bytes: Buffer): Promise<number> => {
  const reader = bufferReader(bytes, bytes.length);
  const { virtualSize } = await inspectDisk(format, reader);
  await verifyDisk(format, reader);
  // As in `scratch-route.ts`.
  return roundToSector(virtualSize);
};

describe.skipIf(!hasTools('qemu-img'))('formats with a structure', () => {
  const directory = temporaryDirectory();
  const raw = join(directory, 'disk.raw');
  const images = new Map<string, Buffer>();
  beforeAll(() => {
    writeDisk(raw, diskBytes);
    for (const { name, driver, options } of kinds)
      images.set(name, convertDisk(raw, driver, join(directory, name), options));
  });
  const imageOf = ({ name }: Kind): Buffer => images.get(name) ?? Buffer.alloc(0);

  it.each(kinds)('a $name is accepted with its size', async (kind) => {
    expect(await look(kind.format, imageOf(kind))).toBe(diskBytes);
  });

  it.each(kinds)('a $name is rejected when its end is missing', async (kind) => {
    const image = withoutPadding(imageOf(kind));
    for (const part of [0.99, 0.7, 0.4, 0.1]) {
      const cut = image.subarray(0, Math.floor((image.length * part) / 512) * 512);
      await expect(look(kind.format, cut)).rejects.toMatchObject({ code: 'ImageTruncated' });
    }
  });

  /** Bytes of the guest's disk in a file, as qemu-img reads it; `undefined` if it does not. */
  const sizeByQemu = (driver: string, image: Buffer): number | undefined => {
    const path = join(directory, 'damaged');
    const [target, extra] = [join(directory, 'damaged.raw'), driver === 'vpc' ? ',force_size_calc=current_size' : ''];
    writeFileSync(path, image);
    const source = `driver=${driver}${extra},file.driver=file,file.filename=${path}`;
    const { status } = spawnSync('qemu-img', ['convert', '--image-opts', source, '-O', 'raw', target], {
      timeout: 20_000,
    });
    return status === 0 ? statSync(target).size : undefined;
  };

  it('a vdi whose size ends within a sector has the whole sector, as with qemu-img', async () => {
    const image = Buffer.from(imageOf(kinds[0] as Kind));
    image.writeUInt32LE(diskBytes - 1, 368);
    expect([await look('vdi', image), sizeByQemu('vdi', image)]).toEqual([diskBytes, diskBytes]);
  });

  it.each(kinds)(
    'a $name with damaged tables is the disk that qemu-img reads, or rejected',
    async (kind) => {
      const { name, format, driver } = kind;
      const image = imageOf(kind);
      const tables = format === 'vhdx' ? 4 * 1024 * 1024 : 128 * 1024;
      const order = format === 'vhd' ? 'BE' : 'LE';
      const places = damagesOf([
        [0, 2048],
        [0, 128 * 1024],
        [0, Math.min(tables, image.length)],
        [image.length - 2048, image.length],
      ]);
      const verdicts: Record<string, number> = {};
      await fc.assert(
        fc.asyncProperty(fc.array(places, { minLength: 1, maxLength: 3 }), async (changes) => {
          const changed = damaged(image, order, changes);
          let size: number | undefined;
          let verdict = await refusalOf(async () => (size = await look(format, changed)));
          if (size !== undefined && size <= 2 * diskBytes) {
            const byQemu = sizeByQemu(driver, changed);
            verdict = byQemu === undefined ? 'left to qemu-img' : byQemu === size ? 'same' : 'different';
          }
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
          expect(verdict).not.toBe('different');
        }),
        { numRuns: 4 * effort },
      );
      console.info(`${name}, damaged:`, JSON.stringify(verdicts));
    },
    fuzzTimeout,
  );

  it.each([1, 2])('a vhdx whose header %i has a log is rejected with the command that replays it', async (newest) => {
    const image = Buffer.from(imageOf(kinds[3] as Kind));
    const header = image.subarray(newest * 65_536, newest * 65_536 + 4096);
    header.writeBigUInt64LE(2n ** 40n, 8);
    header.fill(0xab, 48, 64);
    header.writeUInt32LE(vhdxSum(header), 4);
    await expect(look('vhdx', image)).rejects.toThrow(/not closed cleanly.*qemu-img check -r all/);
    // A header with another sum was never written to its end.
    header[4] = header[4]! ^ 1;
    expect(await look('vhdx', image)).toBe(diskBytes);
  });

  it.skipIf(!hasTools('qemu-io'))(
    'a vhdx whose writer was interrupted is rejected until its log is replayed',
    async () => {
      const path = join(directory, 'interrupted.vhdx');
      writeFileSync(path, imageOf(kinds[3] as Kind));
      // All writes except the block table at 2 MiB: that is only in the log.
      const failing =
        'driver=vhdx,file.driver=blkdebug,file.inject-error.0.event=none,file.inject-error.0.iotype=write,' +
        `file.inject-error.0.sector=4096,file.image.driver=file,file.image.filename=${path}`;
      spawnSync('qemu-io', ['--image-opts', failing, '-c', 'write -P 0x55 20M 64k']);
      await expect(look('vhdx', readFileSync(path))).rejects.toThrow(/not closed cleanly.*qemu-img check -r all/);
      runTool('qemu-img', ['check', '-q', '-f', 'vhdx', '-r', 'all', path]);
      expect(await look('vhdx', readFileSync(path))).toBe(diskBytes);
    },
  );

  it.each<[string, StructuredFormat, string, readonly string[]]>([['vmdk', 'vmdk', 'vmdk', []]])(
    'a %s with a parent is rejected',
    async (_, format, driver, options) => {
      const child = join(directory, `child.${driver}`);
      runTool('qemu-img', [
        'create',
        '-q',
        '-f',
        driver,
        ...options,
        '-b',
        join(directory, 'sparse vmdk'),
        '-F',
        driver,
        child,
      ]);
      await expect(look(format, readFileSync(child))).rejects.toMatchObject({ code: 'ExternalReference' });
    },
  );

  it.each([
    ['monolithicFlat', /descriptor|extents|monolithicFlat/],
    ['twoGbMaxExtentSparse', /descriptor|extents|twoGb/],
  ])('a vmdk descriptor of type %s is rejected', async (subformat, words) => {
    const target = join(directory, `${subformat}.vmdk`);
    runTool('qemu-img', ['create', '-q', '-f', 'vmdk', '-o', `subformat=${subformat}`, target, '1M']);
    const text = readFileSync(target);
    expect(text.toString('latin1')).toMatch(/Disk DescriptorFile/);
    const hidden = Buffer.concat([sparseHeader(), text]);
    await expect(look('vmdk', hidden)).rejects.toThrow(words);
  });

  /** A sparse header with capacity 0 makes qemu use the descriptor after it, including its extents. */
  const sparseHeader = (): Buffer => {
    const header = Buffer.from(imageOf(kinds[4] as Kind).subarray(0, 512));
    header.writeBigUInt64LE(0n, 12);
    return header;
  };

  /** The descriptor is at the offset that qemu-img uses, with room for 20 sectors. */
  const described = (text: string, kind = 5): Buffer => {
    const image = Buffer.from(imageOf(kinds[kind] as Kind));
    image.fill(0, 512, 21 * 512);
    image.write(text, 512, 'latin1');
    return image;
  };
  const descriptor = (extent: string, more = ''): string =>
    `# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="streamOptimized"\n${more}# Extent description\n${extent}\n`;
  const sectors = diskBytes / 512;

  it.each([
    ['RDONLY', descriptor(`RDONLY ${sectors} SPARSE "generated-stream.vmdk"`)],
    ['another name', descriptor(`RW ${sectors} SPARSE "call-me-stream.vmdk"`)],
    ['a name with a path', descriptor(`RW ${sectors} SPARSE "/vmfs/volumes/a b/c.vmdk"`)],
    ['lines of Windows', descriptor(`RDONLY ${sectors} SPARSE "a.vmdk"`).replaceAll('\n', '\r\n')],
    ['odd spacing', descriptor(`  rdonly\t ${sectors}   sparse\t"a.vmdk"  `)],
    ['comments', descriptor(`RW ${sectors} SPARSE "a.vmdk"`, '# RW 5 FLAT "b.vmdk" 0\n')],
    [
      'a version of the tools',
      descriptor(`RW ${sectors} SPARSE "a.vmdk"`, 'ddb.toolsVersion = "2147483647"\nddb.toolsInstallType = "4"\n'),
    ],
    [
      'long CIDs',
      descriptor(`RW ${sectors} SPARSE "a.vmdk"`, 'ddb.longContentID = "0123456789abcdef0123456789abcdef"\n').replace(
        '=ffffffff',
        '=ffffffffffffffff',
      ),
    ],
    [
      'a type in other letters',
      descriptor(`RW ${sectors} SPARSE "a.vmdk"`).replace('createType="s', 'createType = "S'),
    ],
  ])('a vmdk descriptor with %s is read as qemu-img reads it', async (_what, text) => {
    const path = join(directory, 'described.vmdk');
    writeFileSync(path, described(text));
    expect(await look('vmdk', readFileSync(path))).toBe(diskBytes);
    runTool('qemu-img', ['compare', '-f', 'vmdk', '-F', 'raw', path, raw]);
  });

  it.each([
    ['NOACCESS', descriptor(`NOACCESS ${sectors} SPARSE "a.vmdk"`), 'UnsupportedFormat', /NOACCESS/],
    ['two extents', descriptor('RW 4 SPARSE "a.vmdk"\nRDONLY 4 SPARSE "b.vmdk"'), 'ExternalReference', /2 extents/],
    ['no extent', descriptor(''), 'ExternalReference', /no extent/],
    ['a flat extent', descriptor(`RDONLY ${sectors} FLAT "/etc/passwd" 0`), 'ExternalReference', /a FLAT extent/],
    ['a device', descriptor(`RW ${sectors} VMFSRDM "/dev/sda"`), 'ExternalReference', /a VMFSRDM extent/],
    [
      'another parent',
      descriptor(`RW ${sectors} SPARSE "a.vmdk"`).replace('=ffffffff', '=fffffffe1'),
      'ExternalReference',
      /parent/,
    ],
    ['nothing', '', 'ExternalReference', /one piece of a disk that is split/],
  ])('a vmdk descriptor with %s is rejected', async (...[, text, code, words]) => {
    const fault = { code, message: expect.stringMatching(words) };
    await expect(look('vmdk', described(text))).rejects.toMatchObject(fault);
  });

  it('a part of a split vmdk is rejected, in every form without a descriptor', async () => {
    const whole = join(directory, 'split.vmdk');
    runTool('qemu-img', ['create', '-q', '-f', 'vmdk', '-o', 'subformat=twoGbMaxExtentSparse', whole, '24M']);
    const piece = readFileSync(join(directory, 'split-s001.vmdk'));
    const bare = Buffer.from(piece);
    bare.fill(0, 28, 44);
    const fault = { code: 'ExternalReference', message: expect.stringMatching(/-s001\.vmdk/) };
    for (const image of [piece, bare]) await expect(look('vmdk', image)).rejects.toMatchObject(fault);
  });

  it('a vmdk whose descriptor names another file is rejected', async () => {
    const image = Buffer.from(imageOf(kinds[4] as Kind));
    const at = image.indexOf('RW ');
    image.write('RW 1 FLAT "/etc/passwd" 0\n', at, 'latin1');
    await expect(look('vmdk', image)).rejects.toMatchObject({ code: 'ExternalReference' });
  });

  it.each([
    ['vdi', 'vdi', 0x4c, 4],
    ['vhd', 'vhd', 63, 4],
  ] as const)('a difference %s is refused', async (_, format, at, value) => {
    const image = Buffer.from(imageOf(kinds.find((kind) => kind.format === format) as Kind));
    image[at] = value;
    if (format === 'vhd') image.writeUInt32BE(image.readUInt32BE(64) - 1, 64);
    await expect(look(format, image)).rejects.toMatchObject({ code: 'ExternalReference' });
  });

  it('a fixed vhd is recognized by its footer alone', () => {
    const image = convertDisk(raw, 'vpc', join(directory, 'fixed.vhd'), ['-o', 'subformat=fixed,force_size=on']);
    expect(fixedVhdSize(image.subarray(-512), image.length)).toBe(diskBytes);
    expect(fixedVhdSize(image.subarray(-512), image.length + 1)).toBeUndefined();
    expect(fixedVhdSize(readFileSync(raw).subarray(-512), diskBytes)).toBeUndefined();
  });
});
