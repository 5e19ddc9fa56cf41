// The images that are moved: a disk with a real Linux tree, in every form. Made once, when first needed, then kept beside the results.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, linkSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
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
  /** It is the layer of a container image, and fetched as one. */
  readonly isLayer?: true;
}

const convertTo = (format: string, options = ''): string =>
  `qemu-img convert -f raw -O ${format} ${options} "$raw" "$out"`;

export const benchImages: readonly BenchImage[] = [
  { name: 'plain', file: 'plain.qcow2', format: 'qcow2', make: convertTo('qcow2') },
  { name: 'zlib', file: 'zlib.qcow2', format: 'qcow2', make: convertTo('qcow2', '-c -W -m 2') },
  {
    name: 'zstd',
    file: 'zstd.qcow2',
    format: 'qcow2',
    make: convertTo('qcow2', '-c -W -m 2 -o compression_type=zstd'),
  },
  { name: 'gz', file: 'disk.raw.gz', format: 'raw', unpack: 'gzip -dc', make: 'gzip -6 -c "$raw" >"$out"' },
  { name: 'zst', file: 'disk.raw.zst', format: 'raw', unpack: 'zstd -dc', make: 'zstd -q -3 -c "$raw" >"$out"' },
  { name: 'xz', file: 'disk.raw.xz', format: 'raw', unpack: 'xz -dc -T0', make: 'xz -T0 -1 -c "$raw" >"$out"' },
  {
    name: 'layer',
    file: 'layer.tar.gz',
    format: 'qcow2',
    unpack: 'tar -xzO',
    isLayer: true,
    make: `mkdir -p "$out.d/disk" && ${convertTo('qcow2', '-c -W -m 2').replace('"$out"', '"$out.d/disk/disk.qcow2"')} &&
      tar -C "$out.d" -cf - disk/disk.qcow2 | gzip -1 -c >"$out"; rm -rf "$out.d"`,
  },
  { name: 'vmdk', file: 'stream.vmdk', format: 'vmdk', make: convertTo('vmdk', '-o subformat=streamOptimized') },
  { name: 'vdi', file: 'disk.vdi', format: 'vdi', make: convertTo('vdi') },
  { name: 'vhdx', file: 'disk.vhdx', format: 'vhdx', make: convertTo('vhdx') },
];

const shell = (script: string, env: Record<string, string>): void => {
  const { status } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (status !== 0) throw new Error(`cannot make an image: ${script}`);
};

/** How much is in the disk, and how large it is. */
export const diskSizes = {
  whole: { treeKiB: 1_850_000, disk: '10G' },
  fast: { treeKiB: 230_000, disk: '1280M' },
} as const;
export type DiskSize = keyof typeof diskSizes;

/** Programs, libraries and documents of this machine, copied until there is enough. */
const makeTree = `
mkdir -p "$tree"
for part in /usr/bin /usr/share /usr/lib/* /usr/share/*; do
  used=$(du -sk "$tree" | cut -f1); size=$(du -sk "$part" 2>/dev/null | cut -f1)
  if [ -e "$tree$part" ] || [ "$size" -gt $((limit - used)) ]; then continue; fi
  mkdir -p "$tree$(dirname "$part")"; cp -a --reflink=auto "$part" "$tree$(dirname "$part")/"
done
truncate -s "$disk" "$out"; mkfs.ext4 -q -d "$tree" "$out"; rm -rf "$tree"`;

const make = (out: string, script: string, env: Record<string, string>): void => {
  if (existsSync(out)) return;
  console.log(`making ${out}`);
  const partial = `${out}.partial`;
  rmSync(partial, { force: true });
  shell(script, { ...env, out: partial });
  renameSync(partial, out);
};

const digestOf = (path: string): string => {
  const { stdout } = spawnSync('sha256sum', [path], { encoding: 'utf8' });
  return `sha256:${stdout.slice(0, 64)}`;
};

/** Files that nginx serves as a registry would: the image is `bench/disk:latest`. */
const makeRegistry = (directory: string, layer: string): void => {
  const base = join(directory, 'v2/bench/disk');
  const manifest = join(base, 'manifests/latest');
  if (existsSync(manifest)) return;
  for (const part of ['blobs', 'manifests']) mkdirSync(join(base, part), { recursive: true });
  const digest = digestOf(layer);
  const blob = join(base, 'blobs', digest);
  rmSync(blob, { force: true });
  linkSync(layer, blob);
  const config = JSON.stringify({ architecture: 'amd64', os: 'linux', rootfs: { type: 'layers', diff_ids: [digest] } });
  const configDigest = `sha256:${createHash('sha256').update(config).digest('hex')}`;
  writeFileSync(join(base, 'blobs', configDigest), config);
  const oci = 'application/vnd.oci.image';
  const content = {
    schemaVersion: 2,
    mediaType: `${oci}.manifest.v1+json`,
    config: { mediaType: `${oci}.config.v1+json`, digest: configDigest, size: config.length },
    layers: [{ mediaType: `${oci}.layer.v1.tar+gzip`, digest, size: statSync(layer).size }],
  };
  writeFileSync(manifest, JSON.stringify(content));
};

/** Path of the blob below the directory, once it was made. */
export const layerPath = (directory: string): string => {
  const { layers } = JSON.parse(readFileSync(join(directory, 'v2/bench/disk/manifests/latest'), 'utf8')) as {
    layers: { digest: string }[];
  };
  return `v2/bench/disk/blobs/${layers[0]?.digest ?? ''}`;
};

/** Makes the raw disk that all of them hold. */
export const makeDisk = (directory: string, size: DiskSize): string => {
  mkdirSync(directory, { recursive: true });
  const raw = join(directory, 'disk.raw');
  const { treeKiB, disk } = diskSizes[size];
  make(raw, makeTree, { tree: join(directory, 'tree'), limit: String(treeKiB), disk });
  return raw;
};

export const makeImage = (directory: string, raw: string, { file, make: script, isLayer }: BenchImage): void => {
  make(join(directory, file), script, { raw });
  if (isLayer === true) makeRegistry(directory, join(directory, file));
};
