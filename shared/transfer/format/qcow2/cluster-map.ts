// The location of the guest's bytes in a qcow2 file: extents in typed arrays, since a disk has millions of clusters.

export interface Extent {
  /** Offset in the file. */
  readonly host: number;
  /** Bytes in the file; an upper bound for a compressed cluster. */
  readonly length: number;
  /** Offset on the guest's disk. */
  readonly guest: number;
  readonly kind: 'plain' | 'compressed';
}

export interface ClusterMap {
  readonly count: number;
  /** Extents in order of their position in the file. */
  at(index: number): Extent;
}

export interface ClusterMapBuilder {
  /** Joins plain extents that are contiguous in file and disk. Returns false once the map is full. */
  add(extent: Extent): boolean;
  build(): ClusterMap;
}

/** 20 bytes each: 80 MB at most, enough for 250 GiB of compressed clusters of 64 KiB. Another 32 MB while they are sorted. */
export const maxExtents = 4 * 1024 * 1024;
/** Lengths are stored in 32 bits, those of compressed clusters as negative numbers. */
const maxPlainBytes = 2 ** 30;

/** Extents of a block. A longer list has more of them: one that grew would be there twice while it does. */
const blockExtents = 4096;

interface Block {
  readonly hosts: Float64Array;
  readonly guests: Float64Array;
  readonly lengths: Int32Array;
}

const createBlock = (extents: number): Block => ({
  hosts: new Float64Array(extents),
  guests: new Float64Array(extents),
  lengths: new Int32Array(extents),
});
const noBlock = createBlock(0);

/** Positions of `count` extents in order of `hostAt`, by 16 bits at a time, from the lowest: `sort` with a comparison needs more than the map itself. */
const sortedBy = (hostAt: (position: number) => number, count: number): Uint32Array => {
  let [now, next] = [new Uint32Array(count), new Uint32Array(count)];
  let largest = 0;
  for (let index = 0; index < count; index++) {
    now[index] = index;
    largest = Math.max(largest, hostAt(index));
  }
  const places = new Uint32Array(65_537);
  for (let unit = 1; unit <= largest; unit *= 65_536) {
    const digitOf = (position: number): number => Math.floor(hostAt(position) / unit) % 65_536;
    places.fill(0);
    const add = (digit: number, more: number): number => (places[digit] = (places[digit] ?? 0) + more);
    for (const position of now) add(digitOf(position) + 1, 1);
    for (let digit = 1; digit < places.length; digit++) add(digit, places[digit - 1] ?? 0);
    for (const position of now) next[add(digitOf(position), 1) - 1] = position;
    [now, next] = [next, now];
  }
  return now;
};

/** `undefined` when they are in order already, as in all that qemu-img makes. */
const orderOf = (hostAt: (position: number) => number, count: number): Uint32Array | undefined => {
  for (let index = 1; index < count; index++) if (hostAt(index) < hostAt(index - 1)) return sortedBy(hostAt, count);
  return undefined;
};

export const createClusterMapBuilder = (limit = maxExtents): ClusterMapBuilder => {
  const blocks: Block[] = [];
  let count = 0;
  const blockOf = (position: number): Block => blocks[Math.floor(position / blockExtents)] ?? noBlock;
  const hostAt = (position: number): number => blockOf(position).hosts[position % blockExtents] ?? 0;
  /** Whether it was joined to the last one. */
  const isJoined = ({ host, guest, length, kind }: Extent): boolean => {
    if (count === 0 || kind !== 'plain') return false;
    const { hosts, guests, lengths } = blockOf(count - 1);
    const at = (count - 1) % blockExtents;
    const last = lengths[at] ?? -1;
    if (last < 0 || last + length > maxPlainBytes) return false;
    if (hosts[at] !== host - last || guests[at] !== guest - last) return false;
    lengths[at] = last + length;
    return true;
  };
  return {
    add: (extent) => {
      if (isJoined(extent)) return true;
      if (count === limit) return false;
      const at = count % blockExtents;
      if (at === 0) blocks.push(createBlock(blockExtents));
      const { hosts, guests, lengths } = blockOf(count);
      hosts[at] = extent.host;
      guests[at] = extent.guest;
      lengths[at] = extent.kind === 'plain' ? extent.length : -extent.length;
      count++;
      return true;
    },
    build: () => {
      const order = orderOf(hostAt, count);
      return {
        count,
        at: (index) => {
          const position = order?.[index] ?? index;
          const { hosts, guests, lengths } = blockOf(position);
          const at = position % blockExtents;
          const length = lengths[at] ?? 0;
          return {
            host: hosts[at] ?? 0,
            guest: guests[at] ?? 0,
            length: Math.abs(length),
            kind: length < 0 ? 'compressed' : 'plain',
          };
        },
      };
    },
  };
};
