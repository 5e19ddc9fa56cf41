// The upload Job from the side of the transfer function: where it is, and bytes on their way to it.
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
  /** Bytes of the largest disk that is taken, where the Job says it. */
  readonly limitBytes?: number | undefined;
  readonly announced: Announcement | undefined;
}

export interface Sending {
  readonly body: Readable | Buffer;
  readonly offset: number;
  /** Begins a new file. */
  readonly begins?: Announcement | undefined;
  readonly isLast: boolean;
  readonly takesOver: boolean;
  /** Seconds to wait, from the last byte on, until the disk is written and verified; left out: not at all. */
  readonly waits?: number | undefined;
  readonly signal: AbortSignal;
  /** Milliseconds in which some of the bytes that are there have to be taken; a minute where left out. */
  readonly silenceMs?: number;
}

/** All bytes are there, and what becomes of them will be told by the object. */
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
  new Problem(503, 'Interrupted', 'the upload Job went away; ask for the offset with HEAD and resume', {
    headers: { 'retry-after': '5' },
  });

const isRefusedConnection = (error: unknown): boolean =>
  ['ECONNREFUSED', 'UND_ERR_CONNECT_TIMEOUT'].includes(String((error as { code?: unknown }).code));

/** Milliseconds for a look: a pod whose node has died says nothing, not even no. */
const readTimeoutMs = 15_000;

/** Far longer than it takes a pod to write down what it has, and to answer beyond what it was let wait. */
const longestSilenceMs = 60_000;

/** A pod that runs listens a moment later. */
const listenTries = 40;
const listenPauseMs = 250;

/** Throws a Problem (503) when nobody listens. */
export const lookAtUpload = async (
  { url, token }: Worker,
  signal: AbortSignal,
  waitMs = readTimeoutMs,
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
      // Only a good answer tells where the file stands: any other would read as a file that is not there.
      if (statusCode !== 200) throw lost();
      return stateOf(headers);
    } catch (error) {
      if (signal.aborted || !isRefusedConnection(error) || attempt === listenTries) throw lost();
      await sleep(listenPauseMs, undefined, { signal });
    }
  }
};

/** A body is paused while nobody takes it: `onSilence` where that takes too long. Gives what ends the watch. */
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

/** Look first: a body cannot be sent twice. Throws a Problem (503) when the Job goes away. */
export const sendToUpload = async ({ url, token }: Worker, sending: Sending): Promise<Sent> => {
  const { body, offset, begins, isLast, takesOver, waits, silenceMs = longestSilenceMs } = sending;
  const silence = new AbortController();
  const signal = AbortSignal.any([sending.signal, silence.signal]);
  // Where an answer may take hours, its time would not end what takes no bytes.
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
    const words = Words.safeParse(text === '' ? {} : JSON.parse(text)).data ?? { reason: '', message: '' };
    return { status: answer.statusCode, ...stateOf(answer.headers), reason: words.reason, message: words.message };
  } catch (error) {
    if (error instanceof Problem) throw error;
    throw lost();
  } finally {
    stopWatching();
  }
};
