// Exports spans as OTLP JSON over HTTP to a collector. The official SDK needs a dozen packages and global state, more than the rest of a
// function. Loaded on first use by tracer.ts.
import { createPost } from '#events/send.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { redactData } from '#shared/runtime/redact.ts';
import type { Span, SpanAttributes } from '#shared/runtime/trace.ts';

const timeoutMs = 5_000;

export interface OtlpTarget {
  readonly endpoint: string;
  readonly service: string;
}

/** Values of the OTLP enum. */
const kinds = { internal: 1, consumer: 5 } as const;

const valueOf = (value: string | number | boolean): object => {
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'string') return { stringValue: value };
  return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
};

const attributesOf = (attributes: SpanAttributes): readonly object[] =>
  Object.entries(redactData(attributes) as SpanAttributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );

/** The JSON encoding of protobuf writes 64-bit numbers as strings. */
const nanos = (ms: number): string => String(BigInt(Math.round(ms * 1000)) * 1000n);

const toOtlpSpan = (span: Span): object => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
  name: span.name,
  kind: kinds[span.kind],
  startTimeUnixNano: nanos(span.startMs),
  endTimeUnixNano: nanos(span.endMs),
  attributes: attributesOf(span.attributes),
  ...(span.links === undefined || span.links.length === 0
    ? {}
    : { links: span.links.map(({ traceId, spanId }) => ({ traceId, spanId })) }),
  ...(span.error === undefined ? {} : { status: { code: 2, message: String(redactData(span.error)) } }),
});

/** An ExportTraceServiceRequest. */
export const toOtlp = (service: string, spans: readonly Span[]): object => ({
  resourceSpans: [
    {
      resource: { attributes: attributesOf({ 'service.name': service, 'service.namespace': 'bullion' }) },
      scopeSpans: [{ scope: { name: 'bullion' }, spans: spans.map(toOtlpSpan) }],
    },
  ],
});

/** Throws if the collector rejects the spans; the export is not retried. */
export const exportSpans = async ({ endpoint, service }: OtlpTarget, spans: readonly Span[]): Promise<void> => {
  const { status } = await createPost()(
    `${endpoint.replace(/\/$/, '')}/v1/traces`,
    { headers: { 'content-type': 'application/json' }, body: JSON.stringify(toOtlp(service, spans)) },
    AbortSignal.timeout(timeoutMs),
  );
  if (status >= 300) throw new Unavailable(`the collector answered ${status}`);
};
