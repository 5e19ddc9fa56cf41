import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createFileSink, openSink } from './file.ts';
import { dataRuns } from './writer.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';

const root = temporaryDirectory();
const kib = 1024;
const { signal } = new AbortController();
const target = (volumeMode: 'Filesystem' | 'Block', name = 'disk.img') => ({
  path: join(mkdtempSync(join(root, 'sink-')), name),
  volumeMode,
  capacityBytes: 1024 * kib,
});

describe('dataRuns', () => {
  it('covers every non-zero byte, in order, without overlap', () => {
    const block = fc.tuple(fc.nat(70_000), fc.constantFrom(0, 7));
    fc.assert(
      fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
        const bytes = Buffer.concat(blocks.map(([length, value]) => Buffer.alloc(length, value)));
        const copy = Buffer.alloc(bytes.length);
        let last = -1;
        for (const { start, end } of dataRuns(bytes)) {
          expect(start).toBeGreaterThan(last);
          expect(end).toBeGreaterThan(start);
          bytes.copy(copy, start, start, end);
          last = end;
        }
        expect(copy.equals(bytes)).toBe(true);
      }),
    );
  });

  it('leaves zero blocks out', () => {
    expect(dataRuns(Buffer.alloc(1024 * kib))).toEqual([]);
    const bytes = Buffer.alloc(256 * kib);
    bytes[130 * kib] = 1;
    expect(dataRuns(bytes)).toEqual([{ start: 128 * kib, end: 160 * kib }]);
  });
});

describe('the file sink', () => {
  it('creates the disk only at commit, with its size and mode', async () => {
    const wanted = target('Filesystem');
    const sink = createFileSink(wanted, signal);
    await sink.prepare(0);
    await sink.write(noise('s', 100 * kib), 64 * kib);
    expect(existsSync(wanted.path)).toBe(false);
    await sink.commit(512 * kib);
    const disk = readFileSync(wanted.path);
    expect(disk).toHaveLength(512 * kib);
    expect(disk.subarray(64 * kib, 164 * kib).equals(noise('s', 100 * kib))).toBe(true);
    expect(statSync(wanted.path).mode & 0o777).toBe(0o660);
  });

  it('discards what an earlier pass wrote', async () => {
    const wanted = target('Filesystem');
    const sink = createFileSink(wanted, signal);
    await sink.prepare(0);
    await sink.write(noise('first', 100 * kib), 0);
    await sink.abandon();
    await sink.prepare(0);
    await sink.write(noise('second', 10 * kib), 50 * kib);
    await sink.commit(100 * kib);
    expect(
      readFileSync(wanted.path)
        .subarray(0, 50 * kib)
        .every((byte) => byte === 0),
    ).toBe(true);
  });

  it('reports a failed write as a fault of the target', async () => {
    const sink = createFileSink({ ...target('Filesystem'), path: '/proc/nowhere/disk.img' }, signal);
    await expect(sink.prepare(0)).rejects.toMatchObject({ code: 'TargetFailed' });
    await sink.abandon();
  });
});

describe.each(['Filesystem', 'Block'] as const)('a sink of a %s volume', (volumeMode) => {
  /** A device exists before it is written, and contains old data. */
  const open = async (bytes: number, preallocated: boolean, there = bytes) => {
    const wanted = { ...target(volumeMode), capacityBytes: bytes, diskBytes: bytes, preallocated };
    if (volumeMode === 'Block') writeFileSync(wanted.path, Buffer.alloc(there, 1));
    return { path: wanted.path, sink: await openSink(wanted, signal) };
  };

  it.each([
    ['all of its space when preallocation is requested', true],
    ['only the space of what was written', false],
  ])('allocates %s', async (_what, preallocated) => {
    const { path, sink } = await open(1024 * kib, preallocated);
    await sink.prepare(512 * kib);
    await sink.write(noise('s', 4 * kib), 64 * kib);
    await sink.commit(512 * kib);
    const { size, blocks } = statSync(path);
    expect(size).toBe(1024 * kib);
    expect(blocks * 512 >= size).toBe(preallocated);
    const disk = readFileSync(path);
    expect(disk.subarray(64 * kib, 68 * kib).equals(noise('s', 4 * kib))).toBe(true);
    expect(disk.subarray(68 * kib).every((byte) => byte === 0)).toBe(true);
  });

  it('fails when there is not enough space for all of it, and leaves nothing', async () => {
    const { path, sink } = await open(2 ** 50, true, 0);
    const write = async () => {
      await sink.prepare(512 * kib);
      await sink.commit(512 * kib);
    };
    // A file in place of a device reports a different error than one whose file system is full.
    const code = expect.stringMatching(volumeMode === 'Filesystem' ? /^TargetFull$/ : /^Target/) as string;
    await expect(write()).rejects.toMatchObject({ code });
    await sink.abandon();
    expect(existsSync(path) ? statSync(path).blocks : 0).toBe(0);
  });
});

