import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { type JobRun, podBytes, runImport } from '#test/support/job-memory.ts';
import { drawn } from '#test/support/random.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const root = temporaryDirectory();
const [kib, mib, gib] = [1024, 1024 ** 2, 1024 ** 3];
/** Bytes of a usual image's import. */
const mostBytes = 320 * mib;

/** 48 MiB of data, spread from end to end. */
const writeSpread = (raw: string, virtualSize: number): void => {
  const disk = openSync(raw, 'w');
  ftruncateSync(disk, virtualSize);
  const pieces = 768;
  const piece = Buffer.concat([noise('m', 32 * kib), Buffer.alloc(32 * kib, 'text ')]);
  for (let index = 0; index < pieces; index += 1) {
    piece.writeUInt32LE(index);
    const at = Math.floor(((virtualSize / pieces) * index) / (64 * kib)) * 64 * kib;
    writeSync(disk, piece, 0, piece.length, at);
  }
  closeSync(disk);
};

const serve = async (path: string) => {
  const { size } = statSync(path);
  const server = createServer((request, response) => {
    const { range } = request.headers;
    const [, first = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? [];
    const [start, end] = [Number(first), Math.min(size - 1, last === '' ? size - 1 : Number(last))];
    const part = range === undefined ? {} : { 'content-range': `bytes ${start}-${end}/${size}` };
    response.writeHead(range === undefined ? 200 : 206, { etag: '"v"', 'content-length': end - start + 1, ...part });
    createReadStream(path, { start, end }).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/disk`, close: () => server.close() };
};

/** Imports what a web server returns. */
const importOf = async (file: string, virtualSize: number): Promise<JobRun> => {
  const origin = await serve(file);
  try {
    return await runImport(root, { type: 'http', url: origin.url }, { capacityBytes: virtualSize });
  } finally {
    origin.close();
  }
};

describe.skipIf(!hasTools('qemu-img', 'xz', 'zstd'))('the memory of a transfer', () => {
  it('is the same for disks of 1 GiB and 200 GiB', { timeout: 120_000 }, async () => {
    const peaks: number[] = [];
    for (const virtualSize of [gib, 200 * gib]) {
      const [raw, file] = [join(root, `raw-${virtualSize}`), join(root, `${virtualSize}.qcow2`)];
      writeSpread(raw, virtualSize);
      runTool('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, file]);
      const { peak, outcome, target } = await importOf(file, virtualSize);
      expect(outcome).toBe('succeeded');
      // Fails if they differ. Nothing is read of holes.
      runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, target]);
      peaks.push(peak);
    }
    const [small = 0, large = 0] = peaks;
    expect(small).toBeGreaterThan(0);
    expect(large).toBeLessThan(mostBytes);
    expect(large - small).toBeLessThan(96 * mib);
  });

  const diskBytes = 256 * mib;
  /** 96 MiB without a hole, half of which packs; then none. */
  const writeDense = (raw: string): void => {
    const disk = openSync(raw, 'w');
    ftruncateSync(disk, diskBytes);
    const piece = Buffer.concat([noise('d', mib), Buffer.alloc(mib, 'text ')]);
    for (let index = 0; index < 48; index += 1) {
      for (let at = 0; at < mib; at += 32 * kib) piece.writeUInt32LE(index, at);
      writeSync(disk, piece, 0, piece.length, index * piece.length);
    }
    closeSync(disk);
  };
  const convert =
    (...args: readonly string[]) =>
    (raw: string, file: string): void => {
      runTool('qemu-img', ['convert', '-f', 'raw', ...args, raw, file]);
    };
  const pack =
    (command: string) =>
    (raw: string, file: string): void => {
      runTool('sh', ['-c', `${command} -c '${raw}' > '${file}'`]);
    };

  /** The decompressor allocates a dictionary of this many bytes (2^n or 3·2^(n-1), in `code`), whatever it was compressed with. */
  const withDictionary =
    (code: number) =>
    (raw: string, file: string): void => {
      runTool('sh', ['-c', `xz -0 -T1 -c '${raw}' > '${file}'`]);
      const whole = openSync(file, 'r+');
      const header = Buffer.from(readFileSync(file).subarray(12, 12 + 64));
      const bytes = (header[0]! + 1) * 4;
      // Size, flags, then LZMA2 (0x21), one byte of properties, and those.
      header[4] = code;
      header.writeUInt32LE(crc32(header.subarray(0, bytes - 4)), bytes - 4);
      writeSync(whole, header, 0, bytes, 12);
      closeSync(whole);
    };

  type Worst = readonly [what: string, make: (raw: string, file: string) => void, ends: RegExp];
  const worst: readonly Worst[] = [
    ['qcow2 with clusters of 2 MiB in zlib', convert('-c', '-O', 'qcow2', '-o', 'cluster_size=2M'), /^succeeded$/],
    [
      'qcow2 with clusters of 2 MiB in zstd',
      convert('-c', '-O', 'qcow2', '-o', 'cluster_size=2M,compression_type=zstd'),
      /^succeeded$/,
    ],
    ['qcow2 with clusters of 512 bytes', convert('-O', 'qcow2', '-o', 'cluster_size=512'), /^succeeded$/],
    ['raw disk in zst with a window of 128 MiB', pack('zstd -q -3 --long=27'), /^succeeded$/],
    [
      'qcow2 in zst with a window of 128 MiB',
      (raw, file): void => {
        runTool('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, `${file}.qcow2`]);
        pack('zstd -q -3 --long=27')(`${file}.qcow2`, file);
      },
      /^succeeded$/,
    ],
    ['raw disk in zst with a window of 256 MiB', pack('zstd -q -1 --long=28'), /window above 128 MiB/],
    [
      'raw disk in xz with a dictionary of 64 MiB, blocks side by side',
      pack('xz -0 -T2 --block-size=64MiB'),
      /^succeeded$/,
    ],
    ['raw disk in xz with a dictionary of 96 MiB', withDictionary(29), /^succeeded$/],
    ['raw disk in xz with a dictionary of 384 MiB', withDictionary(33), /more than .* of memory to unpack/],
    ['vhdx with blocks of 256 MiB', convert('-O', 'vhdx', '-o', 'block_size=256M'), /^succeeded$/],
    ['vmdk', convert('-O', 'vmdk', '-o', 'subformat=streamOptimized'), /^succeeded$/],
    ['vdi', convert('-O', 'vdi'), /^succeeded$/],
  ];
  it.each(drawn(worst, 1 / 6))(
    'of a %s stays within the limit of its pod',
    { timeout: 600_000 },
    async (what, make, ends) => {
      const folder = mkdtempSync(join(root, 'worst-'));
      const [raw, file] = [join(folder, 'raw'), join(folder, 'file')];
      writeDense(raw);
      make(raw, file);
      const { peak, outcome } = await importOf(file, diskBytes);
      rmSync(folder, { recursive: true });
      console.info(`${what}: ${Math.round(peak / mib)} MiB, ${outcome}`);
      expect(outcome).toMatch(ends);
      expect(peak).toBeLessThan(podBytes);
    },
  );
});
