// The ways an image can get onto a disk: ours, and the references it is held against. Each is one command, timed as a whole.
import type { BenchImage } from '#test/bench/transfer/images.ts';

export interface Way {
  readonly name: string;
  /** Whether it leaves the disk at `$target`, to be compared with the reference. */
  readonly fills: boolean;
  readonly isFor: (image: BenchImage) => boolean;
  /** Shell over `$url`, `$file` (the local copy), `$work`, `$target`, `$format`, `$unpack`. */
  readonly script: string;
}

const convert = 'qemu-img convert -t writeback -f "$format" -O raw';
const isPacked = ({ unpack }: BenchImage): boolean => unpack !== undefined;

export const ways: readonly Way[] = [
  { name: 'ours', fills: true, isFor: () => true, script: '"$node" "$entry" >"$work/log"' },
  {
    name: 'scratch, then convert',
    fills: true,
    isFor: () => true,
    script: `curl -sS -o "$work/scratch" "$url" && sync "$work/scratch" &&
      if [ -n "$unpack" ]; then $unpack <"$work/scratch" >"$work/unpacked" && sync "$work/unpacked" && ${convert} "$work/unpacked" "$target";
      else ${convert} "$work/scratch" "$target"; fi && sync "$target"`,
  },
  {
    name: 'nbdkit and convert',
    fills: true,
    isFor: ({ format }) => format === 'qcow2',
    script: `nbdkit -U - --filter=readahead --filter=retry curl "$url" --run 'qemu-img convert -t writeback -f '"$format"' -O raw "$nbd" '"$target" && sync "$target"`,
  },
  { name: 'limit: the wire', fills: false, isFor: () => true, script: 'curl -sS -o /dev/null "$url"' },
  {
    name: 'limit: convert the local file',
    fills: true,
    isFor: (image) => !isPacked(image),
    script: `${convert} "$file" "$target" && sync "$target"`,
  },
  { name: 'limit: unpack to nowhere', fills: false, isFor: isPacked, script: '$unpack <"$file" >/dev/null' },
];
