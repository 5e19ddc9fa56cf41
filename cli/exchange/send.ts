// One file on its way into one target, with tus 1.0: where it stands is asked, never remembered, so that any machine can go on.
import { createReadStream } from 'node:fs';
import { Transform, pipeline } from 'node:stream';
import { type Dispatcher, Agent, request } from 'undici';
import { type Persistence, persist, toError } from '#cli/exchange/answer.ts';
import type { Ticket } from '#cli/exchange/ticket.ts';
import { Standing } from '#shared/exchange/upload/standing.ts';
import { InvalidInput, Unavailable, messageOf } from '#shared/runtime/errors.ts';

export interface Sending extends Persistence {
  readonly file: string;
  readonly size: number;
  /** `sha256:<hex>`. */
  readonly checksum: string;
  /** Bytes of the disk in it, where that can be told. */
  readonly virtualSize: number | undefined;
  readonly getTicket: () => Promise<Ticket>;
  readonly onProgress: (sent: number) => void;
}

/** The last bytes are answered when the disk is written and verified. */
const patient = new Agent({ headersTimeout: 0, bodyTimeout: 0, connectTimeout: 10_000 });
const tus = { 'tus-resumable': '1.0.0' };

const encode = (text: string): string => Buffer.from(text).toString('base64');

const ask = (url: string, options: Omit<Dispatcher.RequestOptions, 'path'>) =>
  request(url, { dispatcher: patient, ...options } as never);

const lookUp = async (sending: Sending, { url, headers }: Ticket): Promise<Standing> => {
  const answer = await ask(url, { method: 'GET', headers, signal: sending.signal });
  if (answer.statusCode !== 200) throw await toError(answer);
  return Standing.parse(await answer.body.json());
};

/** Where nothing more is taken. */
const closed: readonly Standing['stage'][] = ['done', 'failed', 'no-upload', 'theirs'];

const metadataOf = ({ checksum, virtualSize }: Sending): string =>
  [
    `checksum ${encode(checksum)}`,
    ...(virtualSize === undefined ? [] : [`virtualSize ${encode(String(virtualSize))}`]),
  ].join(',');

/** Address of the upload: of the same file that is under way, or of one that begins. `sent`: bytes, by this command. */
const begin = async (
  sending: Sending,
  ...[ticket, sent]: [Ticket, number]
): Promise<{ url: string; offset: number } | 'done'> => {
  const { size, checksum, signal } = sending;
  const { stage, message, upload, digest } = await lookUp(sending, ticket);
  // Only this very file is no mistake: of its sending, the last answer was lost, or this command is started again.
  if (stage === 'done' && (digest === undefined ? sent === size : digest === checksum)) return 'done';
  if (closed.includes(stage)) throw new InvalidInput(message, [{ field: 'target', message }]);
  if (upload?.length === size && upload.checksum === checksum) {
    return { url: `${ticket.url}/${upload.id}`, offset: upload.offset };
  }
  const answer = await ask(ticket.url, {
    method: 'POST',
    headers: { ...ticket.headers, ...tus, 'upload-length': String(size), 'upload-metadata': metadataOf(sending) },
    signal,
  });
  if (answer.statusCode !== 201) throw await toError(answer);
  await answer.body.dump();
  const location = answer.headers['location'];
  if (typeof location !== 'string') throw new Unavailable('the transfer function does not say where the upload goes');
  return { url: new URL(location, ticket.url).href, offset: 0 };
};

/** Throws an AppError. Resolves once the disk is written and verified. */
export const sendFile = async (sending: Sending): Promise<void> => {
  let sent = 0;
  const step = async (): Promise<void> => {
    const ticket = await sending.getTicket();
    const where = await begin(sending, ticket, sent);
    if (where === 'done') return;
    sent = where.offset;
    const counted = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        sent += chunk.length;
        sending.onProgress(sent);
        done(undefined, chunk);
      },
    });
    const bytes = createReadStream(sending.file, { start: where.offset, highWaterMark: 1024 * 1024 });
    // What goes wrong with one of them ends the other, and the request with it.
    const body = pipeline(bytes, counted, () => undefined);
    const headers = {
      ...ticket.headers,
      ...tus,
      'content-type': 'application/offset+octet-stream',
      'upload-offset': String(where.offset),
    };
    const answer = await ask(where.url, { method: 'PATCH', headers, body, signal: sending.signal });
    // The connection of before brought more than it seemed: look again.
    if (answer.statusCode === 409) throw new Unavailable(messageOf(await toError(answer)));
    if (answer.statusCode !== 204) throw await toError(answer);
    await answer.body.dump();
    const arrived = Number(answer.headers['upload-offset']);
    if (arrived !== sending.size)
      throw new Unavailable(`${arrived} of ${sending.size} bytes arrived: was ${sending.file} cut meanwhile?`);
  };
  await persist(step, () => sent, sending);
};
