// One HTTP request over undici's dispatcher, without a stream between the socket and the reader: at a gigabyte a second a stream costs as much
// as the network (test/bench/README.md). The idle timeout runs only while the reader waits for bytes, so that a slow reader is not mistaken for
// a slow server.
import type { Dispatcher } from 'undici';
import { HttpFailure } from '#shared/clients/http/errors.ts';

/** Bytes that must arrive in each window during which the reader waits all the time. */
export interface Floor {
  readonly bytes: number;
  readonly windowMs: number;
}

export interface ExchangeOptions {
  readonly dispatcher: Dispatcher;
  readonly request: Dispatcher.DispatchOptions;
  /** Milliseconds the reader may wait for the next bytes. */
  readonly idleMs: number;
  /** Default: no minimum. */
  readonly floor?: Floor | undefined;
  readonly host: string;
  readonly signal: AbortSignal | undefined;
  readonly toFailure: (error: unknown) => Error;
}

export interface Exchanged {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The chunks; can be read once. Leaving the loop early closes the connection. */
  body(): AsyncGenerator<Buffer, void, undefined>;
  /** Passes every chunk as it arrives, valid during the call; resolves after the last one. An error of `take` ends the request and is rethrown. */
  pour(take: (chunk: Buffer) => void): Promise<void>;
  discard(): void;
}

/** Bytes that may be queued for the reader. */
const mostWaiting = 128 * 1024;

const flatten = (headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> => {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) flat[name.toLowerCase()] = typeof value === 'string' ? value : value.join(', ');
  }
  return flat;
};

/** State of the body: received bytes, the waiting reader, and the end. */
interface Flow {
  readonly options: ExchangeOptions;
  readonly queue: Buffer[];
  /** Bytes in the queue. */
  waiting: number;
  controller?: Dispatcher.DispatchController;
  end?: { readonly error?: unknown };
  /** Of the current window: milliseconds the reader has waited, bytes received meanwhile, and start of the current wait. */
  readonly pace: { waitedMs: number; bytes: number; since: number };
  /** Receives chunks directly, instead of the queue. */
  take?: (chunk: Buffer) => void;
  wake?: () => void;
  timer?: NodeJS.Timeout;
  /** Called once, with the error that ended the request. */
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

/** Called for received bytes that the reader waited for: complete silence has its own timer. */
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
    const message = `${host} sent ${pace.bytes} bytes in ${seconds} seconds: at least ${floor.bytes} in ${floor.windowMs / 1000} are needed`;
    fail(flow, new HttpFailure('Stalled', message));
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

/** Resolves when more bytes have arrived or the body has ended. */
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

/** Throws the error that ended the request early. `own`: an error of the reader itself. */
const throwFault = ({ end, options: { signal, toFailure } }: Flow, own?: unknown): void => {
  if (end?.error === undefined) return;
  signal?.throwIfAborted();
  throw end.error === own ? end.error : toFailure(end.error);
};

/** However short a chunk is, it costs a hundred bytes of memory: short ones that wait are joined, or readers that keep them would run out of it. */
const shortBytes = 4096;

const nextOf = ({ queue }: Flow): Buffer | undefined => {
  const isShort = queue.length > 1 && (queue[0]?.length ?? 0) < shortBytes;
  return isShort ? Buffer.concat(queue.splice(0)) : queue.shift();
};

async function* bodyOf(flow: Flow): AsyncGenerator<Buffer, void, undefined> {
  try {
    for (;;) {
      throwFault(flow);
      const chunk = nextOf(flow);
      if (chunk !== undefined) {
        flow.waiting -= chunk.length;
        yield chunk;
      } else if (flow.end !== undefined) return;
      else await more(flow);
    }
  } finally {
    fail(flow, new Error('the rest is not needed'));
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

/** Resolves with status and headers. Rejects with the error mapped by `toFailure`, or with the reason of the signal. */
export const exchange = (options: ExchangeOptions): Promise<Exchanged> =>
  new Promise((resolve, reject) => {
    const { dispatcher, request, signal, toFailure } = options;
    const onAbort = (): void => fail(flow, signal?.reason);
    const onFault = (error: unknown): void => {
      signal?.removeEventListener('abort', onAbort);
      // No effect if the headers have already arrived.
      reject((signal?.aborted === true ? signal.reason : toFailure(error)) as Error);
    };
    const flow: Flow = { options, queue: [], waiting: 0, pace: { waitedMs: 0, bytes: 0, since: 0 }, onFault };
    signal?.addEventListener('abort', onAbort, { once: true });
    dispatcher.dispatch(request, {
      onRequestStart: (controller) => begin(flow, controller),
      onResponseStart: (_controller, status, headers) => {
        // Informational answers may come before the final one.
        if (status < 200) return;
        resolve({
          status,
          headers: flatten(headers),
          body: () => bodyOf(flow),
          pour: (take) => pour(flow, take),
          discard: () => fail(flow, new Error('the body is not needed')),
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

/** `pour` for a body that is a stream. */
export const pourFrom =
  (body: AsyncIterable<Buffer>) =>
  async (take: (chunk: Buffer) => void): Promise<void> => {
    for await (const chunk of body) take(chunk);
  };
