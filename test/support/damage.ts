// Damaged files: arbitraries of fast-check that change fields of headers and tables.
import fc from 'fast-check';

/** Position in the file, width of the field, and the written value. */
export interface Damage {
  readonly at: number;
  readonly width: 1 | 2 | 4 | 8;
  readonly how:
    | { readonly do: 'set'; readonly value: bigint }
    | { readonly do: 'add'; readonly value: bigint }
    | { readonly do: 'flip'; readonly bit: number };
}

type Order = 'BE' | 'LE';

/** Numbers around limits, and small ones. */
const values = fc.oneof(
  fc.bigInt({ min: 0n, max: 70n }),
  fc.tuple(fc.nat(63), fc.constantFrom(-1n, 0n, 1n)).map(([bits, more]) => 2n ** BigInt(bits) + more),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }),
);

/** In one of the regions `[from, to)` of a file. Fields are mostly aligned to their width. */
export const damagesOf = (regions: readonly (readonly [from: number, to: number])[]): fc.Arbitrary<Damage> =>
  fc
    .record({
      place: fc.oneof(...regions.map(([from, to]) => fc.integer({ min: from, max: to - 1 }))),
      width: fc.constantFrom<Damage['width']>(1, 2, 4, 4, 8, 8),
      isAligned: fc.constantFrom(true, true, true, false),
      how: fc.oneof(
        fc.record({ do: fc.constant('set' as const), value: values }),
        fc.record({
          do: fc.constant('add' as const),
          value: fc.constantFrom(-1n, 1n, 512n, -512n, 65_536n, 2n ** 20n),
        }),
        fc.record({ do: fc.constant('flip' as const), bit: fc.nat(63) }),
      ),
    })
    .map(({ place, width, isAligned, how }) => ({ at: isAligned ? place - (place % width) : place, width, how }));

const read = (field: Buffer, order: Order): bigint =>
  BigInt(`0x${(order === 'BE' ? field : Buffer.from(field).reverse()).toString('hex')}`);

/** A copy of the file with all changes. Changes beyond its end are ignored. */
export const damaged = (file: Buffer, order: Order, changes: readonly Damage[]): Buffer => {
  const copy = Buffer.from(file);
  for (const { at, width, how } of changes) {
    if (at + width > copy.length) continue;
    const field = copy.subarray(at, at + width);
    const before = read(field, order);
    const after =
      how.do === 'set'
        ? how.value
        : how.do === 'add'
          ? before + how.value
          : before ^ (1n << BigInt(how.bit % (width * 8)));
    const bytes = Buffer.from(
      BigInt.asUintN(width * 8, after)
        .toString(16)
        .padStart(width * 2, '0'),
      'hex',
    );
    (order === 'BE' ? bytes : bytes.reverse()).copy(field);
  }
  return copy;
};

/** An archive with corrected header checksums: otherwise nearly all damage would be rejected by them. */
export const withMendedSums = (archive: Buffer): Buffer => {
  const mended = Buffer.from(archive);
  for (let at = 0; at + 512 <= mended.length; at += 512) {
    const header = mended.subarray(at, at + 512);
    if (!header.toString('latin1', 257, 262).startsWith('ustar')) continue;
    header.fill(0x20, 148, 156);
    const sum = header.reduce((total, byte) => total + byte, 0);
    header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  }
  return mended;
};
