// The HTTP server part of a function that handles events: it decodes and limits the request, logs and answers. `functions/*/app.ts` supply the
// handler.
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { KnownEvent } from '#events/catalogue.ts';
import { encodeEvent } from '#events/message.ts';
import type { CloudEvent } from '#events/event.ts';
import { decodeRequest, parseEvent } from '#events/receive.ts';
import {
  continueTrace,
  currentContext,
  type InvocationContext,
  type SpanAttributes,
  type Trace,
  traceOfExtensions,
  traceOfRequest,
  withContext,
  withSpan,
} from './trace.ts';
import { withLimits } from '#shared/runtime/deadline.ts';
import { InvalidInput, isRetryable, messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { type Outcome, retry } from '#shared/runtime/outcome.ts';
import { respond, respondBug, respondUndecodable } from '#shared/runtime/outcome.ts';

/** 2 MiB: etcd holds objects of 1.5 MiB, and managedFields and encoding come on top. */
const maxEventBytes = 2 * 1024 * 1024;
/** Seconds after which the sender retries, unless the fault names another delay. */
const retryAfterSeconds = 5;

interface EventContext {
  /** Fires at the deadline; pass it to everything that can be aborted. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Replies with this event, which the broker then routes; the last call wins. Sent only with a `done` outcome. */
  readonly reply: (event: CloudEvent) => void;
}

export interface EventFunctionOptions<E extends CloudEvent = KnownEvent> {
  readonly name: string;
  readonly log: Logger;
  /** Milliseconds until the answer is 503. Keep it below the timeout of the Trigger. */
  readonly deadlineMs?: number;
  /** Throws AppError: retryable errors are answered like `retry`, others are bugs. */
  readonly handle: (event: E, context: EventContext) => Promise<Outcome>;
}

/** With the parser that decides which events are accepted. */
interface Chassis<E extends CloudEvent> extends EventFunctionOptions<E> {
  /** Throws InvalidInput. */
  readonly parse: (event: CloudEvent) => E;
}

/** The result of one invocation: the answer and the fields of its log line. */
interface Result {
  readonly response: Response;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Handles events of the catalogue; any other is answered 400. */
export const eventFunction = (options: EventFunctionOptions): Hono => createApp({ ...options, parse: parseEvent });

/** Handles any event, whatever its type and data: for dead letters, which may be events that cannot be parsed. */
export const anyEventFunction = (options: EventFunctionOptions<CloudEvent>): Hono =>
  createApp({ ...options, parse: (event) => event });

const createApp = <E extends CloudEvent>(options: Chassis<E>): Hono => {
  const app = new Hono();
  // Not 413, which some senders retry: an event of this size never fits.
  const limit = bodyLimit({
    maxSize: maxEventBytes,
    onError: () => {
      options.log.warn('event refused', { function: options.name, reason: 'TooLarge' });
      return respondUndecodable(`the request is larger than ${maxEventBytes} bytes`);
    },
  });
  app.options('/', (c) => c.body(null, 204, { allow: 'POST, OPTIONS' }));
  app.post('/', limit, (c) => invoke(options, c.req.raw));
  app.all('*', (c) => c.body(null, 405, { allow: 'POST, OPTIONS' }));
  return app;
};

const invoke = async <E extends CloudEvent>(options: Chassis<E>, request: Request): Promise<Response> => {
  const started = performance.now();
  const decoded = await attempt(() => decodeRequest(request));
  const about: About = decoded.kind === 'read' ? contextOf(decoded.value) : {};
  const parent = traceOfRequest(request) ?? about.parent;
  const isRecorded = currentContext().tracer !== undefined;
  const known = { function: options.name, ...about.fields };
  const trace = isRecorded ? parent : continueTrace(parent);
  return withContext({ ...known, ...(trace === undefined ? {} : { trace }) }, () =>
    withSpan(options.name, { kind: 'consumer', parent, attributes: about.attributes }, async (note) => {
      const event = decoded.kind === 'read' ? await attempt(() => options.parse(decoded.value)) : decoded;
      const { response, fields } = event.kind === 'read' ? await run(options, event.value) : refuse(event.error);
      const ms = Math.round(performance.now() - started);
      note({ outcome: String(fields['outcome']), 'http.response.status_code': response.status });
      options.log[levelOf(response)]('event handled', { ...fields, status: response.status, ms });
      return response;
    }),
  );
};

type Reading<T> =
  | { readonly kind: 'read'; readonly value: T }
  | { readonly kind: 'undecodable'; readonly error: InvalidInput };

const attempt = async <T>(read: () => T | Promise<T>): Promise<Reading<T>> => {
  try {
    return { kind: 'read', value: await read() };
  } catch (error) {
    // Any other failure here means that the request body was cut off.
    const invalid = error instanceof InvalidInput ? error : new InvalidInput(messageOf(error), [], { cause: error });
    return { kind: 'undecodable', error: invalid };
  }
};

interface About {
  readonly parent?: Trace | undefined;
  readonly fields?: InvocationContext;
  readonly attributes?: SpanAttributes;
}

/** The context of the invocation, from the event itself. */
const contextOf = ({ id, type, source, extensions }: CloudEvent): About => {
  const { kind, namespace = '', name } = extensions;
  const object = name === undefined ? undefined : `${kind} ${namespace === '' ? '' : `${namespace}/`}${name}`;
  return {
    parent: traceOfExtensions(extensions),
    fields: { eventId: id, ...(object === undefined ? {} : { object }) },
    attributes: {
      'cloudevents.event_id': id,
      'cloudevents.event_type': type,
      'cloudevents.event_source': source,
      'bullion.object': object,
    },
  };
};

const refuse = (error: InvalidInput): Result => ({
  response: respondUndecodable(error.message),
  fields: { outcome: 'undecodable', error },
});

const run = async <E extends CloudEvent>(options: Chassis<E>, event: E): Promise<Result> => {
  let reply: CloudEvent | undefined;
  const context = { log: options.log, reply: (answer: CloudEvent) => void (reply = answer) };
  try {
    const outcome = await withLimits({ timeoutMs: options.deadlineMs ?? 25_000 }, (signal) =>
      Promise.race([options.handle(event, { ...context, signal }), expiry(signal)]),
    );
    return { response: replyTo(outcome, reply), fields: { type: event.type, ...fieldsOf(outcome) } };
  } catch (error) {
    const { response, fields } = faultOf(error);
    return { response, fields: { type: event.type, ...fields } };
  }
};

const expiry = (signal: AbortSignal): Promise<Outcome> =>
  new Promise((resolve) => {
    signal.addEventListener('abort', () => resolve(retry(retryAfterSeconds, 'the deadline passed')), { once: true });
  });

const replyTo = (outcome: Outcome, reply: CloudEvent | undefined): Response => {
  if (outcome.kind !== 'done' || reply === undefined) return respond(outcome);
  const { headers, body } = encodeEvent(reply);
  return new Response(typeof body === 'string' ? body : new Uint8Array(body), { status: 200, headers });
};

const faultOf = (error: unknown): Result => {
  if (!isRetryable(error)) return { response: respondBug(), fields: { outcome: 'bug', error } };
  const asked = (error as { readonly retryAfterSeconds?: number }).retryAfterSeconds;
  const outcome = retry(asked ?? retryAfterSeconds, messageOf(error));
  return { response: respond(outcome), fields: { outcome: 'retry', error } };
};

const fieldsOf = (outcome: Outcome): Readonly<Record<string, unknown>> => {
  const { kind, ...rest } = outcome;
  // `message` is reserved for the log line.
  const { message, ...fields } = rest as { readonly message?: string };
  return { outcome: kind, ...fields, ...(message === undefined ? {} : { detail: message }) };
};

const levelOf = ({ status }: Response): 'info' | 'warn' | 'error' => {
  if (status === 500) return 'error';
  return status < 300 ? 'info' : 'warn';
};
