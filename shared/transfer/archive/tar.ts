// Reads a tar archive as a stream. Names in the archive are never used as paths here.
import {
  type Extra,
  type Header,
  blockBytes,
  broken,
  extraOf,
  isMeta,
  openHeader,
  readHeader,
} from '#shared/transfer/archive/tar-header.ts';

/** `name` has no leading `./` or `/`, and no segment `..`. */
export interface TarEntry extends Header {
  /** The content; can be read once. Unread content is skipped when the next entry is requested. */
  readonly content: AsyncIterable<Buffer>;
}

/** Limit for names and extended attributes; a valid archive is never larger. */
const mostMetaBytes = 1024 * 1024;

const paddedSize = (size: number): number => Math.ceil(size / blockBytes) * blockBytes;

/** Reads a stream in pieces of the requested size. */
const createCursor = (input: AsyncIterable<Buffer>) => {
  const chunks = input[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  /** At most `limit` bytes, at least one; `undefined` at the end. */
  const some = async (limit: number): Promise<Buffer | undefined> => {
    while (held.length === 0) {
      const next = await chunks.next();
      if (next.done === true) return undefined;
      held = next.value;
    }
    const part = held.subarray(0, limit);
    held = held.subarray(part.length);
    return part;
  };
  const exactly = async (length: number): Promise<Buffer | undefined> => {
    const parts: Buffer[] = [];
    for (let got = 0; got < length;) {
      const part = await some(length - got);
      if (part === undefined) {
        if (got === 0) return undefined;
        throw broken('ends too early');
      }
      parts.push(part);
      got += part.length;
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  };
  return { some, exactly, close: () => chunks.return?.() };
};
type Cursor = ReturnType<typeof createCursor>;

const readMeta = async (cursor: Cursor, size: number): Promise<Buffer> => {
  if (size > mostMetaBytes) throw broken('has attributes of an impossible size');
  const padded = paddedSize(size);
  const bytes = padded === 0 ? Buffer.alloc(0) : await cursor.exactly(padded);
  if (bytes === undefined) throw broken('ends too early');
  return bytes.subarray(0, size);
};

/** Content of one entry; its padding is skipped at the end. */
async function* contentOf(
  cursor: Cursor,
  size: number,
  state: { left: number },
): AsyncGenerator<Buffer, void, undefined> {
  const padding = (blockBytes - (size % blockBytes)) % blockBytes;
  while (state.left > padding) {
    const part = await cursor.some(state.left - padding);
    if (part === undefined) throw broken('ends within a file');
    state.left -= part.length;
    yield part;
  }
}

const skip = async (cursor: Cursor, state: { left: number }): Promise<void> => {
  while (state.left > 0) {
    const part = await cursor.some(state.left);
    if (part === undefined) throw broken('ends within a file');
    state.left -= part.length;
  }
};

export interface TarOptions {
  /** The archive must contain its end marker. Default: false, if the size is verified otherwise. */
  readonly needsEnd?: boolean;
}

const isZero = (block: Buffer): boolean => block.every((byte) => byte === 0);

/** Two empty blocks end an archive: the rest is read only for the digest. */
const readPastEnd = async (cursor: Cursor): Promise<void> => {
  const second = await cursor.exactly(blockBytes);
  if (second !== undefined && !isZero(second)) throw broken('continues after an empty block');
  while ((await cursor.some(Infinity)) !== undefined);
};

/** The next header that is an entry itself; `undefined` at the end. */
const nextHeader = async (cursor: Cursor, { needsEnd }: TarOptions): Promise<Header | undefined> => {
  let extra: Extra = {};
  for (;;) {
    const block = await cursor.exactly(blockBytes);
    if (block === undefined) {
      if (needsEnd === true) throw broken('ends too early');
      return undefined;
    }
    if (isZero(block)) {
      await readPastEnd(cursor);
      return undefined;
    }
    const { type, ownSize } = openHeader(block);
    if (!isMeta(type)) return readHeader(block, extra);
    extra = extraOf(type, await readMeta(cursor, ownSize), extra);
  }
};

/** Entries in order. Reads `input` to its end, beyond the end of the archive, unless the loop is left early. Throws TransferError ImageCorrupt. */
export async function* readTar(
  input: AsyncIterable<Buffer>,
  options: TarOptions = {},
): AsyncGenerator<TarEntry, void, undefined> {
  const cursor = createCursor(input);
  try {
    for (;;) {
      const header = await nextHeader(cursor, options);
      if (header === undefined) return;
      const state = { left: paddedSize(header.size) };
      yield { ...header, content: contentOf(cursor, header.size, state) };
      await skip(cursor, state);
    }
  } finally {
    await cursor.close();
  }
}
