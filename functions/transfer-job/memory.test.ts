import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, ftruncateSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { defaultSettings } from '#shared/populate/settings.ts';
import { parseReport } from '#shared/transfer/report.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';
import { parseQuantity } from '#shared/api/quantity.ts';

const root = temporaryDirectory();
const [kib, mib, gib] = [1024, 1024 ** 2, 1024 ** 3];
const entry = new URL('./index.ts', import.meta.url).pathname;
/** Bytes of a usual image's import. */
const mostBytes = 320 * mib;
/** Bytes a pod may have. It counts the pages of files, too, but those it can drop. */
const podBytes = parseQuantity(defaultSettings.transferResources.limits?.['memory']) ?? 0;

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

/** The process and all below it. */
const familyOf = (pid: number): readonly number[] => {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
    return [pid, ...children.flatMap((child) => familyOf(Number(child)))];
  } catch {
    return [];
  }
};

/** Bytes of private memory of a process now. */
const memoryOf = (pid: number): number => {
  try {
    const counts = readFileSync(`/proc/${pid}/status`, 'utf8').matchAll(/Rss(?:Anon|Shmem):\s+(\d+)/g);
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0) * kib;
  } catch {
    return 0;
  }
};

interface Imported {
  /** Bytes that the Job and its programs had together, at most. */
  readonly peak: number;
  readonly outcome: string;
  readonly target: string;
}

const importOf = async (file: string, virtualSize: number, over: object = {}): Promise<Imported> => {
  const origin = await serve(file);
  const folder = mkdtempSync(join(root, 'job-'));
  const [target, terminationLog] = [join(folder, 'disk.img'), join(folder, 'report')];
  const spec = {
    mode: 'import',
    source: { type: 'http', url: origin.url },
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: virtualSize, ...over },
    scratchDir: join(folder, 'scratch'),
    limits: { idleSeconds: 120 },
    allowedAddresses: ['127.0.0.0/8'],
  };
  const owner = { apiVersion: 'v1', kind: 'X', namespace: 'ns', name: 'x', uid: 'uid-1' };
  const child = spawn(process.execPath, [entry], {
    stdio: 'ignore',
    env: {
      PATH: process.env['PATH'],
      BULLION_TRANSFER: JSON.stringify(spec),
      BULLION_OWNER: JSON.stringify(owner),
      POD_NAME: 'import-uid-1',
      BULLION_TERMINATION_LOG: terminationLog,
    },
  });
  let peak = 0;
  const look = (): void => {
    const now = familyOf(child.pid ?? 0).reduce((sum, pid) => sum + memoryOf(pid), 0);
    peak = Math.max(peak, now);
  };
  const watching = setInterval(look, 5);
  await once(child, 'exit');
  clearInterval(watching);
  origin.close();
  const report = parseReport(readFileSync(terminationLog, 'utf8'));
  return { peak, outcome: report?.outcome === 'failed' ? report.message : (report?.outcome ?? 'none'), target };
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

  it.each<[what: string, make: (raw: string, file: string) => void, ends: RegExp]>([
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
      pack('xz -1 -T2 --block-size=64MiB'),
      /^succeeded$/,
    ],
    ['raw disk in xz with a dictionary of 96 MiB', withDictionary(29), /^succeeded$/],
    ['raw disk in xz with a dictionary of 384 MiB', withDictionary(33), /more than .* of memory to unpack/],
    ['vhdx with blocks of 256 MiB', convert('-O', 'vhdx', '-o', 'block_size=256M'), /^succeeded$/],
    ['vmdk', convert('-O', 'vmdk', '-o', 'subformat=streamOptimized'), /^succeeded$/],
    ['vdi', convert('-O', 'vdi'), /^succeeded$/],
  ])('of a %s stays within the limit of its pod', { timeout: 600_000 }, async (what, make, ends) => {
    const folder = mkdtempSync(join(root, 'worst-'));
    const [raw, file] = [join(folder, 'raw'), join(folder, 'file')];
    writeDense(raw);
    make(raw, file);
    const { peak, outcome } = await importOf(file, diskBytes);
    rmSync(folder, { recursive: true });
    console.info(`${what}: ${Math.round(peak / mib)} MiB, ${outcome}`);
    expect(outcome).toMatch(ends);
    expect(peak).toBeLessThan(podBytes);
  });
});
