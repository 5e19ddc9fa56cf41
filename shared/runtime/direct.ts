// Answers that need no more than a request's text, given without Node's fetch: it takes longer to load than all else of a start, and a third of
// the time of a short answer. Offered by admission-function.ts, called by serve.ts.
import type { IncomingMessage, ServerResponse } from 'node:http';

export interface DirectAnswer {
  readonly status: number;
  /** Becomes JSON. */
  readonly body: object;
}

/** What an app does with a request whose text it wants whole. */
export interface DirectHandler {
  readonly maxBytes: number;
  readonly tooLarge: () => DirectAnswer;
  readonly answer: (text: string) => Promise<DirectAnswer>;
}

/** An app that answers some requests so. `undefined`: that one goes to `fetch`, as all may. */
export interface DirectApp {
  direct(method: string, url: string): DirectHandler | undefined;
}

/** `isLast`: the client is asked to leave afterwards. Rejects only where the app does. */
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

/** `undefined`: the client left before it was whole. */
const readText = (request: IncomingMessage, maxBytes: number): Promise<string | typeof tooLarge | undefined> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      // The rest is read and dropped, so that the client gets to read the answer.
      if (size > maxBytes) resolve(tooLarge);
      else chunks.push(chunk);
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('close', () => resolve(undefined));
    request.once('error', () => resolve(undefined));
  });
