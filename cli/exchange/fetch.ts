// One file on its way from the cluster: into `<file>.part`, gone on with where it was cut, and into place when all of it is there.
import { createWriteStream } from 'node:fs';
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { request } from 'undici';
import { type Persistence, persist, toError } from '#cli/exchange/answer.ts';
import type { Ticket } from '#shared/catalogue/ticket.ts';
import { Unavailable } from '#shared/runtime/errors.ts';

export interface Fetching extends Persistence {
  /** Where it is put; what the server calls it is asked for where left out. */
  readonly file: string | undefined;
  /** Of a file that the server names; empty: here. */
  readonly folder: string;
  /** `format=qcow2&compression=zlib`. */
  readonly query: string;
  readonly getTicket: () => Promise<Ticket>;
  readonly onProgress: (taken: number, size: number | undefined) => void;
}

/** Milliseconds without a byte before the connection is taken for dead. */
const bodyTimeout = 120_000;

const decode = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
};

export const nameFrom = (disposition: string | undefined): string => {
  const encoded = /filename\*=UTF-8''([^;]+)/.exec(disposition ?? '')?.[1];
  const name = (encoded && decode(encoded)) ?? /filename="([^"]+)"/.exec(disposition ?? '')?.[1];
  // Whatever a server says, it says no folder, no hidden file, and nothing to the terminal.
  // oxlint-disable-next-line no-control-regex
  const plain = (name ?? '').replace(/[\u0000-\u001F\u007F-\u009F/\\]/g, '_').replace(/^\.+/, '');
  return plain === '' ? 'disk' : plain;
};

const textOfHeader = (value: string | string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : undefined;

interface Part {
  readonly path: string;
  readonly tagPath: string;
}

const partOf = (file: string): Part => ({ path: `${file}.part`, tagPath: `${file}.part.etag` });

/** What is there of the very file that is being fetched. */
const standingOf = async ({ path, tagPath }: Part): Promise<{ size: number; etag: string } | undefined> => {
  try {
    const [{ size }, etag] = await Promise.all([stat(path), readFile(tagPath, 'utf8')]);
    return size > 0 ? { size, etag } : undefined;
  } catch {
    return undefined;
  }
};

const sizeOf = (range: string | undefined, length: string | undefined): number | undefined => {
  const total = /\/(\d+)$/.exec(range ?? '')?.[1] ?? length;
  return total === undefined ? undefined : Number(total);
};

const fetchRest = async (fetching: Fetching, { url, headers }: Ticket, file: string, taken: { bytes: number }) => {
  const part = partOf(file);
  const before = await standingOf(part);
  const resume = before === undefined ? {} : { range: `bytes=${before.size}-`, 'if-range': before.etag };
  const { signal } = fetching;
  const answer = await request(`${url}?${fetching.query}`, {
    dispatcher: fetching.connection.to(url),
    bodyTimeout,
    headers: { ...headers, ...resume },
    signal,
  });
  const { statusCode, body } = answer;
  // All of it was there already, and only the last step was missing.
  if (statusCode === 416 && before !== undefined) {
    await body.dump();
    if (sizeOf(textOfHeader(answer.headers['content-range']), undefined) === before.size)
      return rename(part.path, file);
    await rm(part.tagPath);
    throw new Unavailable(`${part.path} has changed: the download starts over`);
  }
  if (statusCode !== 200 && statusCode !== 206) throw await toError(answer);
  const isRest = statusCode === 206 && before !== undefined;
  const size = sizeOf(textOfHeader(answer.headers['content-range']), textOfHeader(answer.headers['content-length']));
  if (!isRest) {
    // Bytes of another file must never lie beside the tag of this one, wherever this is cut.
    await writeFile(part.path, '');
    await writeFile(part.tagPath, textOfHeader(answer.headers['etag']) ?? '');
  }
  taken.bytes = isRest ? before.size : 0;
  const counted = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      taken.bytes += chunk.length;
      fetching.onProgress(taken.bytes, size);
      done(undefined, chunk);
    },
  });
  await pipeline(body, counted, createWriteStream(part.path, { flags: 'a' }));
  return rename(part.path, file);
};

/** The file it became. Throws an AppError, or what the file system says. */
export const fetchFile = async (fetching: Fetching): Promise<string> => {
  let file = fetching.file;
  const taken = { bytes: 0 };
  await persist(
    async () => {
      const ticket = await fetching.getTicket();
      file ??= join(fetching.folder, await askName(fetching, ticket));
      await fetchRest(fetching, ticket, file, taken);
      await rm(partOf(file).tagPath, { force: true });
    },
    () => taken.bytes,
    fetching,
  );
  return file ?? '';
};

const askName = async ({ query, signal, connection }: Fetching, { url, headers }: Ticket): Promise<string> => {
  const asked = { dispatcher: connection.to(url), headers, signal };
  const answer = await request(`${url}?${query}`, { method: 'HEAD', ...asked });
  await answer.body.dump();
  if (answer.statusCode === 200) return nameFrom(textOfHeader(answer.headers['content-disposition']));
  // A HEAD has no words: ask again for what is wrong.
  const second = await request(`${url}?${query}`, asked);
  if (second.statusCode !== 200) throw await toError(second);
  // Nothing any more. All of the file is not to be read here.
  second.body.on('error', () => undefined).destroy();
  return nameFrom(textOfHeader(second.headers['content-disposition']));
};
