// The interface of all targets of bytes. Used by the pipeline.
import type { FileHandle } from 'node:fs/promises';
import type { Journal } from '#shared/transfer/resume/journal.ts';

/** A guest's disk that is being filled. Nothing looks complete before `commit`. All methods throw TransferError. */
export interface Sink {
  /** Path at which a program may write the disk; valid after `prepare`. */
  readonly path: string;
  /** Size limit of a guest's disk: the smaller of requested and actual capacity. */
  readonly limitBytes: number;
  /** The open file, if another program may write it from its start, with holes; otherwise `undefined`. After `prepare`. */
  file(): FileHandle | undefined;
  /** Zeroes the target and sets its size if possible; `size` 0: not known yet. */
  prepare(size: number): Promise<void>;
  /**
   * Instead of `prepare`: opens the disk of `size` bytes of an earlier process, unchanged, and returns its journal. Undefined if there is no
   * such disk or journal: then nothing was opened.
   */
  reopen(size: number): Promise<string | undefined>;
  /** Records the progress for a later process; `undefined` if there is no space for it. After `prepare` or `reopen`. */
  journal(): Journal | undefined;
  /** Writes nonzero bytes. `bytes` is owned by the sink from here on. Returns before the data is on disk. */
  write(bytes: Buffer, position: number): Promise<void>;
  /** Bytes written so far, without zeroes; for another program, the allocated bytes. */
  writtenBytes(): Promise<number>;
  /** Waits until everything written is on disk, so that dirty memory stays bounded. */
  flush(): Promise<void>;
  /** Sets the final size, waits until everything is on disk, and makes the target visible. */
  commit(size: number): Promise<void>;
  /** Keeps the data for a later process if there is a journal; otherwise like `abandon`. Never throws. */
  suspend(): Promise<void>;
  /** Leaves nothing that looks like a disk. Never throws. */
  abandon(): Promise<void>;
}
