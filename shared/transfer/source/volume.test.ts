import { mkdtempSync, readFileSync, readdirSync, statSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runTransfer } from '#shared/transfer/run.ts';
import { TransferSpec } from '#shared/transfer/spec.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

interface Wanted {
  readonly content?: Buffer;
  readonly target?: Partial<TransferSpec['target']>;
  readonly source?: TransferSpec['source'];
}

const copy = async ({ content = noise('seed', 3 * mib), target = {}, source }: Wanted) => {
  const dir = mkdtempSync(join(root, 'copy-'));
  const from = join(dir, 'from');
  const to = join(dir, 'to');
  writeFileSync(from, content);
  if (target?.volumeMode === 'Block') {
    writeFileSync(to, '');
    truncateSync(to, target.capacityBytes);
  }
  const spec = TransferSpec.parse({
    mode: 'import',
    source: source ?? { type: 'volume', path: from },
    target: { path: to, volumeMode: 'Filesystem', capacityBytes: 64 * mib, ...target },
    scratchDir: join(dir, 'scratch'),
    limits: { retries: 0 },
  });
  const report = await runTransfer(spec, {
    run: 'run-1',
    signal: new AbortController().signal,
    send: () => Promise.resolve(),
    log: () => {},
  });
  return { report, to, names: readdirSync(dir) };
};

describe('copying a volume', () => {
  it('copies every byte into a file', async () => {
    const content = noise('seed', 3 * mib);
    const { report, to } = await copy({ content });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'raw', virtualSize: 3 * mib } });
    expect(readFileSync(to).equals(content)).toBe(true);
  });

  it('copies onto a larger device, and zeroes the rest', async () => {
    const content = noise('seed', 2 * mib);
    const { to } = await copy({ content, target: { volumeMode: 'Block', capacityBytes: 5 * mib } });
    const found = readFileSync(to);
    expect(found.length).toBe(5 * mib);
    expect(found.subarray(0, 2 * mib).equals(content)).toBe(true);
    expect(found.subarray(2 * mib).every((byte) => byte === 0)).toBe(true);
  });

  it('grows the disk of a larger file system', async () => {
    const content = noise('seed', 2 * mib);
    const { to } = await copy({ content, target: { diskBytes: 7 * mib } });
    expect(statSync(to).size).toBe(7 * mib);
    expect(
      readFileSync(to)
        .subarray(0, 2 * mib)
        .equals(content),
    ).toBe(true);
  });

  it('writes no zeroes', async () => {
    const content = Buffer.concat([noise('seed', mib), Buffer.alloc(30 * mib), noise('seed', mib)]);
    const { report, to } = await copy({ content });
    expect(report).toMatchObject({ outcome: 'succeeded', writtenBytes: 2 * mib });
    expect(readFileSync(to).equals(content)).toBe(true);
  });

  it.each([
    [
      'a qcow2 file with a backing file',
      Buffer.concat([Buffer.from('QFI\xfb\0\0\0\x03', 'latin1'), noise('seed', mib)]),
    ],
    ['a gzip file', Buffer.concat([Buffer.from([0x1f, 0x8b, 8, 0]), noise('seed', mib - 4)])],
    ['a vhd, by its footer', Buffer.concat([noise('seed', mib), Buffer.from('conectix'), Buffer.alloc(504)])],
  ])('never parses a guest disk that looks like %s', async (_what, written) => {
    const content = Buffer.concat([written, Buffer.alloc(512 - (written.length % 512 || 512))]);
    const { report, to } = await copy({ content });
    expect(report).toMatchObject({ outcome: 'succeeded', inspection: { format: 'raw', compression: 'none' } });
    expect(readFileSync(to).equals(content)).toBe(true);
  });

  it('rejects a target that is too small, with both sizes, and writes nothing', async () => {
    const { report, names } = await copy({ target: { capacityBytes: mib } });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ImageTooLarge', retryable: false });
    expect(report).toMatchObject({ message: expect.stringMatching(/3145728 bytes.*1048576 bytes/) });
    expect(names).not.toContain('to');
  });

  it('follows no link out of the volume', async () => {
    const link = join(root, 'link');
    symlinkSync('/etc/passwd', link);
    const { report } = await copy({ source: { type: 'volume', path: link } });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'SourceInterrupted' });
  });

  it('retries later when the source cannot be read', async () => {
    const { report } = await copy({ source: { type: 'volume', path: join(root, 'is not there') } });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'SourceInterrupted', retryable: true });
  });
});

describe('a blank disk', () => {
  it('is an empty file of the requested size', async () => {
    const { report, to } = await copy({ source: { type: 'blank' }, target: { diskBytes: 9 * mib } });
    expect(report).toMatchObject({ outcome: 'succeeded', writtenBytes: 0 });
    expect(statSync(to)).toMatchObject({ size: 9 * mib });
    expect(readFileSync(to).every((byte) => byte === 0)).toBe(true);
  });

  it('clears a device with old data', async () => {
    const { to } = await copy({ source: { type: 'blank' }, target: { volumeMode: 'Block', capacityBytes: mib } });
    expect(readFileSync(to).every((byte) => byte === 0)).toBe(true);
  });
});
