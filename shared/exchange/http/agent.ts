// Connections on which people send and take bytes over slow lines. Called by uploads, downloads and what goes to Longhorn.
import { Agent } from 'undici';
import { Readable } from 'node:stream';

let agent: Agent | undefined;

/**
 * Nothing here is in a hurry: people send over slow lines, and conversion takes its time. No connection is used twice (`pipelining: 0`): the Job
 * closes those whose body it did not want to the end, and a body cannot be sent again. Made when it is first asked for, so that no start loads
 * what it stands on.
 */
export const unhurriedAgent = (): Agent =>
  (agent ??= new Agent({ headersTimeout: 0, bodyTimeout: 0, connectTimeout: 5_000, pipelining: 0 }));

// Bytes on their way to a client, as the body of an answer.

/** Bytes of a slow client that are held here. Left alone, Node would count chunks, and hold thousands of them. */
const heldBytes = 1024 * 1024;

export const toWeb = (bytes: Readable): ReadableStream =>
  Readable.toWeb(bytes, { strategy: new ByteLengthQueuingStrategy({ highWaterMark: heldBytes }) }) as ReadableStream;
