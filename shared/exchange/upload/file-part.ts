// The file in a request: the body as it is, or the part of a form that holds it. Streamed either way.
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Problem } from '#shared/exchange/http/problem.ts';

/** Harvester's and Longhorn's word, and CDI's. */
const partNames = ['chunk', 'file'];

/** Of the form around the file; of its own fields nothing is used. */
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

/** The first part with one of the names; what comes after it is read and dropped. */
const partOf = async (body: Readable, contentType: string): Promise<Readable> => {
  const { Busboy } = await import('@fastify/busboy');
  const found = Promise.withResolvers<Readable>();
  // Without a boundary it is no form.
  if (!/;\s*boundary=/i.test(contentType)) throw unreadable();
  // Some clients give a file no name of its own.
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
  // A form that ends early ends its file with an error, not as if that were all of it.
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

/** The parser has its own words for a form that ends too early. */
async function* inWords(file: Readable): AsyncGenerator<Buffer> {
  try {
    yield* file;
  } catch {
    throw unreadable();
  }
}

export interface FileBody {
  readonly stream: Readable;
  /** Bytes of the file, where the request says so. */
  readonly length: number | undefined;
}

export const lengthOf = (request: Request): number | undefined => {
  const text = request.headers.get('content-length');
  return text === null || !/^\d+$/.test(text) ? undefined : Number(text);
};

/** Whoever stops reading it leaves the connection open: the answer takes the same way back. */
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
