// Bytes on their way to a client, as the body of an answer.
import { Readable } from 'node:stream';

/** Bytes of a slow client that are held here. Left alone, Node would count chunks, and hold thousands of them. */
const heldBytes = 1024 * 1024;

export const toWeb = (bytes: Readable): ReadableStream =>
  Readable.toWeb(bytes, { strategy: new ByteLengthQueuingStrategy({ highWaterMark: heldBytes }) }) as ReadableStream;
