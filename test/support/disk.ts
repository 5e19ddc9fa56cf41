// Guest disks for tests: content with holes, runs and unaligned ends, and the images that qemu-img creates from them.
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { runTool } from '#test/support/tools.ts';

/** Pseudo-random bytes, deterministic. */
export const noise = (seed: string, length: number): Buffer => {
  const parts: Buffer[] = [];
  for (let at = 0; at < length; at += 64) parts.push(createHash('sha512').update(`${seed}:${at}`).digest());
  return Buffer.concat(parts).subarray(0, length);
};

/** A sparse disk: boot sector, noise, text, single bytes, and data up to its end. */
export const writeDisk = (path: string, size: number): void => {
  const file = openSync(path, 'w');
  ftruncateSync(file, size);
  const put = (bytes: Buffer, at: number) => {
    if (at + bytes.length <= size) writeSync(file, bytes, 0, bytes.length, at);
  };
  put(Buffer.concat([Buffer.from([0xeb, 0x63, 0x90]), noise('boot', 507), Buffer.from([0x55, 0xaa])]), 0);
  put(noise('a', 300_000), 1_000_000);
  put(Buffer.from('the quick brown fox '.repeat(20_000)), Math.floor(size / 3));
  put(Buffer.from([1]), Math.floor(size / 2));
  put(noise('b', 70_000), Math.floor(size / 4) * 3);
  put(noise('end', 1000), size - 1000);
  closeSync(file);
};

/** Converts a raw disk; `options` are qemu-img's `-o`, `-c` and so on. */
export const convertDisk = (raw: string, format: string, target: string, options: readonly string[] = []): Buffer => {
  runTool('qemu-img', ['convert', '-f', 'raw', '-O', format, ...options, raw, target]);
  return readFileSync(target);
};
