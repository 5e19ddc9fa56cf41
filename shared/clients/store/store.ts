// A place that keeps small objects under keys, whatever is behind it: a bucket, or a mounted folder. Backups are kept in one.
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { isConflict } from '#shared/runtime/errors.ts';

export interface StoredBytes {
  readonly bytes: Buffer;
  /** Names this content: `write` can be held to it. */
  readonly revision: string;
}

export interface ListedObject {
  readonly key: string;
  readonly size: number;
  /** Milliseconds since the epoch, by the clock of the store: when it was written last. */
  readonly modified: number;
}

/** What a write is held to: that nothing is there yet, or that what is there is still this revision. Left out: nothing. */
export type Expected = 'nothing' | { readonly revision: string };

/** Methods throw AppErrors of their client: see isTaken for where what was expected is not so. */
export interface Store {
  /** `undefined`: there is no such object. Refuses with InvalidInput what is larger than `mostBytes`. */
  read(key: string, mostBytes: number): Promise<StoredBytes | undefined>;
  /** Bytes of the object; `undefined`: there is none. */
  sizeOf(key: string): Promise<number | undefined>;
  /** Whole or not at all. Gives the new revision. */
  write(key: string, bytes: Uint8Array, expected?: Expected): Promise<string>;
  /** Removing what is not there is fine. */
  remove(key: string): Promise<void>;
  /** Every key below the prefix, in order. */
  list(prefix: string): AsyncIterable<ListedObject>;
  /** Removes what writers that died left below the prefix, where a store has such: what was written before this time, by the clock of the store. */
  tidy?(prefix: string, before: number): Promise<void>;
}

/** Whether a write found another object than it was held to. */
export const isTaken = (error: unknown): boolean =>
  isConflict(error) ||
  (error instanceof S3Failure && (error.code === 'PreconditionFailed' || error.code === 'ObjectNotFound'));
