// What a volume is made from is the file of the backing image, and nothing that it names.
import { existsSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openBackingFiles } from '#local-cluster/longhorn/files.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const root = temporaryDirectory();
const secret = join(root, 'secret');
writeFileSync(secret, Buffer.alloc(65_536, 'secret '));

const unpacked = async (file: Buffer): Promise<Buffer> => {
  const own = mkdtempSync(join(root, 'files-'));
  const files = await openBackingFiles(own);
  async function* bytes() {
    yield file;
  }
  await files.write('a', bytes(), () => {});
  const target = join(own, 'volume');
  try {
    await files.unpack('a', target);
  } catch (error) {
    expect(existsSync(join(target, 'block'))).toBe(false);
    throw error;
  }
  return readFileSync(join(target, 'block'));
};

const qcow2 = (...options: readonly string[]): Buffer => {
  const path = join(mkdtempSync(join(root, 'made-')), 'disk.qcow2');
  runTool('qemu-img', ['create', '-q', '-f', 'qcow2', ...options, path, '1M']);
  return readFileSync(path);
};

describe.skipIf(!hasTools('qemu-img'))('a volume of a backing image', () => {
  it('is the disk in it', async () => {
    expect((await unpacked(qcow2())).equals(Buffer.alloc(2 ** 20))).toBe(true);
    expect((await unpacked(Buffer.alloc(1024, 1))).equals(Buffer.alloc(1024, 1))).toBe(true);
  });

  it.each([
    ['a backing file', () => qcow2('-b', secret, '-F', 'raw'), /has a backing file/],
    ['a data file', () => qcow2('-o', `data_file=${join(root, 'data')},data_file_raw=on`), /external data file/],
    ['a missing end', () => qcow2().subarray(0, 70_000), /beyond the file/],
    ['half a sector', () => Buffer.alloc(1000, 1), /multiple of 512/],
  ])('with %s is not made', async (_what, make, words) => {
    await expect(unpacked(make())).rejects.toThrow(words);
  });
});
