// Messages between the main thread and the encoding workers.

/** Compression of the guest's bytes: none, per cluster for a qcow2, or per piece as members of a gzip or zstd file. */
export type Packer = 'none' | 'zlib' | 'zstd' | 'gz' | 'zst';

/** Passed to a worker at its start. */
export interface EncoderSetup {
  readonly path: string;
  /** Guest bytes of the disk; the volume may end a few bytes earlier, within its last sector. */
  readonly size: number;
  readonly packer: Packer;
  readonly level: number;
  /** Bytes that are compressed together. */
  readonly unitBytes: number;
  /** Buffers for guest bytes, one for each piece in progress. */
  readonly plain: readonly SharedArrayBuffer[];
  /** Buffers for compressed bytes; empty without compression. */
  readonly packed: readonly SharedArrayBuffer[];
  /** Buffers with parts of an object, for digests. */
  readonly parts: readonly SharedArrayBuffer[];
}

/** Reads `length` guest bytes at `offset` into buffer `slot` and compresses them. */
export interface EncodeRequest {
  readonly slot: number;
  readonly offset: number;
  readonly length: number;
}

/** Digests the first `length` bytes of a part. */
export interface SealRequest {
  readonly part: number;
  readonly length: number;
}

export interface Seal {
  /** Hex. */
  readonly sha256: string;
  readonly crc32: number;
}

/** `lengths`: of each unit; 0: all zero, -1: uncompressed. Compressed units are stored one after the other in the compressed buffer. */
export type EncodeAnswer =
  | { readonly lengths: Int32Array }
  | { readonly seal: Seal }
  | { readonly fault: { readonly message: string; readonly isShorter: boolean } };
