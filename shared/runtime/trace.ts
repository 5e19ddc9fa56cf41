// W3C trace context: read from a header or a CloudEvent extension, propagated by every client. Used by the function runtime and the clients.
import { randomBytes } from 'node:crypto';

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
