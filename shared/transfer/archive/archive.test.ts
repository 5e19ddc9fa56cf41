// Archives as files of a folder: the unpacked files are the packed ones, and none is outside of it.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { damaged, damagesOf, withMendedSums } from '#test/support/damage.ts';
import { noise } from '#test/support/disk.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { tarOf } from '#test/support/registry/images.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

const unpack = async (
  archive: Buffer,
  more: Partial<TransferSpec> & { capacityBytes?: number; into?: string } = {},
) => {
  const own = mkdtempSync(join(root, 'archive-'));
  const into = more.into ?? join(own, 'target');
  mkdirSync(into, { recursive: true });
  writeFileSync(join(own, 'file'), archive);
  const spec = TransferSpec.parse({
    mode: 'import',
    source: { type: 'folder', dir: own, key: 'file' },
    target: { path: into, volumeMode: 'Filesystem', content: 'archive', capacityBytes: more.capacityBytes ?? 64 * mib },
    scratchDir: join(own, 'scratch'),
    limits: { retries: 0 },
    ...(more.checksum === undefined ? {} : { checksum: more.checksum }),
  });
  const report = await runTransfer(spec, {
    run: 'a',
    signal: new AbortController().signal,
    send: () => Promise.resolve(),
    log: () => {},
  });
  return { report, into };
};

/** Every file below `path` by its name. */
const filesIn = (path: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => [
        join(entry.parentPath, entry.name).slice(path.length + 1),
        readFileSync(join(entry.parentPath, entry.name)).toString('base64'),
      ]),
  );

const packed = (files: Readonly<Record<string, Buffer>>, ...options: readonly string[]): Buffer => {
  const source = mkdtempSync(join(root, 'source-'));
  for (const [name, bytes] of Object.entries(files)) {
    mkdirSync(dirname(join(source, name)), { recursive: true });
    writeFileSync(join(source, name), bytes);
  }
  return execFileSync('tar', ['-c', ...options, '-C', source, '.'], { maxBuffer: 256 * mib });
};

const files = {
  'a.txt': Buffer.from('hello'),
  'etc/deep/er/b.bin': noise('b', 3 * mib),
  'zeroes.img': Buffer.alloc(5 * mib),
  empty: Buffer.alloc(0),
  [`${'long/'.repeat(30)}name-${'x'.repeat(120)}`]: Buffer.from('far down'),
};
const expected = Object.fromEntries(Object.entries(files).map(([name, bytes]) => [name, bytes.toString('base64')]));

/** Called only for archives that were unpacked here: so they contain no link and no path outside. */
const verdictOfTar = (archive: Buffer, into: string): string => {
  const jail = mkdtempSync(join(root, 'jail-'));
  const { status } = spawnSync('tar', ['-x', '-C', jail, '--no-same-owner', '--no-same-permissions', '--mode=u+rwX'], {
    input: archive,
  });
  // GNU tar reports an invalid time, which is not needed, and unpacks the file.
  if (JSON.stringify(filesIn(jail)) === JSON.stringify(filesIn(into))) return 'same';
  return status === 0 ? 'different' : 'refused by tar';
};

