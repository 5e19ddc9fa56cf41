// The HTTP server of the receiver, in the pod that fills the volume. Its only client is the transfer function.
//
//   HEAD  /upload                  Upload-Offset, Upload-Length, Upload-Complete, Upload-Limit
//   PATCH /upload  Upload-Offset   204; 409 misplaced or closed, 422 rejected, 423 busy, 503 this Job ends and another replaces it
//     Prefer: wait=50                200 and the report, or 202: all bytes arrived, but no result within 50 s
//     Upload-Begin: <Announcement as JSON>      a new file
//     Upload-Incomplete: ?1                     more requests follow
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import { messageOf } from '#shared/runtime/errors.ts';
import { closeOnceRead, dropUnread, listen } from '#shared/runtime/connections.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import { type TokenChecker, mayWork } from '#shared/transfer/upload/keys.ts';
import type { Receiver, Taken } from '#shared/transfer/upload/receiver.ts';
import { Announcement } from '#shared/transfer/upload/spool.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

export interface UploadServerOptions {
  readonly receiver: Receiver;
  readonly host: string;
  readonly port: number;
  readonly checker: TokenChecker;
  /** UID that tokens must contain. */
  readonly subject: string;
  /** Size limit of the disk in bytes, for clients that can check it in advance. Default: unknown. */
  readonly limitBytes?: number | undefined;
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
}

export interface UploadServer {
  readonly port: number;
  /** Finishes requests in progress first, within this many milliseconds. */
  close(graceMs: number): Promise<void>;
}

interface Answer {
  readonly status: number;
  readonly body?: object;
}

const refusals = {
  misplaced: [409, 'Misplaced', 'the bytes are for another offset: resume at Upload-Offset'],
  closed: [409, 'AlreadyReceived', 'the file has already arrived'],
  busy: [423, 'Busy', 'another client is sending this file'],
  interrupted: [400, 'Interrupted', 'the connection ended in the middle of the file: resume at Upload-Offset'],
} as const satisfies Record<string, readonly [number, string, string]>;

const toAnswer = (taken: Taken): Answer => {
  if (taken.is === 'taken') return { status: 204 };
  if (taken.is === 'refused' || taken.is === 'ended')
    return { status: taken.is === 'ended' ? 503 : 422, body: { reason: taken.reason, message: taken.message } };
  const [status, reason, message] = refusals[taken.is];
  return { status, body: { reason, message } };
};

const reportAnswer = (report: TransferReport): Answer => ({
  status: report.outcome === 'succeeded' ? 200 : report.retryable ? 503 : 422,
  body: report,
});

const parseBegin = (text: string | undefined): Announcement | undefined | 'invalid' => {
  if (text === undefined) return undefined;
  return parseJsonAs(Announcement, Buffer.from(text, 'base64url').toString()) ?? 'invalid';
};

const headerOf = (request: IncomingMessage, name: string): string | undefined => {
  const value = request.headers[name];
  return typeof value === 'string' ? value : undefined;
};

/** Seconds; RFC 7240. */
const waitOf = (request: IncomingMessage): number | undefined => {
  const seconds = /^wait=(\d{1,6})$/.exec(headerOf(request, 'prefer') ?? '')?.[1];
  return seconds === undefined ? undefined : Number(seconds);
};

/** Fires this many seconds after the end of the body. Never, if the body is incomplete. */
const afterLastByte = (request: IncomingMessage, seconds: number): { readonly over: Promise<Answer>; stop(): void } => {
  const over = Promise.withResolvers<Answer>();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => over.resolve({ status: 202 }), seconds * 1000);
  };
  request.once('end', begin);
  return {
    over: over.promise,
    stop: () => {
      request.off('end', begin);
      clearTimeout(timer);
    },
  };
};

