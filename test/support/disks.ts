// Disks for flow tests: a real file system if its tools are installed, in every published form.
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { mkdir, rename, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { writeBootDisk } from '#infra/local/demo/boot-disk.ts';
import { run } from '#test/support/cluster.ts';

const mib = 2 ** 20;

/** Content of Debian's package debian-installer-12-netboot-amd64. */
const netboot = '/usr/lib/debian-installer/images/12/amd64/text';

/** An ISO of Debian's netboot installer; `undefined` if its package or xorriso is not installed. */
export const makeDebianIso = async (dir: string): Promise<string | undefined> => {
  if (!existsSync(netboot)) return undefined;
  const path = join(dir, 'debian-netboot.iso');
  return run('xorriso', ['-as', 'mkisofs', '-quiet', '-r', '-V', 'debian', '-o', path, netboot]).then(
    () => path,
    () => undefined,
  );
};

/** Bytes of the disk of most flows: small, since each flow writes, hashes and reads it many times; larger than any chunk or buffer on the way. */
export const linuxDiskBytes = 40 * mib;

/** A raw disk with an ext4 file system with this project's dependencies; our boot disk if mkfs.ext4 is missing. */
export const makeLinuxDisk = async (dir: string): Promise<string> => {
  await mkdir(dir, { recursive: true });
  const path = join(dir, 'linux.raw');
  const made = await run('mkfs.ext4', ['-q', '-d', 'node_modules/zod', path, `${linuxDiskBytes / mib}M`]).then(
    () => true,
    () => false,
  );
  if (!made) await writeBootDisk(path, { bytes: linuxDiskBytes, dataBytes: 16 * mib });
  await truncate(path, linuxDiskBytes);
  return path;
};

export const forms = ['qcow2', 'compressed.qcow2', 'raw', 'raw.gz', 'raw.xz', 'raw.zst'] as const;
export type Form = (typeof forms)[number];

/** The disk in one of its published forms, beside it. */
export const publish = async (raw: string, form: Form): Promise<string> => {
  const path = raw.replace(/raw$/, form);
  if (form === 'qcow2') await run('qemu-img', ['convert', '-f', 'raw', '-O', 'qcow2', raw, path]);
  if (form === 'compressed.qcow2') await run('qemu-img', ['convert', '-c', '-f', 'raw', '-O', 'qcow2', raw, path]);
  if (form === 'raw.gz') await pipeline(createReadStream(raw), createGzip({ level: 1 }), createWriteStream(path));
  if (form === 'raw.zst') await pipeline(createReadStream(raw), createZstdCompress(), createWriteStream(path));
  if (form === 'raw.xz') {
    await run('xz', ['-1', '-k', raw]);
    await rename(`${raw}.xz`, path).catch(() => undefined);
  }
  return path;
};
