// The images that are moved: a disk of 10 GiB with a real Linux tree, in every form. Made once, then kept beside the results.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';

export interface BenchImage {
  readonly name: string;
  /** File name below the directory of images. */
  readonly file: string;
  /** What qemu-img calls the format of the (unpacked) file. */
  readonly format: string;
  /** Unpacks the file from standard input to standard output; absent for files that are not packed. */
  readonly unpack?: string;
  /** Shell that makes `$out` from `$raw`. */
  readonly make: string;
}

export const benchImages: readonly BenchImage[] = [
  { name: 'plain qcow2', file: 'plain.qcow2', format: 'qcow2', make: 'qemu-img convert -f raw -O qcow2 "$raw" "$out"' },
  {
    name: 'zlib qcow2',
    file: 'zlib.qcow2',
    format: 'qcow2',
    make: 'qemu-img convert -c -W -m 2 -f raw -O qcow2 "$raw" "$out"',
  },
  {
    name: 'zstd qcow2',
    file: 'zstd.qcow2',
    format: 'qcow2',
    make: 'qemu-img convert -c -W -m 2 -f raw -O qcow2 -o compression_type=zstd "$raw" "$out"',
  },
  { name: 'raw.gz', file: 'disk.raw.gz', format: 'raw', unpack: 'gzip -dc', make: 'gzip -6 -c "$raw" >"$out"' },
  { name: 'raw.zst', file: 'disk.raw.zst', format: 'raw', unpack: 'zstd -dc', make: 'zstd -q -3 -c "$raw" >"$out"' },
  { name: 'raw.xz', file: 'disk.raw.xz', format: 'raw', unpack: 'xz -dc -T0', make: 'xz -T0 -1 -c "$raw" >"$out"' },
  {
    name: 'vmdk',
    file: 'stream.vmdk',
    format: 'vmdk',
    make: 'qemu-img convert -f raw -O vmdk -o subformat=streamOptimized "$raw" "$out"',
  },
];

const shell = (script: string, env: Record<string, string>): void => {
  const { status } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`cannot make an image: ${script}`);
};

/** About 1.8 GiB of programs, libraries and documents of this machine, copied until there is enough. */
const makeTree = `
mkdir -p "$tree"; limit=1850000
for part in /usr/bin /usr/share /usr/lib/*; do
  used=$(du -sk "$tree" | cut -f1); size=$(du -sk "$part" 2>/dev/null | cut -f1)
  [ "$size" -gt $((limit - used)) ] || cp -a --reflink=auto "$part" "$tree/"
done
truncate -s 10G "$out"; mkfs.ext4 -q -d "$tree" "$out"; rm -rf "$tree"`;

const make = (out: string, script: string, env: Record<string, string>): void => {
  if (existsSync(out)) return;
  console.log(`making ${out}`);
  const partial = `${out}.partial`;
  rmSync(partial, { force: true });
  shell(script, { ...env, out: partial });
  renameSync(partial, out);
};

/** Makes what is missing of `images` below `directory`; returns the path of the raw disk that all of them hold. */
export const makeImages = (directory: string, images: readonly BenchImage[]): string => {
  mkdirSync(directory, { recursive: true });
  const raw = join(directory, 'disk.raw');
  make(raw, makeTree, { tree: join(directory, 'tree') });
  for (const { file, make: script } of images) make(join(directory, file), script, { raw });
  return raw;
};
