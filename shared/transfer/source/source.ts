// What every source of bytes can do. One file beside this for each kind of source.

/** What the first look at a source told. */
export interface SourceFacts {
  /** Bytes of the published file; absent when the server does not say. */
  readonly size?: number | undefined;
  /** The first bytes, `headBytes` of them or the whole file if it is shorter. */
  readonly head: Buffer;
  /** The file is no longer than `head`. */
  readonly isWhole: boolean;
  /** `read` works. */
  readonly hasRanges: boolean;
  /** Reads at different times are proven to be of the same object (a strong validator, or an immutable object). */
  readonly isPinned: boolean;
  /** Names these bytes to other processes: under the same name there are the same bytes. Absent where nothing does. */
  readonly identity?: string | undefined;
  /** The bytes are a guest's raw disk, whatever they look like: neither format nor compression is looked for. */
  readonly isGuestDisk?: boolean | undefined;
  /** How to run the disk, as its image says. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** As published; for messages only, nothing is decided by it. */
  readonly contentType?: string | undefined;
}

/** Enough for every magic number, an ISO's descriptor, and the first block of a compressed file. */
export const headBytes = 256 * 1024;

/**
 * One published file. Every method throws TransferError, after the retries the limits allow, or the signal's reason. A fault with `startOver`
 * means that what was read so far must be forgotten: call `probe` again.
 */
export interface ByteSource {
  /** Finds the object and pins it: later reads are of the same bytes or fail as SourceChanged. */
  probe(): Promise<SourceFacts>;
  /** Exactly `length` bytes from `offset`. Only where `hasRanges`. */
  read(offset: number, length: number): Promise<Buffer>;
  /** Fills `target` with the bytes from `offset`. Only where `hasRanges`. After a throw its content is undefined. */
  readInto(offset: number, target: Uint8Array): Promise<void>;
  /** All bytes in order, resumed after a cut where the source allows it. */
  stream(): AsyncIterable<Buffer>;
  /**
   * Called once all that is needed was read, before the target counts as complete: throws where the sender does not vouch for the bytes. Left out
   * where a read is proof enough.
   */
  confirm?(): Promise<void>;
  /** Bytes received so far, repeats included. */
  receivedBytes(): number;
  close(): Promise<void>;
}
