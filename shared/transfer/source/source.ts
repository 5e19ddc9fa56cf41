// The interface of all sources of bytes, with one file per type of source.
import type { TransferError } from '#shared/transfer/fault.ts';
import type { ServedFrom } from '#shared/clients/http/served.ts';

/** The result of the first request to a source. */
export interface SourceFacts {
  /** Bytes of the published file; undefined if the server does not send it. */
  readonly size?: number | undefined;
  /** The first bytes, `headBytes` of them or the whole file if it is shorter. */
  readonly head: Buffer;
  /** The file is no longer than `head`. */
  readonly isWhole: boolean;
  /** `read` works. */
  readonly hasRanges: boolean;
  /** Reads at different times are verified to be of the same object (a strong validator, or an immutable object). */
  readonly isPinned: boolean;
  /** Identifies these bytes across processes: the same name means the same bytes. Undefined if unknown. */
  readonly identity?: string | undefined;
  /** `sha256:…` of the file, where its server states it. */
  readonly digest?: string | undefined;
  /** The bytes are a guest's raw disk, whatever they look like: format and compression are not detected. */
  readonly isGuestDisk?: boolean | undefined;
  /** Labels of the image that describe how to run the disk. */
  readonly labels?: Readonly<Record<string, string>> | undefined;
  /** As published; used only in messages. */
  readonly contentType?: string | undefined;
}

/** Enough for every magic number, an ISO's descriptor, and the first block of a compressed file. */
export const headBytes = 256 * 1024;

/**
 * One published file. Every method throws TransferError, after the allowed retries, or the reason of the signal. A fault with `startOver`
 * invalidates all bytes read so far: call `probe` again.
 */
export interface ByteSource {
  /** Locates the object and pins it: later reads return the same bytes or fail with SourceChanged. */
  probe(): Promise<SourceFacts>;
  /** Exactly `length` bytes from `offset`. Only if `hasRanges`. */
  read(offset: number, length: number): Promise<Buffer>;
  /** Fills `target` with the bytes from `offset`. Only if `hasRanges`. After an exception its content is undefined. */
  readInto(offset: number, target: Uint8Array): Promise<void>;
  /** All bytes in order, resumed after an interruption if the source allows it. */
  stream(): AsyncIterable<Buffer>;
  /**
   * Called once all required bytes were read, before the target is complete: throws if the sender does not confirm the bytes. Undefined if
   * reading is proof enough.
   */
  confirm?(): Promise<void>;
  /**
   * The file is not what it should be: called before it is read again. Returns whether another place than those that served it is left to be asked.
   * Undefined if there is only one.
   */
  readonly distrust?: (fault: TransferError) => boolean;
  /** Where the bytes came from, if there are several places for them. */
  readonly servedFrom?: ServedFrom | undefined;
  /** Bytes received so far, including repetitions. */
  receivedBytes(): number;
  close(): Promise<void>;
}

/** Position of a stream. */
export interface Reached {
  readonly position: number;
  /** Some of the bytes before `position`, to verify that the file is the same. */
  readonly tail: Buffer;
}

export interface ResumableSource extends ByteSource {
  /** All bytes, or those after `from`, which the same bytes must precede. */
  stream(from?: Reached): AsyncIterable<Buffer>;
}

/** The beginning of a stream, read before it is decided what is done with all of it. `isWhole`: nothing follows. */
export const readHead = async (content: AsyncIterator<Buffer>) => {
  const parts: Buffer[] = [];
  let isWhole = false;
  for (let length = 0; length < headBytes && !isWhole;) {
    const next = await content.next();
    if (next.done === true) isWhole = true;
    else {
      parts.push(next.value);
      length += next.value.length;
    }
  }
  return { head: Buffer.concat(parts), isWhole };
};

/** The bytes already read, then the rest. */
export async function* joined(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer, void, undefined> {
  yield head;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}
