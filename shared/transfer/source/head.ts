// The beginning of a stream, read before it is decided what is done with all of it.
import { headBytes } from '#shared/transfer/source/source.ts';

/** `isWhole`: nothing follows. */
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
