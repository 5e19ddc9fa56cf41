// A minimal client of an API server: single requests and watches over HTTP/1.1, timed by the caller. For the kill test and benchmarks, which
// use the embedded and a real server.
import { Agent, type Dispatcher } from 'undici';
import type { Access } from '#test/support/api-server/process.ts';

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface OpenWatch {
  /** Resolves when the stream has ended, in any case. */
  readonly ended: Promise<void>;
  readonly stop: () => void;
}

export interface Http {
  readonly access: Access;
  /** Rejects if the connection is refused or interrupted. */
  readonly call: (method: string, path: string, body?: unknown, contentType?: string) => Promise<Answer>;
  /** Resolves when the stream is open. `onLine` receives each event as text; throws unless the status is 200. */
  readonly watch: (path: string, onLine: (line: string) => void) => Promise<OpenWatch>;
  readonly close: () => Promise<void>;
}

export const createHttp = (access: Access): Http => {
  const agent = new Agent({ connect: { ca: access.caPem, timeout: 60_000 }, allowH2: false, bodyTimeout: 0 });
  const send = (method: string, path: string, options: Partial<Dispatcher.RequestOptions>) => {
    const headers = { ...authorization(access), ...(options.headers as Record<string, string> | undefined) };
    return agent.request({ origin: access.url, path, method: method as 'GET', ...options, headers });
  };
  return {
    access,
    call: async (method, path, body, contentType = 'application/json') => {
      const sent = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': contentType } };
      const response = await send(method, path, sent);
      return { status: response.statusCode, text: await response.body.text() };
    },
    watch: async (path, onLine) => {
      const control = new AbortController();
      const response = await send('GET', path, { signal: control.signal });
      if (response.statusCode !== 200) throw new Error(`watch ${path}: ${await response.body.text()}`);
      return { ended: readLines(response.body, onLine), stop: () => control.abort() };
    },
    close: () => agent.destroy(),
  };
};

const authorization = ({ token }: Access) => ({ authorization: `Bearer ${token}`, accept: 'application/json' });

/** Yields complete lines only: a truncated line is not an event. */
const readLines = async (body: AsyncIterable<Buffer>, onLine: (line: string) => void): Promise<void> => {
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      lines.forEach(onLine);
    }
  } catch {
    // A watch that was stopped, or whose server died, ends here.
  }
};