const losetup = (...args: readonly string[]): string => {
  const { status, stdout, stderr } = spawnSync('losetup', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(stderr);
  return stdout.trim();
};
const canHaveDevices = (): boolean => spawnSync('losetup', ['--find']).status === 0 && process.getuid?.() === 0;

describe('the block sink', () => {
  it('rejects what is neither device nor file', async () => {
    await expect(openSink({ path: '/dev/null', volumeMode: 'Block', capacityBytes: 1 }, signal)).rejects.toMatchObject({
      code: 'TargetFailed',
    });
    await expect(
      openSink({ path: join(root, 'none'), volumeMode: 'Block', capacityBytes: 1 }, signal),
    ).rejects.toMatchObject({ code: 'TargetFailed' });
  });

  it('has no more than the size of the device', async () => {
    const wanted = target('Block');
    writeFileSync(wanted.path, Buffer.alloc(300 * kib));
    expect((await openSink(wanted, signal)).limitBytes).toBe(300 * kib);
  });

  // Needs a kernel with loop devices.
  it.runIf(canHaveDevices())('preallocates the whole device, or only what was written', async () => {
    const backing = target('Block').path;
    writeFileSync(backing, '');
    truncateSync(backing, 8192 * kib);
    const device = losetup('--find', '--show', backing);
    try {
      for (const preallocated of [true, false]) {
        const wanted = { path: device, volumeMode: 'Block', capacityBytes: 8192 * kib, preallocated } as const;
        const sink = await openSink(wanted, signal);
        await sink.prepare(4096 * kib);
        await sink.write(noise('d', 64 * kib), 1024 * kib);
        await sink.commit(4096 * kib);
        expect(statSync(backing).blocks * 512 >= 8192 * kib).toBe(preallocated);
        const disk = readFileSync(device);
        expect(disk.subarray(1024 * kib, 1088 * kib).equals(noise('d', 64 * kib))).toBe(true);
        expect(disk.subarray(1088 * kib).equals(Buffer.alloc(7104 * kib))).toBe(true);
      }
    } finally {
      losetup('--detach', device);
    }
  });

  it('leaves nothing that looks like a disk when it is aborted', async () => {
    const wanted = target('Block');
    writeFileSync(wanted.path, Buffer.alloc(300 * kib, 1));
    const sink = await openSink(wanted, signal);
    await sink.prepare(0);
    await sink.write(noise('b', 300 * kib), 0);
    await sink.abandon();
    expect(readFileSync(wanted.path).equals(Buffer.alloc(300 * kib))).toBe(true);
  });

  it('does not change a device that it never prepared', async () => {
    const wanted = target('Block');
    writeFileSync(wanted.path, Buffer.alloc(300 * kib, 1));
    await (await openSink(wanted, signal)).abandon();
    expect(readFileSync(wanted.path)[0]).toBe(1);
  });
});

describe('a block device that the user of the pod may not open', () => {
  const device = join(root, 'device');
  const isMade = process.getuid?.() === 0 && spawnSync('mknod', ['-m', '600', device, 'b', '7', '0']).status === 0;

  it.for([
    ['is written', `(await createBlockSink({ path, volumeMode: 'Block', capacityBytes: 1 }, signal)).prepare(1)`],
    ['is copied', 'openVolume({ type: "volume", path }, signal)'],
    ['is exported', 'lookAtVolume(path, 65536, signal)'],
  ])('%s: the first attempt reports what to configure, and is the last', ([_what, work], { skip }) => {
    skip(!isMade, 'only root makes devices that it gives to nobody');
    chmodSync(root, 0o755);
    const script = `
      const { createBlockSink } = await import('#shared/transfer/sink/block.ts');
      const { openVolume } = await import('#shared/transfer/source/handle.ts');
      const { lookAtVolume } = await import('#shared/transfer/export/volume.ts');
      const { toFailure } = await import('#shared/transfer/failure.ts');
      const [path, { signal }] = [${JSON.stringify(device)}, new AbortController()];
      const failure = await (async () => { await ${work}; })().catch(toFailure);
      process.stdout.write(JSON.stringify(failure ?? {}));`;
    const user = { uid: 107, gid: 107, env: { PATH: process.env['PATH'] } };
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { ...user });
    expect(stderr.toString()).toBe('');
    expect(JSON.parse(stdout.toString())).toEqual({
      reason: 'DeviceForbidden',
      retryable: false,
      message: expect.stringMatching(
        /user 107 .*EACCES.*device_ownership_from_security_context = true.*https:/,
      ) as string,
    });
  });
});
