// W3C trace context: read from a header or a CloudEvent extension, propagated by every client. Used by the function runtime and the clients.
import { AsyncLocalStorage } from 'node:async_hooks';
import { createHash, randomBytes } from 'node:crypto';
import { messageOf } from './errors.ts';

// The context of the current invocation, available without passing it as a parameter: set by the function runtime, read by the log and the
// clients.

export interface InvocationContext {
  /** Name of the function. */
  readonly function?: string;
  readonly eventId?: string;
  readonly trace?: Trace;
  /** Receives spans. Default: no tracing. */
  readonly tracer?: Tracer;
  /** The object concerned, `Kind namespace/name`. */
  readonly object?: string;
}

const storage = new AsyncLocalStorage<InvocationContext>();

export const currentContext = (): InvocationContext => storage.getStore() ?? {};

/** Runs `work` with `context` merged into the current context. */
export const withContext = <T>(context: InvocationContext, work: () => T): T =>
  storage.run({ ...currentContext(), ...context }, work);

export interface Trace {
  /** 32 hex digits, the same for the whole trace. */
  readonly traceId: string;
  /** 16 hex digits: the span of this invocation. */
  readonly spanId: string;
  /** 2 hex digits; bit 0: the trace is sampled. */
  readonly flags: string;
  readonly tracestate?: string | undefined;
}

// A finished span.

export type SpanAttributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string | undefined;
  readonly name: string;
  readonly kind: 'internal' | 'consumer';
  /** Milliseconds since the epoch, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: SpanAttributes;
  /** Related spans of other traces. */
  readonly links?: readonly Pick<Trace, 'traceId' | 'spanId'>[] | undefined;
  /** Default: it succeeded. */
  readonly error?: string | undefined;
}

export interface Tracer {
  readonly record: (span: Span) => void;
  /** Resolves when all spans were sent or dropped. Never throws. */
  readonly flush: () => Promise<void>;
}

/** Version 00 has four parts; later versions may have more. IDs of only zeros and version ff are invalid. */
const pattern =
  /^(?:00(?=.{53}$)|(?!00|ff)[0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;

/** The trace of a `traceparent` value; undefined if it is missing or malformed. */
export const parseTraceparent = (value: string | undefined, tracestate?: string): Trace | undefined => {
  const match = pattern.exec(value?.trim() ?? '');
  if (match === null) return undefined;
  const [, traceId = '', spanId = '', flags = ''] = match;
  return { traceId, spanId, flags, tracestate };
};

/** The trace of an event's distributed tracing extension. */
export const traceOfExtensions = (extensions: Readonly<Record<string, unknown>>): Trace | undefined =>
  parseTraceparent(textOf(extensions['traceparent']), textOf(extensions['tracestate']));

/** The trace of an HTTP request. */
export const traceOfRequest = ({ headers }: Request): Trace | undefined =>
  parseTraceparent(headers.get('traceparent') ?? undefined, headers.get('tracestate') ?? undefined);

export const newTrace = (): Trace => ({ traceId: hex(16), spanId: hex(8), flags: '00' });

/** A new span in the given trace; without a trace, a new trace. */
export const continueTrace = (parent: Trace | undefined): Trace =>
  parent === undefined ? newTrace() : { ...parent, spanId: hex(8) };

export const toTraceparent = (trace: Trace): string => `00-${trace.traceId}-${trace.spanId}-${trace.flags}`;

/** The headers that propagate a trace to the next service; empty without a trace. */
export const traceHeaders = (trace: Trace | undefined): Readonly<Record<string, string>> => {
  if (trace === undefined) return {};
  const { tracestate } = trace;
  return { traceparent: toTraceparent(trace), ...(tracestate === undefined ? {} : { tracestate }) };
};

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');

// OpenTelemetry spans. An invocation is recorded if its context has a tracer, and costs nothing otherwise.

/** Milliseconds since the epoch, with a finer resolution than Date. */
export const spanTime = (): number => performance.timeOrigin + performance.now();

/**
 * The trace of everything done for an object: its UID has the 128 bits of a trace ID. All steps of an import are thus found together, whichever
 * function ran them; the root is the lifetime of the object.
 */
export const traceOfObject = (uid: string): Trace => {
  const hex = uid.replaceAll('-', '').toLowerCase();
  const digest = createHash('sha256').update(uid).digest('hex');
  return { traceId: /^[0-9a-f]{32}$/.test(hex) ? hex : digest.slice(0, 32), spanId: digest.slice(-16), flags: '01' };
};

interface SpanOptions {
  readonly kind?: Span['kind'];
  /** Default: the current span; `undefined`: a new trace. */
  readonly parent?: Trace | undefined;
  readonly links?: readonly Trace[];
  readonly attributes?: SpanAttributes | undefined;
}

/** Runs `work` within a span. `note` adds attributes that are known only later. */
export const withSpan = async <T>(
  name: string,
  options: SpanOptions,
  work: (note: (more: SpanAttributes) => void) => Promise<T>,
): Promise<T> => {
  const { tracer, trace: around } = currentContext();
  const { kind = 'internal', links, attributes } = options;
  const parent = 'parent' in options ? options.parent : around;
  const notes: Record<string, SpanAttributes[string]> = { ...attributes };
  const note = (more: SpanAttributes): void => void Object.assign(notes, more);
  if (tracer === undefined) return work(note);
  // Ignores the sampling decision of the caller: a Knative without tracing marks every event as not sampled.
  const trace: Trace = { ...continueTrace(parent), flags: '01' };
  const startMs = spanTime();
  const parentSpanId = parent?.spanId;
  const end = (error?: unknown): void =>
    tracer.record({
      traceId: trace.traceId,
      spanId: trace.spanId,
      parentSpanId,
      name,
      kind,
      startMs,
      links,
      endMs: spanTime(),
      attributes: notes,
      ...(error === undefined ? {} : { error: messageOf(error) }),
    });
  try {
    const result = await withContext({ trace }, () => work(note));
    end();
    return result;
  } catch (error) {
    end(error);
    throw error;
  }
};
