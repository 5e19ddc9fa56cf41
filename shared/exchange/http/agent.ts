// Connections for uploads and downloads over slow lines. Used by uploads, downloads and requests to Longhorn.
import { Agent } from 'undici';
import { Readable } from 'node:stream';

let agent: Agent | undefined;

/**
 * Without timeouts: clients may be slow, and conversion takes time. No connection is reused (`pipelining: 0`): the Job closes those whose body
 * it did not read to the end, and a body cannot be sent again. Created on first use, so that its modules do not delay the start.
 */
export const unhurriedAgent = (): Agent =>
  (agent ??= new Agent({ headersTimeout: 0, bodyTimeout: 0, connectTimeout: 5_000, pipelining: 0 }));

// The body of an answer, streamed to a client.

/** Bytes that are buffered for a slow client. By default Node counts chunks, and buffers thousands of them. */
const heldBytes = 1024 * 1024;

export const toWeb = (bytes: Readable): ReadableStream =>
  Readable.toWeb(bytes, { strategy: new ByteLengthQueuingStrategy({ highWaterMark: heldBytes }) }) as ReadableStream;
