// Plain HTTPS to a server: one request, or one watch. The case gets the complete response.
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { Agent, request } from 'undici';
import type {
  Answer,
  CallOptions,
  ConformanceServer,
  Watch,
  WatchedEvent,
} from '#local-cluster/conformance/suite/case.ts';
import type { JsonValue } from '#local-cluster/conformance/suite/json.ts';

/** Milliseconds until a watch without events fails the case. */
const silenceMs = 60_000;

export interface Http {
  readonly call: (method: string, path: string, options?: CallOptions) => Promise<Answer>;
  readonly watch: (path: string, options?: { readonly accept?: string }) => Promise<Watch>;
  readonly close: () => Promise<void>;
}

export const createHttp = (server: ConformanceServer): Http => {
  const dispatcher = new Agent({ connect: { ca: server.caPem }, allowH2: false });
  const send = (method: string, path: string, options: CallOptions, signal?: AbortSignal) => {
    const body = options.text ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    return request(server.url + path, {
      dispatcher,
      method: method as 'GET',
      headers: headersOf(server, options, body !== undefined),
      body: body ?? null,
      bodyTimeout: 0,
      ...(signal === undefined ? {} : { signal }),
    });
  };
  return {
    call: async (method, path, options = {}) => {
      const response = await send(method, path, options, AbortSignal.timeout(100_000));
      const headers = response.headers as Record<string, string | undefined>;
      return { status: response.statusCode, headers, body: parseBody(await response.body.text()) };
    },
    watch: async (path, options = {}) => {
      const control = new AbortController();
      const response = await send('GET', path, options, control.signal);
      if (response.statusCode !== 200) throw new Error(`watch ${path}: ${await response.body.text()}`);
      return readWatch(response.body, control);
    },
    close: () => dispatcher.destroy(),
  };
};

const headersOf = (server: ConformanceServer, options: CallOptions, hasBody: boolean): Record<string, string> => {
  const token = options.token === undefined ? server.token : options.token;
  return {
    'user-agent': 'conformance/1.0',
    accept: options.accept ?? 'application/json',
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(hasBody ? { 'content-type': options.contentType ?? 'application/json' } : {}),
    ...options.headers,
  };
};

const parseBody = (text: string): JsonValue => {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return text;
  }
};

const readWatch = (body: NodeJS.ReadableStream, control: AbortController): Watch => {
  const queue: WatchedEvent[] = [];
  let wake = (): void => undefined;
  let open = true;
  const ended = (async () => {
    try {
      for await (const line of createInterface({ input: body, crlfDelay: Infinity })) {
        queue.push(JSON.parse(line) as WatchedEvent);
        wake();
      }
    } catch {
      // A stopped watch ends here too.
    }
    open = false;
  })();
  const take = async (): Promise<WatchedEvent> => {
    const deadline = Date.now() + silenceMs;
    for (;;) {
      const event = queue.shift();
      if (event !== undefined) return event;
      if (!open) throw new Error('the server ended the watch');
      if (Date.now() > deadline) throw new Error('the watch stayed silent for 60 s');
      await Promise.race([new Promise<void>((resolve) => (wake = resolve)), ended, sleep(500)]);
    }
  };
  return {
    next: async ({ bookmarks = false } = {}) => {
      let event = await take();
      while (event.type === 'BOOKMARK' && !bookmarks) event = await take();
      return event;
    },
    ended,
    stop: () => control.abort(),
  };
};
