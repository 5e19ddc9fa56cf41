// A qcow2 that is streamed once from start to end: decodes clusters whose tables are known, and determines which came before their table. Pure.
import {
  type ClusterMap,
  type Extent,
  createClusterMapBuilder,
  maxExtents,
} from '#shared/transfer/format/qcow2/cluster-map.ts';
import {
  type TableLayout,
  type TablePlace,
  addTable,
  guestBytesPerTable,
  layoutOf,
  placesOf,
} from '#shared/transfer/format/qcow2/entries.ts';
import type { Qcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import type { ExtentQueue, Kept, Region } from './segments.ts';

export interface PassingTables {
  /** Known extents that are still to come. */
  readonly queue: ExtentQueue;
  /** The next bytes of the file. Tables in them apply to later clusters; they are complete, since a segment has whole clusters. */
  see(offset: number, bytes: Buffer): void;
  /** The L1 table and the L2 tables: the verification uses the kept copies. */
  regions(): readonly Region[];
  /** Extents of the verified map that were not in the queue, because they came before their table. */
  missed(map: ClusterMap): ClusterMap;
}

/** The part of an extent from `from` on; a compressed cluster is not divided. */
const behind = ({ host, length, guest, kind }: Extent, from: number): Extent | undefined => {
  if (host >= from) return { host, length, guest, kind };
  if (kind === 'compressed' || host + length <= from) return undefined;
  return { host: from, length: host + length - from, guest: guest + from - host, kind };
};

/** The part of an extent before `to`. */
const before = (extent: Extent, to: number): Extent | undefined => {
  if (extent.host >= to) return undefined;
  return extent.kind === 'compressed' ? extent : { ...extent, length: Math.min(extent.length, to - extent.host) };
};

/** Whether everything that was not decompressed while streaming, and all its tables, was kept. */
export const isAllKept = (kept: Kept, tables: PassingTables, missed: ClusterMap): boolean => {
  for (let index = 0; index < missed.count; index++) if (!kept.has(missed.at(index))) return false;
  return tables.regions().every((region) => kept.has(region));
};

/** Extents of many tables, each in order of the file. */
const createQueue = () => {
  let runs: { readonly map: ClusterMap; index: number }[] = [];
  let known = 0;
  const queue: ExtentQueue = {
    takeBefore: (end, take) => {
      for (const run of runs) {
        const { map } = run;
        while (run.index < map.count && map.at(run.index).host < end) {
          known -= 1;
          take(map.at(run.index++));
        }
      }
      runs = runs.filter(({ map, index }) => index < map.count);
    },
    isEmpty: () => runs.length === 0,
  };
  return {
    queue,
    room: () => maxExtents - known,
    add: (map: ClusterMap): void => {
      known += map.count;
      if (map.count > 0) runs.push({ map, index: 0 });
    },
  };
};

/** Collects a region of the file that may span several segments. */
const createRegion = (start: number, length: number) => {
  const bytes = Buffer.alloc(length);
  let end = start;
  return (offset: number, segment: Buffer): Buffer | undefined => {
    if (end < start + length && offset + segment.length > end && offset <= end) {
      end += segment.copy(bytes, end - start, end - offset);
    }
    return end === start + length ? bytes : undefined;
  };
};

const createMissed = (layout: TableLayout, knownFrom: (table: number) => number) => {
  const guestPerTable = guestBytesPerTable(layout);
  return (map: ClusterMap): ClusterMap => {
    const builder = createClusterMapBuilder();
    const addIfMissed = (piece: Extent): void => {
      const early = before(piece, knownFrom(Math.floor(piece.guest / guestPerTable)));
      if (early !== undefined) builder.add(early);
    };
    for (let index = 0; index < map.count; index++) {
      const { host, length, guest, kind } = map.at(index);
      if (kind === 'compressed') {
        addIfMissed({ host, length, guest, kind });
        continue;
      }
      // Plain extents were joined, also across tables.
      for (let at = 0; at < length;) {
        const piece = Math.min(length - at, guestPerTable - ((guest + at) % guestPerTable));
        addIfMissed({ host: host + at, length: piece, guest: guest + at, kind });
        at += piece;
      }
    }
    return builder.build();
  };
};

/** Throws ImageCorrupt for invalid tables. */
export const createPassingTables = (header: Qcow2Header): PassingTables => {
  const layout = layoutOf(header, Infinity, { refer: () => {} });
  const { queue, room, add } = createQueue();
  const collectL1 = createRegion(header.l1Offset, header.l1Entries * 8);
  const knownFrom = new Map<number, number>();
  let places: readonly TablePlace[] | undefined;
  let next = 0;

  const learn = ({ firstGuest, index }: TablePlace, table: Buffer, from: number): void => {
    const builder = createClusterMapBuilder(room());
    let fits = true;
    addTable(layout, table, firstGuest, (extent) => {
      const rest = behind(extent, from);
      if (rest !== undefined) fits = builder.add(rest) && fits;
    });
    if (!fits) return;
    knownFrom.set(index, from);
    add(builder.build());
  };
  return {
    queue,
    see: (offset, bytes) => {
      const end = offset + bytes.length;
      const l1 = places === undefined ? collectL1(offset, bytes) : undefined;
      if (l1 !== undefined) {
        places = placesOf(layout, l1).toSorted((a, b) => a.host - b.host);
        while ((places[next]?.host ?? Infinity) < offset) next += 1;
      }
      for (let place = places?.[next]; place !== undefined && place.host < end; place = places?.[next]) {
        next += 1;
        const at = place.host - offset;
        if (at + header.clusterSize <= bytes.length) learn(place, bytes.subarray(at, at + header.clusterSize), end);
      }
    },
    regions: () => [
      { host: header.l1Offset, length: header.l1Entries * 8 },
      ...(places ?? []).map(({ host }) => ({ host, length: header.clusterSize })),
    ],
    missed: createMissed(layout, (table) => knownFrom.get(table) ?? Infinity),
  };
};
