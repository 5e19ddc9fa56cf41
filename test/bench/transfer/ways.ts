// The ways bytes can get where they belong: ours, and the references it is held against. Each is one command, timed as a whole.
import type { BenchImage } from '#test/bench/transfer/images.ts';
import type { Row } from '#test/bench/transfer/rows.ts';

export const wayNames = [
  'ours',
  'ours, with guest sha256',
  'scratch, then convert',
  'nbdkit and convert',
  'convert, then upload',
  'limit: the wire',
  'limit: convert the local file',
  'limit: unpack to nowhere',
] as const;
export type WayName = (typeof wayNames)[number];

export interface Way {
  readonly name: WayName;
  /** What it leaves: the disk at `$target`, or an object in the store; to be compared with the reference. */
  readonly leaves: 'disk' | 'object' | 'nothing';
  readonly isFor: (row: Row) => boolean;
  /** Shell over `$url`, `$file` (the local copy), `$work`, `$target`, `$format`, `$unpack`; for exports over `$raw`, `$store`, `$options`. */
  readonly script: string;
}

const convert = 'qemu-img convert -t writeback -f "$format" -O raw';
const imageOf = (row: Row): BenchImage | undefined => (row.kind === 'import' ? row.image : undefined);
const isPacked = (row: Row): boolean => imageOf(row)?.unpack !== undefined;
const isExport = ({ kind }: Row): boolean => kind === 'export';

const job = '"$node" "$entry" >"$work/log" && grep -q \'"outcome":"succeeded"\' "$work/report"';

export const ways: readonly Way[] = [
  { name: 'ours', leaves: 'disk', isFor: (row) => !isExport(row), script: job },
  { name: 'ours', leaves: 'object', isFor: isExport, script: job },
  {
    name: 'ours, with guest sha256',
    leaves: 'object',
    isFor: isExport,
    script: `BULLION_TRANSFER="\${BULLION_TRANSFER/'"guestDigest":false'/'"guestDigest":true'}" ${job}`,
  },
  {
    name: 'scratch, then convert',
    leaves: 'disk',
    isFor: (row) => !isExport(row),
    script: `curl -sS -o "$work/scratch" "$url" && sync "$work/scratch" &&
      if [ -n "$unpack" ]; then bash -c "$unpack" <"$work/scratch" >"$work/unpacked" && sync "$work/unpacked" && ${convert} "$work/unpacked" "$target";
      else ${convert} "$work/scratch" "$target"; fi && sync "$target"`,
  },
  {
    name: 'nbdkit and convert',
    leaves: 'disk',
    isFor: (row) => imageOf(row)?.format === 'qcow2' && !isPacked(row),
    script: `nbdkit -U - --filter=readahead --filter=retry curl "$url" --run 'qemu-img convert -t writeback -f '"$format"' -O raw "$nbd" '"$target" && sync "$target"`,
  },
  {
    name: 'convert, then upload',
    leaves: 'object',
    isFor: isExport,
    script:
      'qemu-img convert $options -f raw -O qcow2 "$raw" "$work/staged" && "$node" "$uploader" "$work/staged" "$store"',
  },
  {
    name: 'limit: the wire',
    leaves: 'nothing',
    isFor: (row) => !isExport(row),
    script: 'curl -sS -o /dev/null "$url"',
  },
  {
    name: 'limit: convert the local file',
    leaves: 'disk',
    isFor: (row) => !isExport(row) && !isPacked(row),
    script: `${convert} "$file" "$target" && sync "$target"`,
  },
  {
    name: 'limit: unpack to nowhere',
    leaves: 'nothing',
    isFor: isPacked,
    script: 'bash -c "$unpack" <"$file" >/dev/null',
  },
];
