// The `aws-chunked` encoding of a body: sizes, signatures and trailers between the bytes.
import { StoreFault } from '#local-cluster/object-store/fault.ts';
import { type Signed, signChunk } from '#local-cluster/object-store/signature.ts';

/** Size limits of lines between chunks, and of chunks: both are kept in memory. */
const mostLineBytes = 16 * 1024;
const mostChunkBytes = 64 * 1024 * 1024;

interface Reader {
  line(): Promise<string>;
  exactly(length: number): Promise<Buffer>;
}

const incomplete = (): StoreFault => new StoreFault('IncompleteBody', 'the body ended within a chunk');

const createReader = (body: AsyncIterable<Buffer>): Reader => {
  const chunks = body[Symbol.asyncIterator]();
  let held: Buffer = Buffer.alloc(0);
  const more = async (): Promise<void> => {
    const next = await chunks.next();
    if (next.done === true) throw incomplete();
    held = Buffer.concat([held, next.value]);
  };
  const take = (length: number): Buffer => {
    const taken = held.subarray(0, length);
    held = held.subarray(length);
    return taken;
  };
  return {
    line: async () => {
      let end = held.indexOf('\r\n');
      for (; end === -1; end = held.indexOf('\r\n')) {
        if (held.length > mostLineBytes) throw new StoreFault('InvalidRequest', 'a chunk header is too long');
        await more();
      }
      const line = take(end).toString('latin1');
      take(2);
      return line;
    },
    exactly: async (length) => {
      // Joined once: joining at each arrival would copy a large chunk repeatedly.
      const parts: Buffer[] = [held];
      let got = held.length;
      while (got < length) {
        const next = await chunks.next();
        if (next.done === true) throw incomplete();
        parts.push(next.value);
        got += next.value.length;
      }
      held = parts.length === 1 ? held : Buffer.concat(parts);
      return take(length);
    },
  };
};

const parseChunkHeader = (line: string) => {
  const match = /^([0-9a-f]{1,8})(?:;chunk-signature=([0-9a-f]{64}))?$/i.exec(line);
  const size = Number.parseInt(match?.[1] ?? 'x', 16);
  if (Number.isNaN(size) || size > mostChunkBytes)
    throw new StoreFault('InvalidRequest', 'a chunk header is malformed');
  return { size, signature: match?.[2] };
};

export interface Chunked {
  readonly bytes: AsyncIterable<Buffer>;
  /** Complete after the end of `bytes`. Names in lower case. */
  readonly trailers: ReadonlyMap<string, string>;
}

/** `signed` for a body with signed chunks; each signature is verified before its chunk is returned. */
export const decodeChunked = (body: AsyncIterable<Buffer>, signed: Signed | undefined): Chunked => {
  const trailers = new Map<string, string>();
  async function* decode(): AsyncGenerator<Buffer, void, undefined> {
    const reader = createReader(body);
    let before = signed?.signature ?? '';
    for (;;) {
      const { size, signature } = parseChunkHeader(await reader.line());
      const data = await reader.exactly(size);
      if (signed !== undefined) {
        before = signChunk(signed, before, data);
        if (before !== signature) throw new StoreFault('SignatureDoesNotMatch', 'the signature of a chunk is wrong');
      }
      if (size === 0) break;
      yield data;
      if ((await reader.line()) !== '') throw new StoreFault('InvalidRequest', 'a chunk is longer than it says');
    }
    for (let line = await reader.line(); line !== ''; line = await reader.line()) {
      const colon = line.indexOf(':');
      trailers.set(line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim());
    }
  }
  return { bytes: decode(), trailers };
};
