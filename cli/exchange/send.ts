// One file on its way into one target, with tus 1.0: where it stands is asked, never remembered, so that any machine can go on.
import { createReadStream } from 'node:fs';
import { type Readable, Transform, pipeline } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { type Persistence, TimeIsOver, persist, toError } from '#cli/exchange/answer.ts';
import type { Ticket } from '#shared/catalogue/ticket.ts';
import { Standing } from '#shared/exchange/upload/standing.ts';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';

export interface FileUpload extends Persistence {
  readonly file: string;
  /** Its bytes from one on. Default: those of the file of that name. */
  readonly read?: ((start: number) => Readable) | undefined;
  readonly size: number;
  /** `sha256:<hex>`. */
  readonly checksum: string;
  /** Bytes of the disk in it, where it is known. */
  readonly virtualSize: number | undefined;
  readonly getTicket: () => Promise<Ticket>;
  readonly onProgress: (sent: number) => void;
  /** Milliseconds in which something has to move, or, once all of it was sent, an answer to come; five minutes where left out. */
  readonly silenceMs?: number;
}

const tus = { 'tus-resumable': '1.0.0' };

const encode = (text: string): string => Buffer.from(text).toString('base64');

/**
 * The other side looks for its pod for minutes before it takes a byte, and answers within a minute of the last one: whoever is silent for longer
 * is not there any more.
 */
const longestSilenceMs = 300_000;

const ask = (
  { connection, silenceMs = longestSilenceMs }: FileUpload,
  url: string,
  options: Omit<Dispatcher.RequestOptions, 'path'>,
) =>
  request(url, {
    dispatcher: connection.to(url),
    headersTimeout: silenceMs,
    bodyTimeout: silenceMs,
    ...options,
  } as never);

const lookUp = async (sending: FileUpload, ticket: Ticket, isSecond = false): Promise<Standing> => {
  const { url, headers } = ticket;
  const answer = await ask(sending, url, { method: 'GET', headers, signal: sending.signal });
  // It came to its end between two looks of the other side.
  if (answer.statusCode === 409 && !isSecond) {
    await answer.body.dump();
    return lookUp(sending, ticket, true);
  }
  if (answer.statusCode !== 200) throw await toError(answer);
  return Standing.parse(await answer.body.json());
};

/** Whether nothing more is taken. What failed before is started again by another file; what this one made fail has failed. */
const isClosed = (stage: Standing['stage'], sent: number): boolean =>
  stage === 'failed' ? sent > 0 : ['done', 'no-upload', 'theirs'].includes(stage);

/** Only this very file is no mistake: of its sending, the last answer was lost, or this command is started again. */
const isThisFile = ({ size, checksum }: FileUpload, { stage, digest }: Standing, sent: number): boolean =>
  stage === 'done' && (digest === undefined ? sent === size : digest === checksum);

const metadataOf = ({ checksum, virtualSize }: FileUpload): string =>
  [
    `checksum ${encode(checksum)}`,
    ...(virtualSize === undefined ? [] : [`virtualSize ${encode(String(virtualSize))}`]),
  ].join(',');

/** Address of the upload: of the same file that is under way, or of one that begins. `sent`: bytes, by this command. */
const begin = async (
  sending: FileUpload,
  ticket: Ticket,
  sent: number,
): Promise<{ url: string; offset: number } | 'done' | 'arrived'> => {
  const { size, checksum, signal } = sending;
  const standing = await lookUp(sending, ticket);
  const { stage, message, upload } = standing;
  if (isThisFile(sending, standing, sent)) return 'done';
  if (isClosed(stage, sent)) throw new InvalidInput(message, [{ field: 'target', message }]);
  if (upload?.length === size && upload.checksum === checksum) {
    if (upload.offset === size) return 'arrived';
    return { url: `${ticket.url}/${upload.id}`, offset: upload.offset };
  }
  const answer = await ask(sending, ticket.url, {
    method: 'POST',
    headers: { ...ticket.headers, ...tus, 'upload-length': String(size), 'upload-metadata': metadataOf(sending) },
    signal,
  });
  if (answer.statusCode !== 201) {
    const refusal = await toError(answer);
    // What was sent before this command was written to its end since the look.
    if (answer.statusCode === 409 && isThisFile(sending, await lookUp(sending, ticket), sent)) return 'done';
    throw refusal;
  }
  await answer.body.dump();
  const location = answer.headers['location'];
  if (typeof location !== 'string') throw new Unavailable('the transfer function does not say where the upload goes');
  return { url: new URL(location, ticket.url).href, offset: 0 };
};

/** Of a file, in bytes. */
const highWaterMark = 1024 * 1024;

/** Milliseconds between two looks at what becomes of a file that has arrived. */
const pollMs = 2000;

/** Throws an AppError. Resolves once the disk is written and verified. */
export const sendFile = async (sending: FileUpload): Promise<void> => {
  let sent = 0;
  // What has left this machine may have come nowhere: only what the other side has is progress.
  let arrivedBytes = 0;
  let arrivedAt = Number.POSITIVE_INFINITY;
  const step = async (): Promise<void> => {
    const ticket = await sending.getTicket();
    const where = await begin(sending, ticket, sent);
    if (where === 'done') return;
    if (where === 'arrived') {
      sending.onProgress(sending.size);
      arrivedAt = Math.min(arrivedAt, performance.now());
      if (performance.now() - arrivedAt >= (sending.patienceMs ?? Number.POSITIVE_INFINITY))
        throw new TimeIsOver('all of the file has arrived, and its disk is still being written');
      await sleep(pollMs, undefined, { signal: sending.signal });
      return step();
    }
    sent = where.offset;
    arrivedBytes = Math.max(arrivedBytes, where.offset);
    const counted = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        sent += chunk.length;
        sending.onProgress(sent);
        done(undefined, chunk);
      },
    });
    const bytes =
      sending.read?.(where.offset) ?? createReadStream(sending.file, { start: where.offset, highWaterMark });
    // What goes wrong with one of them ends the other, and the request with it.
    const body = pipeline(bytes, counted, () => undefined);
    const headers = {
      ...ticket.headers,
      ...tus,
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(where.offset),
    };
    const answer = await ask(sending, where.url, { method: 'PATCH', headers, body, signal: sending.signal });
    // The connection of before brought more than it seemed: look again.
    if (answer.statusCode === 409) throw new Unavailable(messageOf(await toError(answer)));
    if (answer.statusCode !== 204) throw await toError(answer);
    await answer.body.dump();
    const arrived = Number(answer.headers['upload-offset']);
    if (arrived !== sending.size)
      throw new Unavailable(`${arrived} of ${sending.size} bytes arrived: was ${sending.file} truncated meanwhile?`);
    // All of it is there, and the answer could not wait for the rest.
    if (answer.headers['retry-after'] !== undefined) await step();
  };
  await persist(step, () => arrivedBytes, sending);
};