describe('an archive', () => {
  it.each<[string, (archive: Buffer) => Buffer, string[]]>([
    ['none', (archive) => archive, ['--format=gnu']],
    ['none', (archive) => archive, ['--format=pax']],
    ['gz', (archive) => gzipSync(archive), ['--format=posix']],
    ['zst', (archive) => zstdCompressSync(archive), []],
    ['xz', (archive) => archive, ['--xz']],
    ['none', (archive) => archive, ['--format=gnu', `--listed-incremental=${join(root, 'gnu-snapshot')}`]],
    ['none', (archive) => archive, ['--format=posix', `--listed-incremental=${join(root, 'posix-snapshot')}`]],
  ])('in %s is unpacked', async (compression, pack, options) => {
    const { report, into } = await unpack(pack(packed(files, ...options)));
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'tar', compression } });
    expect(filesIn(into)).toEqual(expected);
    // Zeroes take no space.
    expect(statSync(join(into, 'zeroes.img')).blocks).toBeLessThan(100);
  });

  it('of any files is unpacked unchanged', async () => {
    const segment = fc.stringMatching(/^[a-zA-Z0-9 _äß.-]{1,40}$/).filter((text) => !/^\.+$/.test(text));
    const name = fc.array(segment, { minLength: 1, maxLength: 4 }).map((segments) => segments.join('/'));
    const content = fc.uint8Array({ maxLength: 3000 }).map((bytes) => Buffer.from(bytes));
    const isTree = (names: readonly string[]): boolean =>
      names.every((one) => names.every((other) => one === other || !other.startsWith(`${one}/`)));
    const anyFiles = fc.dictionary(name, content, { minKeys: 1, maxKeys: 6 }).filter((set) => isTree(Object.keys(set)));
    const check = async (set: Record<string, Buffer>): Promise<void> => {
      const { report, into } = await unpack(packed(set));
      expect(report.outcome).toBe('succeeded');
      expect(filesIn(into)).toEqual(
        Object.fromEntries(Object.entries(set).map(([key, bytes]) => [key, bytes.toString('base64')])),
      );
    };
    await fc.assert(fc.asyncProperty(anyFiles, check), { numRuns: 15 });
  });

  it(
    'is unpacked like GNU tar does, or rejected, however it was changed',
    async () => {
      const archive = packed(
        { 'a.txt': Buffer.from('hello'), 'b/c.bin': noise('c', 3000), [`d/${'n'.repeat(150)}`]: Buffer.from('far') },
        '--format=gnu',
      );
      const damage = fc.array(damagesOf([[0, archive.length]]), { minLength: 1, maxLength: 2 });
      const verdicts: Record<string, number> = {};
      await fc.assert(
        fc.asyncProperty(damage, fc.boolean(), async (changes, isMended) => {
          const broken = damaged(archive, 'BE', changes);
          const changed = isMended ? withMendedSums(broken) : broken;
          const { report, into } = await unpack(changed);
          const verdict = report.outcome === 'failed' ? report.reason : verdictOfTar(changed, into);
          verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
          expect(verdict).toMatch(
            /^(same|ImageCorrupt|ImageTruncated|UnsupportedFormat|ExternalReference|ImageTooLarge)$/,
          );
        }),
        { numRuns: 10 * effort },
      );
      console.info('tar, damaged:', JSON.stringify(verdicts));
    },
    fuzzTimeout,
  );

  it('replaces existing files', async () => {
    const into = mkdtempSync(join(root, 'old-'));
    mkdirSync(join(into, 'lost+found'));
    writeFileSync(join(into, 'old'), 'old');
    // Files that an earlier attempt could not have created, but somebody else did.
    symlinkSync(root, join(into, 'a'));
    const { report } = await unpack(tarOf([{ name: 'a/new', content: Buffer.from('new') }]), { into });
    expect(report.outcome).toBe('succeeded');
    expect(readdirSync(into).toSorted()).toEqual(['a', 'lost+found']);
    expect(existsSync(join(root, 'new'))).toBe(false);
  });
});

const content = Buffer.from('x'.repeat(100));
const good = { name: 'first', content };
const cut = (archive: Buffer, bytes: number): Buffer => archive.subarray(0, archive.length - bytes);

