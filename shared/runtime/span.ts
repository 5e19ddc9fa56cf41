// OpenTelemetry spans. An invocation is recorded if its context has a tracer, and costs nothing otherwise.
import { createHash } from 'node:crypto';
import { currentContext, withContext } from '#shared/runtime/context.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type Span, type SpanAttributes, type Trace, continueTrace } from '#shared/runtime/trace.ts';

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

export interface SpanOptions {
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
