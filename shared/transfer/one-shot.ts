// Packs and unpacks many small pieces with one zlib state and one buffer. Node's synchronous functions make both anew for each piece: for clusters
// of 64 KiB that costs a third of the unpacking, and leaves garbage that costs as much again to collect (measured: test/bench/README.md).
import {
  constants,
  createDeflateRaw,
  createInflateRaw,
  createZstdCompress,
  createZstdDecompress,
  deflateRawSync,
  inflateRawSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';

/** Takes a whole piece. What it gives is valid until the next call. Throws what zlib says of broken pieces, and of results that are too long. */
export type OneShot = (piece: Buffer) => Buffer;

/** What Node's own synchronous functions call. Not public: `reuse` looks whether it is as known. */
interface Handle {
  onerror: (message: string) => void;
  reset(): void;
  writeSync(flush: number, ...io: [Buffer, number, number, Buffer, number, number]): void;
}

interface Held {
  readonly _handle?: Partial<Handle>;
  /** Bytes left free in the output, and unread in the input, by the last write. */
  readonly _writeState?: Uint32Array;
}

const isHandle = (handle: Partial<Handle> | undefined): handle is Handle =>
  typeof handle?.writeSync === 'function' && typeof handle.reset === 'function';

export interface Reused {
  /** Makes a zlib stream, for this alone. */
  readonly create: () => object;
  /** Flush mode of a piece that is whole. */
  readonly end: number;
  /** Bytes a piece may become. */
  readonly most: number;
  /** Whether the state begins anew by itself behind a whole piece, as zstd's encoder does; its reset would forget the settings. */
  readonly renews: boolean;
}

interface State {
  readonly handle: Handle;
  readonly left: Uint32Array;
  fault: string | undefined;
}

const open = (stream: object): State | undefined => {
  const { _handle: handle, _writeState: left } = stream as Held;
  if (!isHandle(handle) || left?.length !== 2) return undefined;
  const state: State = { handle, left, fault: undefined };
  handle.onerror = (message) => {
    state.fault = message;
  };
  return state;
};

/** `undefined` where this Node has it otherwise. */
export const reuse = ({ create, end, most, renews }: Reused): OneShot | undefined => {
  const first = open(create());
  if (first === undefined) return undefined;
  // One byte more tells a result that is too long.
  const room = most + 1;
  const result = Buffer.allocUnsafeSlow(room);
  let state: State | undefined = first;
  return (piece) => {
    // A fault stays in zstd's, whatever it is told.
    const { handle, left } = (state ??= open(create()) ?? first);
    handle.writeSync(end, piece, 0, piece.length, result, 0, room);
    const { fault } = state;
    const length = room - (left[0] ?? 0);
    if (fault !== undefined || length > most) {
      state = undefined;
      throw new Error(fault ?? `the result has more than ${most} bytes`);
    }
    if (!renews) handle.reset();
    return result.subarray(0, length);
  };
};

/** qemu packs and unpacks clusters with a window of 4 KiB. */
const windowBits = 12;

/** Of raw deflate as qemu writes it. `most`: bytes a piece unpacks to. */
export const createInflater = (most: number): OneShot =>
  reuse({ create: () => createInflateRaw({ windowBits }), end: constants.Z_FINISH, most, renews: false }) ??
  ((piece) => inflateRawSync(piece, { chunkSize: most + 64, maxOutputLength: most, windowBits }));

/** Takes one whole frame; of one that is cut off it gives what is there, without a word. */
export const createZstdUnpacker = (most: number): OneShot =>
  reuse({ create: () => createZstdDecompress(), end: constants.ZSTD_e_end, most, renews: false }) ??
  ((piece) => zstdDecompressSync(piece, { chunkSize: most + 64, maxOutputLength: most }));

/** Room for pieces of that size that cannot be packed. */
const packedBound = (pieceBytes: number): number => pieceBytes + Math.ceil(pieceBytes / 128) + 1024;

/** Raw deflate for qemu. `pieceBytes`: the largest piece. */
export const createDeflater = (pieceBytes: number, level: number): OneShot => {
  const options = { level, windowBits, memLevel: 9, chunkSize: packedBound(pieceBytes) };
  const most = packedBound(pieceBytes);
  return (
    reuse({ create: () => createDeflateRaw(options), end: constants.Z_FINISH, most, renews: false }) ??
    ((piece) => deflateRawSync(piece, options))
  );
};

/** One frame for each piece; `isFile`: with its length and a checksum, as the zstd program writes them. */
export const createZstdPacker = (pieceBytes: number, level: number, isFile: boolean): OneShot => {
  const most = packedBound(pieceBytes);
  const params = {
    [constants.ZSTD_c_compressionLevel]: level,
    [constants.ZSTD_c_contentSizeFlag]: Number(isFile),
    [constants.ZSTD_c_checksumFlag]: Number(isFile),
  };
  const options = { chunkSize: most, params };
  return (
    reuse({ create: () => createZstdCompress(options), end: constants.ZSTD_e_end, most, renews: true }) ??
    ((piece) => zstdCompressSync(piece, options))
  );
};
