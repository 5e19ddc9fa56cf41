// One transfer as a process: sends progress, writes the report, sets the exit status for the Job controller. Called by index.ts.
import { writeFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import type { TransferJobConfig } from '#functions/transfer-job/config.ts';
import { createProgressSender, createReporter } from '#functions/transfer-job/reporter.ts';
import { subjectOf } from '#events/build.ts';
import {
  continueTrace,
  currentContext,
  parseTraceparent,
  type SpanAttributes,
  spanTime,
  traceOfObject,
  withContext,
  withSpan,
} from '#shared/runtime/trace.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { createTracer } from '#shared/runtime/tracer.ts';
import { parseSpec, serializeReport, toFailure } from '#shared/transfer/failure.ts';
import { uploadPaused } from '#shared/transfer/fault.ts';
import type { TransferReport } from '#shared/transfer/report.ts';
import { type RunOptions, runTransfer } from '#shared/transfer/run.ts';
import { type Reception, openReception } from '#shared/transfer/upload/reception.ts';

/** Timeout of the last progress report, in milliseconds; a cancelled job must end within a second. */
const closingMs = { ended: 3000, cancelled: 300 } as const;

/** A retryable failure makes the Job controller start another pod; anything else is final, or waits for a client. */
export const exitCodeOf = (report: TransferReport): 0 | 1 =>
  report.outcome === 'failed' && report.retryable && report.reason !== uploadPaused ? 1 : 0;

const leaveReport = async (path: string, report: TransferReport, log: Logger): Promise<void> => {
  try {
    await writeFile(path, serializeReport(report));
  } catch (error) {
    log.error('the report cannot be written', { path, error: messageOf(error) });
  }
};

/** An invalid spec is reported like any other failure: a retry would not help. */
const transfer = async (text: string, host: string, options: RunOptions): Promise<Ended> => {
  const { spec, report } = parseSpec(text);
  if (spec === undefined) return { report, notifyClients: () => Promise.resolve() };
  options.log('transfer begins', { spec });
  if (spec.source.type !== 'upload') {
    return { report: await runTransfer(spec, { ...options, host }), notifyClients: () => Promise.resolve() };
  }
  const { source, scratchDir, target } = spec;
  const limitBytes = target?.content === 'archive' ? undefined : target?.capacityBytes;
  let reception: Reception;
  try {
    reception = await openReception({ source, scratchDir, limitBytes, host, log: options.log });
  } catch (error) {
    return {
      report: { outcome: 'failed', ...toFailure(error), receivedBytes: 0 },
      notifyClients: () => Promise.resolve(),
    };
  }
  const ended = await runTransfer(spec, { ...options, reception });
  return { report: ended, notifyClients: () => reception.finish(ended) };
};

interface Ended {
  readonly report: TransferReport;
  /** Reports the result to waiting clients, after it was written. */
  readonly notifyClients: () => Promise<void>;
}

export interface JobDeps {
  readonly log: Logger;
  /** Aborted when the pod is terminated. */
  readonly signal: AbortSignal;
}

/** Resolves with the exit status. Never throws. */
export const runJob = async (config: TransferJobConfig, deps: JobDeps): Promise<0 | 1> => {
  const tracer = createTracer({ endpoint: config.traceEndpoint, service: 'transfer-job', log: deps.log });
  if (tracer === undefined) return work(config, deps);
  const parent = parseTraceparent(config.traceparent) ?? traceOfObject(config.owner.uid);
  const exitCode = await withContext({ tracer, trace: parent }, () =>
    withSpan('transfer', { attributes: { run: config.run, 'bullion.object': subjectOf(config.owner) } }, (note) =>
      work(config, deps, note),
    ),
  );
  await Promise.race([tracer.flush(), delay(closingMs.ended, undefined, { ref: false })]);
  return exitCode;
};

const work = async (
  config: TransferJobConfig,
  { log, signal }: JobDeps,
  note: (more: SpanAttributes) => void = () => {},
): Promise<0 | 1> => {
  const onLoss = (reason: string) => log.warn('a progress report was lost', { reason });
  const reporter =
    config.sink === undefined
      ? undefined
      : createReporter({
          owner: config.owner,
          send: createProgressSender(config.sink, config.sinkTokenFile),
          key: config.reportKey,
          onLoss,
        });
  const phases = createPhaseSpans();
  const { report, notifyClients } = await transfer(config.transfer, config.host, {
    run: config.run,
    signal,
    send: (progress) => {
      phases.see(progress.phase);
      return reporter?.send(progress) ?? Promise.resolve();
    },
    log: (message, facts) => log.info(message, facts),
  });
  phases.end();
  note(factsOf(report));
  await leaveReport(config.terminationLog, report, log);
  log.info('transfer ended', { report });
  // Already written: a failed notification of clients changes nothing.
  await notifyClients().catch((error: unknown) => log.warn('clients not notified', { error: messageOf(error) }));
  await Promise.race([
    reporter?.close(),
    delay(signal.aborted ? closingMs.cancelled : closingMs.ended, undefined, { ref: false }),
  ]);
  return exitCodeOf(report);
};

/** The phases of a transfer as spans, derived from its progress: each ends when the next one starts. */
interface PhaseSpans {
  readonly see: (phase: string) => void;
  readonly end: () => void;
}

const createPhaseSpans = (): PhaseSpans => {
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

/** Attributes of the span about the end of a transfer. */
const factsOf = (report: TransferReport): SpanAttributes => ({
  outcome: report.outcome,
  ...('reason' in report ? { reason: report.reason } : {}),
  ...('receivedBytes' in report ? { 'bullion.received_bytes': report.receivedBytes } : {}),
});
