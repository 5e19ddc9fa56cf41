// The client of the upload Job in the transfer function: its state, and sending bytes to it.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Readable } from 'node:stream';
import { type Dispatcher, request } from 'undici';
import { z } from 'zod';
import { unhurriedAgent } from '#shared/exchange/http/agent.ts';
import { Problem } from '#shared/exchange/http/problem.ts';
import type { Worker } from '#shared/exchange/worker.ts';
import { Announcement } from '#shared/transfer/upload/spool.ts';

export interface UploadState {
  readonly offset: number;
  readonly length: number | undefined;
  readonly isComplete: boolean;
  /** Size limit of the disk in bytes, if the Job reports it. */
  readonly limitBytes?: number | undefined;
  readonly announced: Announcement | undefined;
}

export interface Sending {
  readonly body: Readable | Buffer;
  readonly offset: number;
  /** Starts a new file. */
  readonly begins?: Announcement | undefined;
  readonly isLast: boolean;
  readonly takesOver: boolean;
  /** Seconds to wait, from the last byte on, until the disk is written and verified. Default: no wait. */
  readonly waits?: number | undefined;
  readonly signal: AbortSignal;
  /** Milliseconds within which the Job must accept some of the available bytes. Default: one minute. */
  readonly silenceMs?: number;
}

/** All bytes have arrived; the result will be recorded on the object. */
export const arrivedStatus = 202;

export interface Sent extends UploadState {
  readonly status: number;
  readonly reason: string;
  readonly message: string;
}

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const Words = z.looseObject({ reason: z.string().default(''), message: z.string().default('') });

const stateOf = (headers: Dispatcher.ResponseData['headers']): UploadState => {
  const read = (name: string): string | undefined => {
    const value = headers[name];
    return typeof value === 'string' ? value : undefined;
  };
  const [length, announced, limit] = [read('upload-length'), read('upload-announced'), read('upload-limit')];
  return {
    offset: Number(read('upload-offset') ?? 0),
    length: length === undefined ? undefined : Number(length),
    isComplete: read('upload-complete') === '?1',
    limitBytes: limit === undefined ? undefined : Number(limit),
    announced:
      announced === undefined
        ? undefined
        : Announcement.safeParse(JSON.parse(Buffer.from(announced, 'base64url').toString())).data,
  };
};

const lost = (): Problem =>
  new Problem(503, 'Interrupted', 'the upload Job ended; ask for the offset with HEAD and resume', {
    headers: { 'retry-after': '5' },
  });

const isRefusedConnection = (error: unknown): boolean =>
  ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'].includes(String((error as { code?: unknown }).code));

/** Timeout in milliseconds of a status request: the pod of a dead node does not even refuse connections. */
const readTimeoutMs = 15_000;

/** Far longer than a pod needs to write what it has received, and to answer after the requested wait. */
const longestSilenceMs = 60_000;

/** A running pod listens a moment later. */
const listenTries = 40;
const listenPauseMs = 250;

interface LookOptions {
  readonly waitMs?: number;
  /** Called when nothing answers. Throws if it will not: the file may have become a disk a moment ago. */
  readonly check?: () => Promise<void>;
}

/** Throws a Problem (503) if there is no receiver. */
export const lookAtUpload = async (
  { url, token }: Worker,
  signal: AbortSignal,
  { waitMs = readTimeoutMs, check }: LookOptions = {},
): Promise<UploadState> => {
  for (let attempt = 1; ; attempt++) {
    try {
      const { statusCode, headers, body } = await request(`${url}/upload`, {
        method: 'HEAD',
        dispatcher: unhurriedAgent(),
        headers: { authorization: `Bearer ${token}` },
        headersTimeout: waitMs,
        bodyTimeout: waitMs,
        signal,
      });
      await body.dump();
      // Only a successful answer contains the offset: any other would be read as an absent file.
      if (statusCode !== 200) throw lost();
      return stateOf(headers);
    } catch (error) {
      if (signal.aborted) throw lost();
      await check?.();
      if (!isRefusedConnection(error) || attempt === listenTries) throw lost();
      await sleep(listenPauseMs, undefined, { signal });
    }
  }
};

/** A body is paused while it is not read: `onSilence` is called if that takes too long. Returns a function that stops the watch. */
const watch = (body: Sending['body'], silenceMs: number, onSilence: () => void): (() => void) => {
  let timer: NodeJS.Timeout | undefined;
  const stop = (): void => clearTimeout(timer);
  const start = (): void => {
    stop();
    timer = setTimeout(onSilence, silenceMs);
  };
  if (!Buffer.isBuffer(body)) body.on('pause', start).on('resume', stop);
  return stop;
};

/** Request the state first: a body cannot be sent twice. Throws a Problem (503) if the Job is gone. */
export const sendToUpload = async ({ url, token }: Worker, sending: Sending): Promise<Sent> => {
  const { body, offset, begins, isLast, takesOver, waits, silenceMs = longestSilenceMs } = sending;
  const silence = new AbortController();
  const signal = AbortSignal.any([sending.signal, silence.signal]);
  // An answer may take hours, so its timeout would not detect a stalled transfer.
  const stopWatching = watch(body, silenceMs, () => silence.abort());
  try {
    const answer = await request(`${url}/upload`, {
      method: 'PATCH',
      dispatcher: unhurriedAgent(),
      headersTimeout: silenceMs + 1000 * (waits ?? 0),
      bodyTimeout: silenceMs,
      signal,
      body,
      headers: {
        authorization: `Bearer ${token}`,
        'upload-offset': String(offset),
        ...(begins === undefined ? {} : { 'upload-begin': encode(begins) }),
        ...(isLast ? {} : { 'upload-incomplete': '?1' }),
        ...(takesOver ? { 'upload-takeover': '?1' } : {}),
        ...(waits === undefined ? {} : { prefer: `wait=${waits}` }),
      },
    });
    const text = await answer.body.text();
    const answered = Words.safeParse(text === '' ? {} : JSON.parse(text)).data ?? { reason: '', message: '' };
    return {
      status: answer.statusCode,
      ...stateOf(answer.headers),
      reason: answered.reason,
      message: answered.message,
    };
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw lost();
  } finally {
    stopWatching();
  }
};
