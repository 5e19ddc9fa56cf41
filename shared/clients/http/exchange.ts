// One exchange over undici's dispatcher, without a stream between the socket and who wants the bytes: at a gigabyte a second a stream costs as much as
// the network (test/bench/README.md). Silence fails it while somebody waits for bytes, and only then: a slow reader never looks like a slow server.
import type { Dispatcher } from 'undici';
import { HttpFailure } from '#shared/clients/http/errors.ts';

/** What must arrive at least in each window in which somebody waits for bytes all the time. */
export interface Floor {
  readonly bytes: number;
  readonly windowMs: number;
}

export interface ExchangeOptions {
  readonly dispatcher: Dispatcher;
  readonly request: Dispatcher.DispatchOptions;
  /** Milliseconds somebody may wait for the next bytes. */
  readonly idleMs: number;
  /** Left out: any trickle will do. */
  readonly floor?: Floor | undefined;
  readonly host: string;
  readonly signal: AbortSignal | undefined;
  readonly toFailure: (error: unknown) => Error;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Chunks as they are asked for, once. Leaving early closes the connection. */
  body(): AsyncGenerator<Buffer, void, undefined>;
  /** Every chunk at once as it arrives, valid during the call; resolves behind the last. What `take` throws ends the exchange, and is thrown. */
  pour(take: (chunk: Buffer) => void): Promise<void>;
  discard(): void;
}

/** Bytes that may wait for their reader. */
const mostWaiting = 128 * 1024;

const flatten = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> => {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = typeof value === 'string' ? value : value.join(', ');
  }
  return flat;
};

/** The way of the bytes: what has come, who waits for it, and how it ended. */
interface Flow {
  readonly options: ExchangeOptions;
  readonly queue: Buffer[];
  /** Bytes in the queue. */
  waiting: number;
  controller?: Dispatcher.DispatchController;
  end?: { readonly error?: unknown };
  /** Of the window: ms that somebody waited, bytes that came meanwhile, and since when somebody waits now. */
  readonly pace: { waitedMs: number; bytes: number; since: number };
  /** Takes what arrives, in place of the queue. */
  take?: (chunk: Buffer) => void;
  wake?: () => void;
  timer?: NodeJS.Timeout;
  /** Told once, of what ended it. */
  readonly onFault: (error: unknown) => void;
}

const settle = (flow: Flow, end: { readonly error?: unknown }): void => {
  if (flow.end !== undefined) return;
  flow.end = end;
  clearTimeout(flow.timer);
  flow.wake?.();
  if (end.error !== undefined) flow.onFault(end.error);
};

const abort = ({ controller }: Flow, error: unknown): void =>
  controller?.abort(error instanceof Error ? error : new Error(String(error)));

const fail = (flow: Flow, error: unknown): void => {
  if (flow.end !== undefined) return;
  settle(flow, { error });
  abort(flow, error);
};

const begin = (flow: Flow, controller: Dispatcher.DispatchController): void => {
  flow.controller = controller;
  if (flow.end !== undefined) abort(flow, flow.end.error);
};

/** Called as bytes arrive for which somebody waited: total silence has a timer of its own. */
const watchPace = (flow: Flow, bytes: number): void => {
  const { pace, options } = flow;
  const { floor, host } = options;
  if (floor === undefined || pace.since === 0) return;
  const now = performance.now();
  pace.waitedMs += now - pace.since;
  pace.since = flow.take === undefined ? 0 : now;
  pace.bytes += bytes;
  if (pace.waitedMs < floor.windowMs) return;
  if (pace.bytes < floor.bytes) {
    const seconds = Math.round(pace.waitedMs / 1000);
    const words = `${host} sent ${pace.bytes} bytes in ${seconds} seconds: at least ${floor.bytes} in ${floor.windowMs / 1000} are needed`;
    fail(flow, new HttpFailure('Stalled', words));
  }
  pace.waitedMs = 0;
  pace.bytes = 0;
};

