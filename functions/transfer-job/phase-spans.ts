// The phases of a transfer as spans, read off its progress: each lasts until the next one begins.
import { currentContext } from '#shared/runtime/context.ts';
import { spanTime } from '#shared/runtime/span.ts';
import { type SpanAttributes, continueTrace } from '#shared/runtime/trace.ts';
import type { TransferReport } from '#shared/transfer/report.ts';

export interface PhaseSpans {
  readonly see: (phase: string) => void;
  readonly end: () => void;
}

export const createPhaseSpans = (): PhaseSpans => {
  let running: { readonly name: string; readonly startMs: number } | undefined;
  const { tracer, trace } = currentContext();
  const end = (): void => {
    if (running === undefined || tracer === undefined || trace === undefined) return;
    const { traceId, spanId } = continueTrace(trace);
    const common = { kind: 'internal', endMs: spanTime(), attributes: {} } as const;
    tracer.record({ traceId, spanId, parentSpanId: trace.spanId, ...running, ...common });
    running = undefined;
  };
  return {
    see: (name) => {
      if (running?.name === name) return;
      end();
      running = { name, startMs: spanTime() };
    },
    end,
  };
};

/** What the span of a transfer says of its end. */
export const factsOf = (report: TransferReport): SpanAttributes => ({
  outcome: report.outcome,
  ...('reason' in report ? { reason: report.reason } : {}),
  ...('receivedBytes' in report ? { 'bullion.received_bytes': report.receivedBytes } : {}),
});
