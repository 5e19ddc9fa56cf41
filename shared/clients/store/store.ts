// Stores small objects under keys, in a bucket or a mounted folder. Used for backups.
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { isConflict } from '#shared/runtime/errors.ts';

export interface StoredBytes {
  readonly bytes: Buffer;
  /** Identifies this content, for conditional writes. */
  readonly revision: string;
}

export interface ListedObject {
  readonly key: string;
  readonly size: number;
  /** Milliseconds since the epoch, by the clock of the store: time of the last write. */
  readonly modified: number;
}

/** Precondition of a write: the object does not exist, or still has this revision. Default: none. */
export type Expected = 'nothing' | { readonly revision: string };

/** Methods throw the AppErrors of their client; `isTaken` recognizes a failed precondition. */
export interface Store {
  /** `undefined`: the object does not exist. Throws InvalidInput if it is larger than `mostBytes`. */
  read(key: string, mostBytes: number): Promise<StoredBytes | undefined>;
  /** Bytes of the object; `undefined`: it does not exist. */
  sizeOf(key: string): Promise<number | undefined>;
  /** Atomic. Returns the new revision. */
  write(key: string, bytes: Uint8Array, expected?: Expected): Promise<string>;
  /** Succeeds if the object does not exist. */
  remove(key: string): Promise<void>;
  /** Every key below the prefix, in order. */
  list(prefix: string): AsyncIterable<ListedObject>;
  /**
   * Removes drafts of dead writers below the prefix that were written before this time, by the clock of the store; only for stores that have
   * drafts.
   */
  tidy?(prefix: string, before: number): Promise<void>;
}

/** Whether a write failed because of its precondition. */
export const isTaken = (error: unknown): boolean =>
  isConflict(error) ||
  (error instanceof S3Failure && (error.code === 'PreconditionFailed' || error.code === 'ObjectNotFound'));