const patch = async (request: IncomingMessage, options: UploadServerOptions): Promise<Answer> => {
  const begins = parseBegin(headerOf(request, 'upload-begin'));
  const offset = Number(headerOf(request, 'upload-offset') ?? Number.NaN);
  if (begins === 'invalid' || !Number.isSafeInteger(offset) || offset < 0) {
    return { status: 400, body: { reason: 'InvalidRequest', message: 'Upload-Offset or Upload-Begin cannot be read' } };
  }
  const seconds = waitOf(request);
  const work = take(request, options, { begins, offset, waits: seconds !== undefined });
  if (seconds === undefined) return work;
  const backOff = afterLastByte(request, seconds);
  try {
    const given = await Promise.race([work, backOff.over]);
    // Not for a client that was referred to the status, nor for one whose piece was accepted before.
    if (given.body !== undefined && 'outcome' in given.body) options.receiver.markReported();
    return given;
  } finally {
    backOff.stop();
  }
};

const take = async (
  request: IncomingMessage,
  { receiver }: UploadServerOptions,
  {
    begins,
    offset,
    waits,
  }: { readonly begins: Announcement | undefined; readonly offset: number; readonly waits: boolean },
): Promise<Answer> => {
  const isLast = headerOf(request, 'upload-incomplete') !== '?1';
  const takesOver = headerOf(request, 'upload-takeover') === '?1';
  const taken = await receiver.take({ begins, offset, isLast, takesOver, body: request });
  const isWhole = taken.is === 'taken' && taken.whole;
  return waits && isWhole ? reportAnswer(await receiver.report()) : toAnswer(taken);
};

const answer = async (request: IncomingMessage, options: UploadServerOptions): Promise<Answer> => {
  if (request.url !== '/upload') return { status: 404 };
  if (!(await mayWork(request, options))) return { status: 401, body: { reason: 'Unauthorized', message: 'no token' } };
  if (request.method === 'HEAD') return { status: 200 };
  return request.method === 'PATCH' ? patch(request, options) : { status: 405 };
};

/** State of the spool, sent with every answer. */
const stateHeaders = ({ receiver: { spool }, limitBytes }: UploadServerOptions): Record<string, string> => {
  const [length, announced] = [spool.length(), spool.announced()];
  return {
    'upload-offset': String(spool.offset()),
    'upload-complete': spool.isComplete() ? '?1' : '?0',
    ...(limitBytes === undefined ? {} : { 'upload-limit': String(limitBytes) }),
    ...(length === undefined ? {} : { 'upload-length': String(length) }),
    ...(announced === undefined
      ? {}
      : { 'upload-announced': Buffer.from(JSON.stringify(announced)).toString('base64url') }),
  };
};

const respond = async (
  request: IncomingMessage,
  response: ServerResponse,
  options: UploadServerOptions & { readonly isClosing: () => boolean },
): Promise<void> => {
  closeOnceRead(request, response);
  try {
    const { status, body } = await answer(request, options);
    // Unauthorized clients receive no state of the file.
    const headers = status === 401 || status === 404 ? {} : stateHeaders(options);
    dropUnread(request);
    // A kept-alive connection would keep the Job, and with it the image.
    if (options.isClosing()) response.shouldKeepAlive = false;
    if (body === undefined) return void response.writeHead(status, headers).end();
    const text = JSON.stringify(body);
    const type = { 'content-type': 'application/json', 'content-length': String(Buffer.byteLength(text)) };
    response.writeHead(status, { ...headers, ...type }).end(text);
  } catch (error) {
    options.log('an upload request failed', { error: messageOf(error) });
    response.writeHead(500, { connection: 'close' }).end();
  }
};

export const startUploadServer = async (options: UploadServerOptions): Promise<UploadServer> => {
  let isClosing = false;
  // A slow client may need hours for one request.
  const server: Server = createServer({ requestTimeout: 0, keepAliveTimeout: 30_000 }, (request, response) => {
    void respond(request, response, { ...options, isClosing: () => isClosing });
  });
  const port = await listen(server, options);
  return {
    port,
    close: (graceMs) =>
      new Promise((resolve) => {
        isClosing = true;
        const timer = setTimeout(() => server.closeAllConnections(), graceMs);
        server.close(() => {
          clearTimeout(timer);
          resolve();
        });
        server.closeIdleConnections();
      }),
  };
};
