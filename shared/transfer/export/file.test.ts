import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { temporaryDirectory } from '#test/support/directory.ts';
import { writeDisk } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { type ExportFile, type ExportFileOptions, openExportFile } from './file.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

const bytesOf = async (file: ExportFile, range?: Parameters<ExportFile['read']>[0]): Promise<Buffer> => {
  const parts: Buffer[] = [];
  for await (const part of file.read(range)) parts.push(part);
  return Buffer.concat(parts);
};

describe.skipIf(!hasTools('qemu-img'))('an export as a file', () => {
  const opened: ExportFile[] = [];
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((file) => file.close()));
  });
  const open = async (over: Partial<ExportFileOptions> = {}): Promise<ExportFile> => {
    const signal = new AbortController().signal;
    const file = await openExportFile({ path, form: { format: 'qcow2', compression: 'none' }, signal, ...over });
    opened.push(file);
    return file;
  };
  const path = join(mkdtempSync(join(root, 'file-')), 'disk.img');
  writeDisk(path, 24 * mib + 1024);

  it.each([
    { compression: 'none', zeroes: 'map' },
    { compression: 'none', zeroes: 'read' },
    { compression: 'zlib', zeroes: 'map' },
    { compression: 'zstd', zeroes: 'read' },
  ] as const)('is a sound qcow2 of known size, whole and in ranges ($compression, $zeroes)', async (form) => {
    const file = await open({ form: { format: 'qcow2', compression: form.compression }, zeroes: form.zeroes });
    const whole = await bytesOf(file);
    expect(whole.length).toBe(file.size);
    const target = join(root, `${form.compression}-${form.zeroes}.qcow2`);
    writeFileSync(target, whole);
    runTool('qemu-img', ['check', '-f', 'qcow2', target]);
    runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', path, target]);
    const last = whole.length - 1;
    for (const [first, end] of [
      [0, 0],
      [1, 100_000],
      [262_143, 700_001],
      [last - 70_000, last],
      [last, last],
    ] as const) {
      expect((await bytesOf(file, { first, last: end })).equals(whole.subarray(first, end + 1))).toBe(true);
    }
    expect((await bytesOf(file, { first: 333_333 })).equals(whole.subarray(333_333))).toBe(true);
  });

  const [sparse, allocated, half] = ['sparse.img', 'allocated.img', 'half.img'].map((name) => join(root, name));
  it.each([
    ['with holes', sparse!, () => writeDisk(sparse!, 64 * mib)],
    ['that is allocated in full', allocated!, () => writeFileSync(allocated!, readFileSync(sparse!))],
    [
      'of which one part is allocated in full',
      half!,
      () => {
        writeDisk(half!, 64 * mib);
        writeFileSync(half!, readFileSync(sparse!).subarray(0, 20 * mib), { flag: 'r+' });
      },
    ],
  ])('contains no cluster of zeroes, from a disk %s', async (_what, from, make) => {
    make();
    const file = await open({ path: from });
    expect(file.size).toBeLessThan(3 * mib);
    const target = join(root, 'small.qcow2');
    writeFileSync(target, await bytesOf(file));
    runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'qcow2', from, target]);
  });

  it('supports ranges as a raw disk', async () => {
    const raw = readFileSync(path);
    const file = await open({ form: { format: 'raw', compression: 'none' } });
    expect(file).toMatchObject({ size: raw.length, hasRanges: true, extension: 'raw' });
    expect((await bytesOf(file)).equals(raw)).toBe(true);
    expect((await bytesOf(file, { first: 999_999, last: 1_500_000 })).equals(raw.subarray(999_999, 1_500_001))).toBe(
      true,
    );
  });

  it('keeps its ETag while nothing changes', async () => {
    const before = await open();
    expect((await open()).etag).toBe(before.etag);
    expect((await open({ form: { format: 'raw', compression: 'none' } })).etag).not.toBe(before.etag);
  });

  it('fails when the volume is written meanwhile', async () => {
    const other = join(root, 'changing.img');
    writeDisk(other, 8 * mib);
    const file = await open({ path: other, form: { format: 'qcow2', compression: 'zlib' } });
    writeFileSync(other, Buffer.alloc(8 * mib));
    await expect(bytesOf(file)).rejects.toMatchObject({ code: 'SourceChanged' });
  });

  it('ends when it is cancelled', async () => {
    const cancel = new AbortController();
    const file = await open({ signal: cancel.signal });
    cancel.abort(new Error('enough'));
    await expect(bytesOf(file)).rejects.toThrow('enough');
  });
});
