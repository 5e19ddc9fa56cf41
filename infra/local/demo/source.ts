// The source of the demo's image: a generated disk, a file, or an address. Called by the demo.
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { bootLine, writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import type { FileServer } from '#infra/local/demo/file-server.ts';
import { run } from '#infra/local/demo/prove.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

const mib = 2 ** 20;

export interface DemoSource {
  readonly url: string;
  /** The published file on this machine; undefined for an address. */
  readonly file?: string;
  /** The expected output on the serial port, if known. */
  readonly says?: string;
  /** Description in one line. */
  readonly about: string;
}

/** Throws InvalidInput if the argument is neither an address nor a file. */
export const prepareSource = async (
  argument: string | undefined,
  server: FileServer,
  dir: string,
): Promise<DemoSource> => {
  if (argument === undefined) return makeDisk(server, dir);
  if (/^https?:\/\//i.test(argument)) return { url: argument, about: argument };
  const file = resolve(argument);
  if (!existsSync(file) || !(await stat(file)).isFile())
    throw new InvalidInput(`${argument} is neither a http(s) address nor a file`);
  return { url: server.offer(basename(file), file), file, about: `file ${file}` };
};

const makeDisk = async (server: FileServer, dir: string): Promise<DemoSource> => {
  const raw = join(dir, 'demo.raw');
  const file = join(dir, 'demo.qcow2');
  await writeBootDisk(raw, { bytes: 256 * mib, dataBytes: 64 * mib });
  await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, file]);
  return {
    url: server.offer('demo.qcow2', file),
    file,
    says: bootLine,
    about: 'a generated bootable disk of 256 MiB',
  };
};
