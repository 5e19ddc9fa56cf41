// Answers requests that need only their text without Node's fetch, which takes longer to load than the rest of the start and a third of the
// time of a short answer. Offered by admission-function.ts, called by serve.ts.
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface DirectAnswer {
  readonly status: number;
  /** Serialized as JSON. */
  readonly body: object;
}

/** Handles a request given its whole text. */
export interface DirectHandler {
  readonly maxBytes: number;
  readonly tooLarge: () => DirectAnswer;
  readonly answer: (text: string) => Promise<DirectAnswer>;
}

/** An app that answers some requests directly. `undefined`: the request goes to `fetch`, which handles every request. */
export interface DirectApp {
  direct(method: string, url: string): DirectHandler | undefined;
}

/** `isLast`: ask the client to close the connection afterwards. Rejects only if the app does. */
export const answerDirectly = async (
  handler: DirectHandler,
  request: IncomingMessage,
  response: ServerResponse,
  isLast: () => boolean,
): Promise<void> => {
  const text = await readText(request, handler.maxBytes);
  if (text === undefined) return;
  const { status, body } = text === tooLarge ? handler.tooLarge() : await handler.answer(text);
  const bytes = Buffer.from(JSON.stringify(body));
  const leave = isLast() && text !== tooLarge ? { connection: 'close' } : {};
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': bytes.length, ...leave });
  response.end(bytes);
};

const tooLarge = Symbol('too large');

/** Chunks that are held before they are joined: a client may send one for each byte, and each costs a hundred bytes of memory. */
const mostChunks = 10_000;

/** `undefined`: the client disconnected before the end. */
const readText = (request: IncomingMessage, maxBytes: number): Promise<string | typeof tooLarge | undefined> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      // The rest is read and discarded, so that the client reads the answer.
      if (size > maxBytes) return resolve(tooLarge);
      chunks.push(chunk);
      if (chunks.length === mostChunks) chunks.splice(0, mostChunks, Buffer.concat(chunks));
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => resolve(undefined));
    request.once('error', () => resolve(undefined));
  });
