// What the main thread and the encoding workers say to each other.

/** How the guest's bytes are packed: not at all, cluster by cluster for a qcow2, or piece by piece as members of a gzip or zstd file. */
export type Packer = 'none' | 'zlib' | 'zstd' | 'gz' | 'zst';

/** Given to a worker at its start. */
export interface EncoderSetup {
  readonly path: string;
  /** Guest bytes of the disk; the volume may end a few bytes before, inside its last sector. */
  readonly size: number;
  readonly packer: Packer;
  readonly level: number;
  /** Bytes that are packed together. */
  readonly unitBytes: number;
  /** For guest bytes, one for each piece under way. */
  readonly plain: readonly SharedArrayBuffer[];
  /** For packed bytes, beside them; empty where nothing is packed. */
  readonly packed: readonly SharedArrayBuffer[];
  /** Parts of an object on their way, to be digested. */
  readonly parts: readonly SharedArrayBuffer[];
}

/** Reads `length` guest bytes at `offset` into buffer `slot` and packs them. */
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

/** `lengths`: of each unit, 0 where it is all zero, -1 where it is as it was; packed ones lie one behind the other in the packed buffer. */
export type EncodeAnswer =
  | { readonly lengths: Int32Array }
  | { readonly seal: Seal }
  | { readonly fault: { readonly message: string; readonly isShorter: boolean } };
