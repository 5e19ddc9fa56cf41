// What `bullion download` asks for, and which names of files it refuses.
import { describe, expect, it } from 'vitest';
import { queryFor } from '#cli/commands/download.ts';

describe('a download', () => {
  it.each<[Record<string, string>, string | undefined, string]>([
    [{}, undefined, ''],
    [{}, 'disk.img', ''],
    [{}, 'disk.qcow2', ''],
    [{ compression: 'zstd' }, 'disk.qcow2', 'format=qcow2&compression=zstd'],
    [{ compression: 'zst' }, 'disk.raw.zst', 'format=raw&compression=zst'],
    [{ compression: 'gz' }, 'disk.GZ', 'format=raw&compression=gz'],
    [{ format: 'raw' }, 'disk.raw', 'format=raw&compression=none'],
    [{ format: 'raw' }, 'disc.iso', 'format=raw&compression=none'],
  ])('with %o into %s', (values, file, query) => {
    expect(queryFor({ values }, file)).toBe(query);
  });

  it.each<[Record<string, string>, string, string]>([
    [
      { compression: 'zst' },
      'a.qcow2',
      'a raw disk packed with zst: name a file that ends in .zst, or ask for another form (--format qcow2)',
    ],
    [
      { compression: 'gz' },
      'a.raw',
      'a raw disk packed with gz: name a file that ends in .gz, or ask for another form (--format raw)',
    ],
    [
      { format: 'raw' },
      'a.qcow2',
      'a raw disk: name a file that ends in .raw, or ask for another form (--format qcow2)',
    ],
    [{}, 'b/a.raw', 'a qcow2 disk: name a file that ends in .qcow2, or ask for another form (--format raw)'],
    [
      { compression: 'zstd' },
      'a.zst',
      'a qcow2 disk: name a file that ends in .qcow2, or ask for another form (--compression zst)',
    ],
  ])('with %o is refused into %s', (values, file, message) => {
    expect(() => queryFor({ values }, file)).toThrow(`${file} would hold ${message}`);
  });
});
