// What is stored of images, in sums: by image, thing, storage class or namespace. Pure.
import type { StoredThing } from '#shared/catalogue/stored.ts';

export const footprintGroups = ['image', 'version', 'class', 'namespace'] as const;
export type FootprintGroup = (typeof footprintGroups)[number];

export interface FootprintSum {
  /** Provisioned size. */
  readonly bytes: number;
  /** How much of it other rows have as well: it is stored once. */
  readonly sharedBytes: number;
  readonly stored: number;
  /** How many disks were made from them. */
  readonly disks: number;
  /** RFC 3339. */
  readonly lastUse: string | undefined;
  /** What retention keeps no longer. */
  readonly freedBytes: number;
  /** What retention alone would not keep, but something that needs it does. */
  readonly heldBytes: number;
  /** Size of the files as published, each content once: at least that much was fetched. */
  readonly publishedBytes: number;
  /** What holds the same content as another thing: in another namespace or storage class, for example. */
  readonly sameContentBytes: number;
}

export interface FootprintRow extends FootprintSum {
  readonly namespace?: string | undefined;
  readonly name: string;
  /** Where the row is about one thing alone. */
  readonly thing?: StoredThing;
}

export interface Footprint {
  /** Those that take the most first. */
  readonly rows: readonly FootprintRow[];
  /** Each thing once, in however many rows it is. */
  readonly total: FootprintSum;
}

interface Place {
  readonly namespace?: string | undefined;
  readonly name: string;
}

const unknownClass = '(unknown)';

const placesOf = ({ storedFor, className, name }: StoredThing, by: FootprintGroup): readonly Place[] => {
  const [first] = storedFor;
  switch (by) {
    case 'image':
      return storedFor.map(({ namespace, image }) => ({ namespace, name: image }));
    case 'namespace':
      return storedFor.map(({ namespace }) => ({ name: namespace }));
    case 'class':
      return [{ name: className ?? unknownClass }];
    case 'version':
      return [{ namespace: first?.namespace, name }];
  }
};

const total = (numbers: Iterable<number>): number => [...numbers].reduce((sum, one) => sum + one, 0);

const sumOf = (things: readonly StoredThing[], isShared: (thing: StoredThing) => boolean): FootprintSum => {
  const bytesIf = (has: (thing: StoredThing) => boolean): number => total(things.filter(has).map(({ bytes }) => bytes));
  const files = new Map(things.flatMap(({ file }) => (file === undefined ? [] : [[file.content, file.bytes]])));
  const largest = new Map<string, number>();
  for (const { file, bytes } of things)
    if (file !== undefined) largest.set(file.content, Math.max(bytes, largest.get(file.content) ?? 0));
  const uses = things.map(({ lastUse }) => lastUse).filter((time) => time !== '');
  return {
    bytes: bytesIf(() => true),
    sharedBytes: bytesIf(isShared),
    stored: things.length,
    disks: new Set(things.flatMap(({ disks }) => [...disks.keys()])).size,
    lastUse: uses.toSorted((a, b) => a.localeCompare(b)).at(-1),
    freedBytes: bytesIf(({ keptBy }) => keptBy === undefined),
    heldBytes: bytesIf(({ isHeld }) => isHeld),
    publishedBytes: total(files.values()),
    sameContentBytes: bytesIf(({ file }) => file !== undefined) - total(largest.values()),
  };
};

/** `things`: each once. */
export const footprintOf = (things: readonly StoredThing[], by: FootprintGroup): Footprint => {
  const groups = new Map<string, { readonly place: Place; readonly things: StoredThing[] }>();
  const shared = new Set<StoredThing>();
  for (const thing of things) {
    // One by one, whatever their names.
    const unique = by === 'version' ? ` ${thing.key}` : '';
    const places = new Map(placesOf(thing, by).map((place) => [`${place.namespace}/${place.name}${unique}`, place]));
    if (places.size > 1) shared.add(thing);
    for (const [key, place] of places) {
      const group = groups.get(key) ?? { place, things: [] };
      group.things.push(thing);
      groups.set(key, group);
    }
  }
  const rows = [...groups.values()].map(({ place, things: own }) => ({
    ...place,
    ...sumOf(own, (thing) => shared.has(thing)),
    ...(by === 'version' && own[0] !== undefined ? { thing: own[0] } : {}),
  }));
  return {
    rows: rows.toSorted(
      (a, b) =>
        b.bytes - a.bytes || (a.namespace ?? '').localeCompare(b.namespace ?? '') || a.name.localeCompare(b.name),
    ),
    total: sumOf(things, (thing) => shared.has(thing)),
  };
};