describe('is rejected, and leaves nothing', () => {
  it.each<[string, Buffer, string, RegExp]>([
    ['that leads out', tarOf([good, { name: '../out', content }]), 'ImageCorrupt', /leads out of it: "\.\.\/out"/],
    ['that leads out further down', tarOf([{ name: 'a/b/../../../out', content }]), 'ImageCorrupt', /leads out/],
    [
      'with a symbolic link',
      tarOf([good, { name: 'l', type: '2', link: '/etc' }]),
      'ExternalReference',
      /"l".*symbolic link/,
    ],
    ['with a hard link', tarOf([good, { name: 'l', type: '1', link: 'first' }]), 'ExternalReference', /hard link/],
    ['with a device', tarOf([good, { name: 'sda', type: '4' }]), 'UnsupportedFormat', /"sda".*a device/],
    ['with a file that is a folder, too', tarOf([good, { name: 'first/in', content }]), 'ImageCorrupt', /first\/in/],
    [
      'with a name no file system takes',
      tarOf([
        { name: `${'n'.repeat(99)}`, content },
        { name: 'first', type: 'L', content: Buffer.from('m'.repeat(300)) },
        good,
      ]),
      'ImageCorrupt',
      /ENAMETOOLONG/,
    ],
    [
      'with a name that is not valid text',
      tarOf([
        { name: 'first', type: 'L', content: Buffer.from([0x61, 0xe4]) },
        { name: 'a', content },
      ]),
      'ImageCorrupt',
      /not UTF-8/,
    ],
    ['that ends within a file', cut(tarOf([good]), 1400), 'ImageCorrupt', /ends within a file/],
    ['that ends between files', cut(tarOf([good]), 1024), 'ImageCorrupt', /ends too early/],
    ['that is a disk', noise('disk', mib), 'UnsupportedFormat', /takes a tar archive/],
    ['that is all zero', Buffer.alloc(mib), 'UnsupportedFormat', /takes a tar archive/],
    [
      'that is larger than the volume',
      tarOf([{ name: 'big', content: Buffer.alloc(3 * mib) }]),
      'ImageTooLarge',
      /larger volume/,
    ],
  ])('one %s', async (_what, archive, reason, message) => {
    const { report, into } = await unpack(archive, { capacityBytes: 2 * mib });
    expect(report).toMatchObject({
      outcome: 'failed',
      reason,
      retryable: false,
      message: expect.stringMatching(message),
    });
    expect(readdirSync(into)).toEqual([]);
  });

  it('when it is packed and larger than it declares', async () => {
    const archive = gzipSync(tarOf([good, { name: 'second', content: Buffer.alloc(40 * mib) }]));
    expect(archive.length).toBeLessThan(mib);
    const { report, into } = await unpack(archive, { capacityBytes: 2 * mib });
    expect([report, readdirSync(into)]).toMatchObject([{ reason: 'ImageTooLarge' }, []]);
  });

  it('when its checksum differs', async () => {
    const checksum = { algorithm: 'sha256', hex: '0'.repeat(64) } as const;
    const { report, into } = await unpack(tarOf([good]), { checksum });
    expect([report, readdirSync(into)]).toMatchObject([{ reason: 'ChecksumMismatch' }, []]);
  });

  it('for a block device', async () => {
    const spec = TransferSpec.parse({
      mode: 'import',
      source: { type: 'blank' },
      target: { path: '/dev/null', volumeMode: 'Block', content: 'archive', capacityBytes: mib },
      scratchDir: root,
    });
    const options = { run: 'a', signal: new AbortController().signal, send: () => Promise.resolve(), log: () => {} };
    expect(await runTransfer(spec, options)).toMatchObject({
      reason: 'InvalidSpec',
      message: expect.stringMatching(/Filesystem/),
    });
  });
});

describe('the files of a volume', () => {
  const copy = async (from: string) => {
    const into = mkdtempSync(join(root, 'copy-'));
    writeFileSync(join(into, 'old'), 'old');
    const spec = TransferSpec.parse({
      mode: 'import',
      source: { type: 'volume', path: from },
      target: { path: into, volumeMode: 'Filesystem', content: 'archive', capacityBytes: 64 * mib },
      scratchDir: join(into, 'scratch'),
      limits: { retries: 0 },
    });
    const signal = new AbortController().signal;
    const report = await runTransfer(spec, { run: 'a', signal, send: () => Promise.resolve(), log: () => {} });
    return { report, into };
  };
  const aVolume = (): string => {
    const from = mkdtempSync(join(root, 'volume-'));
    mkdirSync(join(from, 'a', 'empty'), { recursive: true });
    mkdirSync(join(from, 'lost+found'));
    writeFileSync(join(from, 'a', 'large'), noise('large', 3 * mib), { mode: 0o640 });
    writeFileSync(join(from, 'nothing'), '');
    writeFileSync(join(from, 'lost+found', 'inode'), 'x');
    return from;
  };

  it('are copied to another one, and replace existing files', async () => {
    const from = aVolume();
    const { report, into } = await copy(from);
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'tar' }, writtenBytes: 3 * mib });
    const { 'lost+found/inode': _, ...wanted } = filesIn(from);
    expect(filesIn(into)).toEqual(wanted);
    expect(statSync(join(into, 'a', 'empty')).isDirectory()).toBe(true);
    expect(statSync(join(into, 'a', 'large')).mode & 0o777).toBe(0o640);
  });

  it('are rejected with a link among them, which is not followed, and leave nothing', async () => {
    const from = aVolume();
    symlinkSync('/etc/passwd', join(from, 'link'));
    const { report, into } = await copy(from);
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ExternalReference', retryable: false });
    expect(filesIn(into)).toEqual({});
  });
});
