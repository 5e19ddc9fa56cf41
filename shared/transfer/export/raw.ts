// A raw disk as a stream: uncompressed, or compressed piece by piece as members of one gzip or zstd file.
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { type Encoded, type Encoder, pieceBytes } from '#shared/transfer/export/encoder.ts';
import type { ExportVolume } from '#shared/transfer/export/volume.ts';

const zeroPiece = Buffer.alloc(pieceBytes);

/** Bytes `first` to `end` of the disk; a piece is valid until the next one is requested. */
export async function* rawBytes(
  volume: ExportVolume,
  encoder: Encoder,
  { first, end }: { readonly first: number; readonly end: number },
): AsyncGenerator<Uint8Array, void, undefined> {
  let position = first;
  function* zeroesUpTo(to: number): Generator<Uint8Array, void, undefined> {
    while (position < to) {
      const length = Math.min(pieceBytes, to - position);
      position += length;
      yield zeroPiece.subarray(0, length);
    }
  }
  const extents = volume.extents
    .map((extent) => ({ start: Math.max(first, extent.start), end: Math.min(end, extent.end) }))
    .filter((extent) => extent.start < extent.end);
  for await (const { offset, length, plain } of encoder.encode(extents)) {
    yield* zeroesUpTo(offset);
    yield plain.subarray(0, length);
    position = offset + length;
  }
  yield* zeroesUpTo(end);
}

/** A member of zeroes is created once per length. */
const createZeroMembers = (packer: 'gz' | 'zst') => {
  const members = new Map<number, Uint8Array>();
  return (length: number): Uint8Array => {
    const known = members.get(length);
    if (known !== undefined) return known;
    const zeroes = zeroPiece.subarray(0, length);
    const made = packer === 'gz' ? gzipSync(zeroes, { level: 9 }) : zstdCompressSync(zeroes);
    members.set(length, made);
    return made;
  };
};

const packedOf = ({ lengths, packed }: Encoded): Uint8Array | undefined =>
  lengths[0] === 0 ? undefined : packed.subarray(0, lengths[0]);

/** The compressed disk: one member per piece, valid until the next one is requested. */
export async function* packedBytes(
  volume: ExportVolume,
  encoder: Encoder,
  packer: 'gz' | 'zst',
): AsyncGenerator<Uint8Array, void, undefined> {
  const zeroMember = createZeroMembers(packer);
  let position = 0;
  function* zeroesUpTo(to: number): Generator<Uint8Array, void, undefined> {
    while (position < to) {
      const length = Math.min(pieceBytes, to - position);
      position += length;
      yield zeroMember(length);
    }
  }
  for await (const piece of encoder.encode(volume.extents)) {
    yield* zeroesUpTo(piece.offset);
    position += piece.length;
    yield packedOf(piece) ?? zeroMember(piece.length);
  }
  yield* zeroesUpTo(volume.size);
}
