// Spans as OpenTelemetry has them. What an invocation does is recorded where its context has a tracer, and costs nothing where it has none.
import { createHash } from 'node:crypto';
import { currentContext, withContext } from '#shared/runtime/context.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { type Span, type SpanAttributes, type Trace, continueTrace } from '#shared/runtime/trace.ts';

/** Milliseconds since the epoch, finer than a clock that is set tells them. */
export const spanTime = (): number => performance.timeOrigin + performance.now();

/**
 * The trace of everything that is ever done for an object: its UID has the 128 bits that a trace has. So all steps of an import are found
 * together, whoever took them and whatever woke him; the root of it is the object's own life.
 */
export const traceOfObject = (uid: string): Trace => {
  const hex = uid.replaceAll('-', '').toLowerCase();
  const digest = createHash('sha256').update(uid).digest('hex');
  return { traceId: /^[0-9a-f]{32}$/.test(hex) ? hex : digest.slice(0, 32), spanId: digest.slice(-16), flags: '01' };
};

export interface SpanOptions {
  readonly kind?: Span['kind'];
  /** Left out: what is being done; `undefined`: a trace of its own. */
  readonly parent?: Trace | undefined;
  readonly links?: readonly Trace[];
  readonly attributes?: SpanAttributes | undefined;
}

/** Does `work` within a span. `note` adds what is known only later. */
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
  // Whatever who calls us chose for himself: a Knative without tracing says of every event that it is not recorded.
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
