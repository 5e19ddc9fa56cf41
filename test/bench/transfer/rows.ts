// What is measured: one row of the table each, with the targets it is held against.
import { type BenchImage, benchImages } from '#test/bench/transfer/images.ts';
import type { WayName } from '#test/bench/transfer/ways.ts';

/** How the server is reached: as fast as it goes, one link of 1 Gbit/s for all connections together, or 50 MB/s for each of them. */
export const links = ['loopback', 'gigabit', '50MBps'] as const;
export type Link = (typeof links)[number];

/** Ours is to be at least so many times as fast as `against`, or to take at most so many times as long. */
export interface Target {
  readonly against: WayName;
  readonly atLeast?: number;
  readonly atMost?: number;
}

interface CommonRow {
  /** For `--only`. */
  readonly name: string;
  readonly targets: readonly Target[];
}

export interface ImportRow extends CommonRow {
  readonly kind: 'import';
  readonly image: BenchImage;
  readonly link: Link;
}

export interface ExportRow extends CommonRow {
  readonly kind: 'export';
  readonly compression: 'none' | 'zlib' | 'zstd';
  readonly level: number;
  /** The object may be so many times as large as qemu-img's. */
  readonly atMostSize?: number;
}

export type Row = ImportRow | ExportRow;

const scratch = 'scratch, then convert';
const convert = 'limit: convert the local file';
const unpack = 'limit: unpack to nowhere';
const wire = 'limit: the wire';

const targetsOf: Readonly<Record<string, readonly Target[]>> = {
  zlib: [
    { against: scratch, atLeast: 1.8 },
    { against: convert, atMost: 1 },
  ],
  zstd: [
    { against: scratch, atLeast: 1.5 },
    { against: convert, atMost: 1.2 },
  ],
  plain: [
    { against: scratch, atLeast: 1.8 },
    { against: convert, atMost: 2.5 },
  ],
  gz: [
    { against: scratch, atLeast: 3 },
    { against: unpack, atMost: 1.2 },
  ],
  zst: [
    { against: scratch, atLeast: 3 },
    { against: unpack, atMost: 1.2 },
  ],
  xz: [
    { against: scratch, atLeast: 1.3 },
    { against: unpack, atMost: 1.15 },
  ],
  layer: [{ against: scratch, atLeast: 1.9 }],
};

const onLoopback = benchImages.map((image): ImportRow => ({
  kind: 'import',
  name: image.name,
  image,
  link: 'loopback',
  targets: targetsOf[image.name] ?? [],
}));

const onGigabit = benchImages.map((image): ImportRow => ({
  kind: 'import',
  name: `${image.name}@gigabit`,
  image,
  link: 'gigabit',
  targets: [{ against: wire, atMost: 1.05 }],
}));

const perConnection = benchImages
  .filter(({ name }) => name === 'zlib')
  .map((image): ImportRow => ({
    kind: 'import',
    name: `${image.name}@50MBps`,
    image,
    link: '50MBps',
    targets: [{ against: scratch, atLeast: 4 }],
  }));

const exports: readonly ExportRow[] = [
  { name: 'export-plain', compression: 'none', level: 0, targets: [{ against: 'convert, then upload', atLeast: 1.5 }] },
  {
    name: 'export-zlib',
    compression: 'zlib',
    level: 6,
    atMostSize: 1.05,
    targets: [{ against: 'convert, then upload', atLeast: 1.8 }],
  },
  {
    name: 'export-zlib-1',
    compression: 'zlib',
    level: 1,
    targets: [{ against: 'convert, then upload', atLeast: 2.8 }],
  },
  { name: 'export-zstd', compression: 'zstd', level: 3, targets: [{ against: 'convert, then upload', atLeast: 1.3 }] },
].map((row): ExportRow => ({ kind: 'export', ...row }) as ExportRow);

export const rows: readonly Row[] = [...onLoopback, ...onGigabit, ...perConnection, ...exports];

/** Those named, all without names. Throws on a name that is none, so that nothing is left out in silence. */
export const chooseRows = (names: readonly string[] | undefined): readonly Row[] => {
  const known = rows.map(({ name }) => name);
  const unknown = (names ?? []).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no row is called ${unknown.join(', ')}; there are: ${known.join(', ')}`);
  return rows.filter(({ name }) => names === undefined || names.includes(name));
};
