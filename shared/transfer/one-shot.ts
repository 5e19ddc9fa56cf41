// Compresses and decompresses many small pieces with one zlib state and one buffer. Node's synchronous functions create both for each piece:
// for clusters of 64 KiB that takes a third of the decompression time, and the same again for garbage collection (measured:
// test/bench/README.md).
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

/**
 * Processes a whole piece. The result is valid until the next call. Throws errors of zlib for broken pieces, and an error for results that are
 * too long.
 */
export type OneShot = (piece: Buffer) => Buffer;

/** The internal API of Node's own synchronous functions. Not public: `reuse` checks that it is as expected. */
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
  /** Creates a zlib stream for exclusive use. */
  readonly create: () => object;
  /** Flush mode that ends a piece. */
  readonly end: number;
  /** Maximal size of a result. */
  readonly most: number;
  /** Whether the state resets itself after a whole piece, as zstd's encoder does; an explicit reset would lose the settings. */
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

/** `undefined` if this version of Node differs. */
export const reuse = ({ create, end, most, renews }: Reused): OneShot | undefined => {
  const first = open(create());
  if (first === undefined) return undefined;
  // One additional byte detects a result that is too long.
  const room = most + 1;
  const result = Buffer.allocUnsafeSlow(room);
  let state: State | undefined = first;
  return (piece) => {
    // An error cannot be reset in zstd's state.
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

/** qemu compresses clusters with a window of 4 KiB. */
const windowBits = 12;

/** Raw deflate as written by qemu. `most`: decompressed bytes of a piece. */
export const createInflater = (most: number): OneShot =>
  reuse({ create: () => createInflateRaw({ windowBits }), end: constants.Z_FINISH, most, renews: false }) ??
  ((piece) => inflateRawSync(piece, { chunkSize: most + 64, maxOutputLength: most, windowBits }));

/** Processes one whole frame; of a truncated frame it returns the available part, without an error. */
export const createZstdUnpacker = (most: number): OneShot =>
  reuse({ create: () => createZstdDecompress(), end: constants.ZSTD_e_end, most, renews: false }) ??
  ((piece) => zstdDecompressSync(piece, { chunkSize: most + 64, maxOutputLength: most }));

/** Buffer size for incompressible pieces. */
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

/** One frame per piece; `isFile`: with its length and a checksum, like the zstd program. */
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
