import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  createReadStream,
  mkdtempSync,
  openSync,
  closeSync,
  ftruncateSync,
  readFileSync,
  statSync,
  writeSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseReport } from '#shared/transfer/report.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { hasTools, runTool } from '#test/support/tools.ts';

const root = temporaryDirectory();
const [kib, mib, gib] = [1024, 1024 ** 2, 1024 ** 3];
const entry = new URL('./index.ts', import.meta.url).pathname;
/** Bytes. The limit of a pod is larger, since it counts the pages of files, too. */
const mostBytes = 320 * mib;

/** A disk with 48 MiB of data, spread from end to end, as the qcow2 that is published. */
const publish = (virtualSize: number): { readonly raw: string; readonly file: string } => {
  const folder = mkdtempSync(join(root, 'image-'));
  const [raw, file] = [join(folder, 'raw'), join(folder, 'disk.qcow2')];
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
  runTool('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, file]);
  return { raw, file };
};

const serve = async (path: string) => {
  const { size } = statSync(path);
  const server = createServer((request, response) => {
    const [, first = '0', last = ''] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? '') ?? [];
    const [start, end] = [Number(first), Math.min(size - 1, last === '' ? size - 1 : Number(last))];
    response.writeHead(206, {
      etag: '"v"',
      'content-range': `bytes ${start}-${end}/${size}`,
      'content-length': end - start + 1,
    });
    createReadStream(path, { start, end }).pipe(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/disk`, close: () => server.close() };
};

/** VmHWM of a process in bytes, as long as it is there. */
const peakOf = (pid: number): number => {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * kib;
  } catch {
    return 0;
  }
};

const importOf = async (virtualSize: number): Promise<number> => {
  const { raw, file } = publish(virtualSize);
  const origin = await serve(file);
  const folder = mkdtempSync(join(root, 'job-'));
  const [target, terminationLog] = [join(folder, 'disk.img'), join(folder, 'report')];
  const spec = {
    mode: 'import',
    source: { type: 'http', url: origin.url },
    target: { path: target, volumeMode: 'Filesystem', capacityBytes: virtualSize },
    scratchDir: join(folder, 'scratch'),
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
  const watching = setInterval(() => (peak = Math.max(peak, peakOf(child.pid ?? 0))), 5);
  await once(child, 'exit');
  clearInterval(watching);
  origin.close();
  expect(parseReport(readFileSync(terminationLog, 'utf8'))).toMatchObject({ outcome: 'succeeded' });
  // Fails where they differ. Of holes it reads nothing.
  runTool('qemu-img', ['compare', '-f', 'raw', '-F', 'raw', raw, target]);
  return peak;
};

describe.skipIf(!hasTools('qemu-img'))('the memory of a transfer', () => {
  it('is the same for a disk of 1 GiB and one of 200 GiB', { timeout: 120_000 }, async () => {
    const small = await importOf(gib);
    const large = await importOf(200 * gib);
    expect(small).toBeGreaterThan(0);
    expect(large).toBeLessThan(mostBytes);
    expect(large - small).toBeLessThan(96 * mib);
  });
});
