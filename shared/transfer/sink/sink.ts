// What every target of bytes can do. Used by the pipeline.
import type { FileHandle } from 'node:fs/promises';
import type { Journal } from '#shared/transfer/resume/journal.ts';

/** A guest's disk being filled. Nothing looks complete before `commit`. All methods throw TransferError. */
export interface Sink {
  /** Where a program may write the disk; valid after `prepare`. */
  readonly path: string;
  /** Bytes a guest disk may have here: the smaller of what was promised and what is there. */
  readonly limitBytes: number;
  /** The open file, where another program may write it from its beginning, holes and all; `undefined` where it may not. After `prepare`. */
  file(): FileHandle | undefined;
  /** Makes the target all zero and `size` bytes long where that can be set; 0 when the size is not known yet. */
  prepare(size: number): Promise<void>;
  /**
   * In place of `prepare`: opens the disk of `size` bytes that an earlier process began, as it left it, and gives what its journal holds. Undefined
   * where there is no such disk or journal: then nothing was opened.
   */
  reopen(size: number): Promise<string | undefined>;
  /** Tells a later process how far this one came; `undefined` where there is no room for it. After `prepare` or `reopen`. */
  journal(): Journal | undefined;
  /** Writes what is not zero. `bytes` belongs to the sink from here on. Returns before the data is on disk. */
  write(bytes: Buffer, position: number): Promise<void>;
  /** Bytes written so far, zeroes left out; of what another program wrote, the bytes that take up space. */
  writtenBytes(): Promise<number>;
  /** Waits until what was written is on disk, so that dirty memory stays bounded. */
  flush(): Promise<void>;
  /** Sets the final size, waits until everything is on disk, and makes the target visible. */
  commit(size: number): Promise<void>;
  /** Leaves what the journal speaks of to a later process; without a journal, as `abandon`. Never throws. */
  suspend(): Promise<void>;
  /** Leaves nothing that could be taken for a disk. Never throws. */
  abandon(): Promise<void>;
}
