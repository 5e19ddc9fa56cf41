// The location of the guest's bytes in a qcow2 file: extents in typed arrays, since a disk has millions of clusters.

/** Encoding of the bytes of an extent. */
export type ExtentKind = 'plain' | 'compressed';

export interface Extent {
  /** Offset in the file. */
  readonly host: number;
  /** Bytes in the file; an upper bound for a compressed cluster. */
  readonly length: number;
  /** Offset on the guest's disk. */
  readonly guest: number;
  readonly kind: ExtentKind;
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

/** 20 bytes each: 80 MB at most, enough for 250 GiB of compressed clusters of 64 KiB. */
export const maxExtents = 4 * 1024 * 1024;
/** Lengths are stored in 32 bits, those of compressed clusters as negative numbers. */
const maxPlainBytes = 2 ** 30;
const firstCapacity = 4096;

interface Columns {
  hosts: Float64Array;
  guests: Float64Array;
  lengths: Int32Array;
}

const grown = ({ hosts, guests, lengths }: Columns): Columns => {
  const capacity = hosts.length * 2;
  const next = {
    hosts: new Float64Array(capacity),
    guests: new Float64Array(capacity),
    lengths: new Int32Array(capacity),
  };
  next.hosts.set(hosts);
  next.guests.set(guests);
  next.lengths.set(lengths);
  return next;
};

const isSorted = (hosts: Float64Array): boolean => {
  for (let index = 1; index < hosts.length; index++) if ((hosts[index] ?? 0) < (hosts[index - 1] ?? 0)) return false;
  return true;
};

/** Positions in order of host offset; `undefined` if they are already sorted, as in all files of qemu-img. */
const orderOf = (hosts: Float64Array): Uint32Array | undefined => {
  if (isSorted(hosts)) return undefined;
  return Uint32Array.from(hosts.keys()).sort((a, b) => (hosts[a] ?? 0) - (hosts[b] ?? 0));
};

export const createClusterMapBuilder = (limit = maxExtents): ClusterMapBuilder => {
  let columns: Columns = {
    hosts: new Float64Array(firstCapacity),
    guests: new Float64Array(firstCapacity),
    lengths: new Int32Array(firstCapacity),
  };
  let count = 0;
  const continuesLast = ({ host, guest, length, kind }: Extent): boolean => {
    const last = columns.lengths[count - 1] ?? -1;
    if (count === 0 || kind !== 'plain' || last < 0 || last + length > maxPlainBytes) return false;
    return columns.hosts[count - 1] === host - last && columns.guests[count - 1] === guest - last;
  };
  return {
    add: (extent) => {
      if (continuesLast(extent)) {
        columns.lengths[count - 1] = (columns.lengths[count - 1] ?? 0) + extent.length;
        return true;
      }
      if (count === limit) return false;
      if (count === columns.hosts.length) columns = grown(columns);
      columns.hosts[count] = extent.host;
      columns.guests[count] = extent.guest;
      columns.lengths[count] = extent.kind === 'plain' ? extent.length : -extent.length;
      count++;
      return true;
    },
    build: () => {
      const { hosts, guests, lengths } = columns;
      const order = orderOf(hosts.subarray(0, count));
      return {
        count,
        at: (index) => {
          const position = order?.[index] ?? index;
          const length = lengths[position] ?? 0;
          return {
            host: hosts[position] ?? 0,
            guest: guests[position] ?? 0,
            length: Math.abs(length),
            kind: length < 0 ? 'compressed' : 'plain',
          };
        },
      };
    },
  };
};
