// The file in a request: the whole body, or the part of a form that contains it. Streamed in both cases.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Problem } from '#shared/exchange/http/problem.ts';

/** The part names of Harvester and Longhorn, and of CDI. */
const partNames = ['chunk', 'file'];

/** Limits for the form around the file; its other fields are ignored. */
const limits = { fieldSize: 64 * 1024, fields: 20, parts: 30, headerPairs: 100 };

const isForm = (contentType: string): boolean => /^multipart\/form-data\b/i.test(contentType);

const noPart = (): Problem =>
  new Problem(
    400,
    'BadRequest',
    `the form has no file: name its part ${partNames.map((name) => `"${name}"`).join(' or ')}`,
  );

const unreadable = (): Problem =>
  new Problem(400, 'BadRequest', 'the form cannot be read: it is cut off or not what its boundary says');

/** The first part with one of the names; the rest is read and discarded. */
const partOf = async (body: Readable, contentType: string): Promise<Readable> => {
  const { Busboy } = await import('@fastify/busboy');
  const found = Promise.withResolvers<Readable>();
  // A form must have a boundary.
  if (!/;\s*boundary=/i.test(contentType)) throw unreadable();
  // Some clients send no file name.
  const isPartAFile = (name = '', type = '', fileName?: string): boolean =>
    fileName !== undefined || partNames.includes(name) || type === 'application/octet-stream';
  const parser = new Busboy({ headers: { 'content-type': contentType }, limits, isPartAFile });
  let isFound = false;
  parser.on('file', (name, file) => {
    if (isFound || !partNames.includes(name)) {
      file.resume();
      return;
    }
    isFound = true;
    found.resolve(file);
  });
  // A form that ends early fails its file, instead of truncating it.
  pipeline(body, parser).then(
    () => found.reject(noPart()),
    () => {
      found.reject(unreadable());
      void found.promise.then(
        (file) => file.destroy(unreadable()),
        () => undefined,
      );
    },
  );
  return Readable.from(inWords(await found.promise), { objectMode: false });
};

/** Replaces the parser's messages for a form that ends early. */
async function* inWords(file: Readable): AsyncGenerator<Buffer> {
  try {
    yield* file;
  } catch {
    throw unreadable();
  }
}

export interface FileBody {
  readonly stream: Readable;
  /** Bytes of the file, if the request contains them. */
  readonly length: number | undefined;
}

export const lengthOf = (request: Request): number | undefined => {
  const text = request.headers.get('content-length');
  return text === null || !/^\d+$/.test(text) ? undefined : Number(text);
};

/** A reader that stops leaves the connection open, because the answer uses it. */
async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    reader.releaseLock();
  }
}

/** Throws a Problem (400). */
export const fileOf = async (request: Request, form: 'either' | 'raw' | 'form'): Promise<FileBody> => {
  const contentType = request.headers.get('content-type') ?? '';
  const body = request.body === null ? Readable.from([]) : Readable.from(read(request.body), { objectMode: false });
  const isPart = form === 'form' || (form === 'either' && isForm(contentType));
  if (!isPart) return { stream: body, length: lengthOf(request) };
  if (!isForm(contentType)) throw new Problem(400, 'BadRequest', 'send the file as multipart/form-data');
  return { stream: await partOf(body, contentType), length: undefined };
};
