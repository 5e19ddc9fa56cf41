// Compares the content of a volume with its source, by other programs than those that filled it. Called by the demo and flow tests.
import { spawn, execFile } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createZstdDecompress } from 'node:zlib';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';
import { promisify } from 'node:util';

// Runs a program to its end.

/** Rejects if the program is missing or does not end with 0. */
export const run = promisify(execFile);

export interface Published {
  readonly file: string;
  /** From the image's status. */
  readonly format: string;
  readonly compression: string;
}

/** Throws InvalidInput with the first difference. `volume` is raw; zeroes beyond the end of the shorter one are ignored. */
export const proveIdentical = async (volume: string, published: Published, dir: string): Promise<void> => {
  const file = await unpack(published, dir);
  const format = published.format === 'iso' ? 'raw' : published.format === 'vhd' ? 'vpc' : published.format;
  try {
    await run('qemu-img', ['compare', '-U', '-f', 'raw', '-F', format, volume, file]);
  } catch (error) {
    const difference = (error as { readonly stdout?: string }).stdout?.trim();
    throw new InvalidInput(`the volume differs from its source: ${difference || messageOf(error)}`, [], {
      cause: error,
    });
  }
};

const unpack = async ({ file, compression }: Published, dir: string): Promise<string> => {
  if (compression === 'none') return file;
  const unpacked = join(dir, 'unpacked');
  const output = createWriteStream(unpacked);
  if (compression === 'gz') await pipeline(createReadStream(file), createGunzip(), output);
  else if (compression === 'zst') await pipeline(createReadStream(file), createZstdDecompress(), output);
  else await pipeline(spawn('xz', ['-dc', file], { stdio: ['ignore', 'pipe', 'ignore'] }).stdout, output);
  return unpacked;
};

/** Downloads the file once more, as a reference. Throws Unavailable on failure. */
export const fetchReference = async (url: string, dir: string): Promise<string> => {
  const file = join(dir, 'reference');
  try {
    const response = await fetch(url);
    if (!response.ok || response.body === null) throw new Unavailable(`answered ${response.status}`);
    await pipeline(Readable.fromWeb(response.body), createWriteStream(file));
    return file;
  } catch (error) {
    throw new Unavailable(`the source could not be fetched again to compare with: ${messageOf(error)}`, {
      cause: error,
    });
  }
};