const receive = (flow: Flow, chunk: Buffer): void => {
  watchPace(flow, chunk.length);
  if (flow.take !== undefined) {
    flow.timer?.refresh();
    flow.take(chunk);
    return;
  }
  flow.queue.push(chunk);
  flow.waiting += chunk.length;
  if (flow.waiting >= mostWaiting) flow.controller?.pause();
  flow.wake?.();
};

/** Until more has come or nothing more will. */
const more = (flow: Flow): Promise<void> => {
  const { idleMs, host } = flow.options;
  const stall = (): void => fail(flow, new HttpFailure('Stalled', `${host} sent nothing for ${idleMs / 1000} seconds`));
  flow.timer = setTimeout(stall, idleMs);
  flow.pace.since = performance.now();
  return new Promise<void>((resolve) => {
    flow.wake = () => {
      clearTimeout(flow.timer);
      resolve();
    };
    if (flow.controller?.paused === true) flow.controller.resume();
  });
};

/** Throws what ended the exchange too early. `own`: what its reader threw itself. */
const throwFault = ({ end, options: { signal, toFailure } }: Flow, own?: unknown): void => {
  if (end?.error === undefined) return;
  signal?.throwIfAborted();
  throw end.error === own ? end.error : toFailure(end.error);
};

async function* bodyOf(flow: Flow): AsyncGenerator<Buffer, void, undefined> {
  try {
    for (;;) {
      throwFault(flow);
      const chunk = flow.queue.shift();
      if (chunk !== undefined) {
        flow.waiting -= chunk.length;
        yield chunk;
      } else if (flow.end !== undefined) return;
      // oxlint-disable-next-line no-await-in-loop
      else await more(flow);
    }
  } finally {
    fail(flow, new Error('nobody wants the rest'));
  }
}

const pour = async (flow: Flow, to: (chunk: Buffer) => void): Promise<void> => {
  let thrown: unknown;
  const take = (chunk: Buffer): void => {
    try {
      if (flow.end?.error === undefined) to(chunk);
    } catch (error) {
      thrown = error;
      fail(flow, error);
    }
  };
  for (const chunk of flow.queue.splice(0)) take(chunk);
  flow.take = take;
  if (flow.end === undefined) await more(flow);
  throwFault(flow, thrown);
};

/** Resolves with the head of the answer. Rejects with what `toFailure` makes of what went wrong, or the signal's reason. */
export const exchange = (options: ExchangeOptions): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    const { dispatcher, request, signal, toFailure } = options;
    const onAbort = (): void => fail(flow, signal?.reason);
    const onFault = (error: unknown): void => {
      signal?.removeEventListener('abort', onAbort);
      // Of no account where the head was there already.
      reject((signal?.aborted === true ? signal.reason : toFailure(error)) as Error);
    };
    const flow: Flow = { options, queue: [], waiting: 0, pace: { waitedMs: 0, bytes: 0, since: 0 }, onFault };
    signal?.addEventListener('abort', onAbort, { once: true });
    dispatcher.dispatch(request, {
      onRequestStart: (controller) => begin(flow, controller),
      onResponseStart: (_controller, status, headers) => {
        // Before the answer there may be others that only announce it.
        if (status < 200) return;
        resolve({
          status,
          headers: flatten(headers),
          body: () => bodyOf(flow),
          pour: (take) => pour(flow, take),
          discard: () => fail(flow, new Error('nobody wants it')),
        });
      },
      onResponseData: (_controller, chunk) => receive(flow, chunk),
      onResponseEnd: () => {
        signal?.removeEventListener('abort', onAbort);
        settle(flow, {});
      },
      onResponseError: (_controller, error) => settle(flow, { error }),
    });
  });

/** `pour` of a body that comes as a stream. */
export const pourFrom =
  (body: AsyncIterable<Buffer>) =>
  async (take: (chunk: Buffer) => void): Promise<void> => {
    for await (const chunk of body) take(chunk);
  };
