// One attempt of a transfer, from spec to report. Called by transfer-job; independent of Kubernetes.
import { copyFiles } from '#shared/transfer/archive/folder.ts';
import { importArchive } from '#shared/transfer/archive/folder.ts';
import { type Tree, createTree } from '#shared/transfer/archive/tree.ts';
import { createDigester } from '#shared/transfer/published.ts';
import { withDeadline } from '#shared/transfer/failure.ts';
import { TransferError, isFileFault, isTransferError } from '#shared/transfer/fault.ts';
import { type Meter, createMeter, reportEveryMs } from '#shared/transfer/meter.ts';
import type { Pass, PassResult } from '#shared/transfer/pass.ts';
import type { ByteSource } from '#shared/transfer/source/source.ts';
import { type BackOffOptions, createBackOff } from '#shared/transfer/back-off.ts';
import { checkCapacity, planArchive, planTransfer } from '#shared/transfer/plan.ts';
import type { Inspection, TransferFault, TransferProgress, TransferReport } from './report.ts';
import { type SavePolicy, savePolicy } from '#shared/transfer/resume/policy.ts';
import { importScratch, measureScratch } from '#shared/transfer/scratch-route.ts';
import { importDirect } from '#shared/transfer/direct-route.ts';
import { importSequential } from '#shared/transfer/sequential-route.ts';
import { openSink } from '#shared/transfer/sink/file.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';
import { openSource } from '#shared/transfer/source/open.ts';
import type { TransferSpec } from '#shared/transfer/spec.ts';
import type { Reception } from '#shared/transfer/upload/reception.ts';
import { importStream, measureStream } from '#shared/transfer/stream-route.ts';
import { toFailure } from '#shared/transfer/failure.ts';

export interface RunOptions {
  /** Identifies the run in progress reports: name of the pod. */
  readonly run: string;
  /** Aborting it cancels the transfer; the report is then Cancelled. */
  readonly signal: AbortSignal;
  /** Sends a progress report. Has a timeout, never throws. */
  readonly send: (progress: TransferProgress) => Promise<void>;
  /** Logs a constant message and fields; secrets are redacted by the receiver. */
  readonly log: (message: string, facts: Readonly<Record<string, unknown>>) => void;
  /** Address that downloads are served on. Default: loopback. */
  readonly host?: string | undefined;
  /** Required for an upload. */
  readonly reception?: Reception | undefined;
  readonly now?: () => number;
  /** When marks are written for a later process; replaced in tests. */
  readonly saving?: SavePolicy;
  /** Delays between retries; shortened in tests. */
  readonly wait?: BackOffOptions['wait'];
}

interface Run {
  readonly spec: TransferSpec;
  readonly source: ByteSource;
  readonly sink: Sink | undefined;
  /** Instead of a sink, if files are requested. */
  readonly tree: Tree | undefined;
  readonly meter: Meter;
  readonly signal: AbortSignal;
  readonly log: RunOptions['log'];
  readonly saving: SavePolicy;
  /** Latest inspection, for the report of a failure. */
  observed: Inspection | undefined;
  readonly reception: Reception | undefined;
  /** Position at which the current pass resumed; 0: not resumed. */
  resumedAt: number;
}

const finishInspect = (pass: Pass): Promise<PassResult> => {
  const { inspection, route } = pass.plan;
  if (inspection.virtualSize !== undefined) return Promise.resolve({ inspection, digests: {}, writtenBytes: 0 });
  pass.meter.enter('Downloading', 98);
  return route === 'stream' ? measureStream(pass) : measureScratch(pass);
};

/**
 * Two kinds of raw disks are measured before they are written: one of unknown length, because an interrupted connection looks the same; and one
 * that claims to be too large, because nothing should be changed for it and its actual fault may be another. All others are written at once: if
 * the size is known only at the end, writing stops at the size of the target, which does not become visible.
 */
const withProvenSize = async (pass: Pass, { limitBytes }: Sink): Promise<Pass> => {
  const { plan, spec, meter } = pass;
  if (plan.route !== 'stream' || spec.expected?.virtualSize !== undefined) return pass;
  const hasEnd = plan.inspection.size !== undefined || spec.checksum !== undefined;
  const seemsTooLarge = plan.inspection.virtualSize === undefined && (plan.leastBytes ?? 0) > limitBytes;
  if (hasEnd && !seemsTooLarge) return pass;
  meter.enter('Inspecting', 40);
  const { inspection } = await measureStream(pass);
  const second = { ...spec, expected: inspection };
  return { ...pass, spec: second, plan: { ...plan, inspection }, digester: createDigester(spec.checksum) };
};

const finishImport = async (looked: Pass, sink: Sink): Promise<PassResult> => {
  const pass = await withProvenSize(looked, sink);
  const { inspection, route } = pass.plan;
  const virtualSize = inspection.virtualSize ?? pass.spec.expected?.virtualSize;
  if (virtualSize !== undefined) checkCapacity(virtualSize, sink.limitBytes);
  await pass.meter.inspected({ ...inspection, ...(virtualSize === undefined ? {} : { virtualSize }) });
  pass.meter.enter('Downloading', route === 'scratch' ? 60 : 97);
  if (route === 'scratch') return importScratch(pass, sink);
  if (route === 'direct') return importDirect(pass, sink);
  if (route === 'sequential') return importSequential(pass, sink);
  return importStream(pass, sink, virtualSize ?? 0);
};

const onePass = async (run: Run): Promise<PassResult> => {
  const { spec, source, sink, tree, meter, signal } = run;
  meter.enter('Inspecting', 1);
  const plan = await (tree === undefined ? planTransfer(source) : planArchive(source));
  run.observed = plan.inspection;
  run.log('source inspected', { ...plan.inspection, route: plan.route });
  const onResume = (position: number): void => {
    run.resumedAt = position;
    run.log('resuming where an earlier process stopped', { position });
  };
  const digester = createDigester(spec.checksum);
  const pass: Pass = { spec, source, plan, digester, meter, signal, saving: run.saving, onResume };
  if (tree !== undefined) return importArchive(pass, tree);
  if (spec.mode === 'inspect' || sink === undefined) {
    const result = await finishInspect(pass);
    await meter.inspected(result.inspection);
    return result;
  }
  return finishImport(pass, sink);
};

/** A later process can resume from the marks of this one: the source was interrupted, or the time is over. */
const isInterruption = (error: unknown): boolean =>
  isTransferError(error) && error.retryable && !error.startOver && interruptions.has(error.code);
const interruptions: ReadonlySet<TransferFault> = new Set([
  'SourceUnreachable',
  'SourceUnavailable',
  'SourceInterrupted',
  'SourceStalled',
  'DeadlineExceeded',
  'Cancelled',
]);

const leaveTarget = async ({ sink, tree }: Run, error: unknown): Promise<void> => {
  if (isInterruption(error)) await sink?.suspend();
  else await sink?.abandon();
  await tree?.abandon();
};

/** Whether the failure was reported to the client, and another file is expected. */
const takesAnother = async ({ reception }: Run, error: unknown): Promise<boolean> =>
  isFileFault(error) && (await reception?.refuse(toFailure(error))) === true;

/** Repeats passes until one succeeds, or no retry is left. The target is emptied between passes. */
const passes = async (run: Run, again: Pick<BackOffOptions, 'onRetry' | 'wait'>): Promise<PassResult> => {
  const backOff = createBackOff({ retries: run.spec.limits.retries, signal: run.signal, ...again });
  let wasMisled = false;
  for (;;) {
    run.resumedAt = 0;
    try {
      return await onePass(run);
    } catch (error) {
      await leaveTarget(run, error);
      if (run.resumedAt > 0 && !isInterruption(error) && !wasMisled) {
        wasMisled = true;
        // The kept part may be the cause, which cannot be verified: so the file is read again from the first byte.
        run.log('starting over, because the kept part did not match', { position: run.resumedAt, error });
        continue;
      }
      if (await takesAnother(run, error)) continue;
      if (isFileFault(error) && run.source.distrust?.(error) === true) {
        run.log('starting over elsewhere, because what a mirror served is not the file', { error });
        continue;
      }
      if (!isTransferError(error) || !error.startOver) throw error;
      await backOff.afterFailure(error);
    }
  }
};

interface TakingOut extends RunOptions {
  readonly meter: Meter;
  readonly onRetry: (error: unknown, waitMs: number) => void;
}

/** Modes that fill no volume. Each is loaded on demand. */
const takeOut = async (spec: TransferSpec, context: TakingOut): Promise<PassResult> => {
  const { signal, meter, onRetry, log, host = '127.0.0.1' } = context;
  if (spec.mode === 'backup') {
    const { runBackup } = await import('#shared/transfer/chunks/run.ts');
    return runBackup(spec, { signal, meter, onRetry });
  }
  if (spec.mode === 'serve') {
    const { runServe } = await import('#shared/transfer/download/run.ts');
    return runServe(spec, { signal, meter, host, log });
  }
  const { runExport } = await import('#shared/transfer/export/run.ts');
  return runExport(spec, { signal, meter, onRetry, log });
};

/** Runs a transfer. Never throws: every error is in the report. */
export const runTransfer = async (spec: TransferSpec, options: RunOptions): Promise<TransferReport> => {
  const now = options.now ?? Date.now;
  const startedAt = now();
  let source: ByteSource | undefined;
  let run: Run | undefined;
  const receivedBytes = () => source?.receivedBytes() ?? 0;
  const meter = createMeter({ run: options.run, now, send: options.send, receivedBytes });
  const ticking = setInterval(() => meter.tick(), reportEveryMs);
  const onRetry = (error: unknown, waitMs: number) => {
    const { message } = toFailure(error);
    options.log('transient fault, retrying', { fault: message, waitMs: Math.round(waitMs) });
    meter.note(message);
  };
  try {
    const result = await withDeadline(spec.limits.totalSeconds, options.signal, async (signal) => {
      if (spec.mode !== 'inspect' && spec.mode !== 'import')
        return takeOut(spec, { ...options, signal, meter, onRetry });
      if (spec.source.type === 'volume' && spec.target?.content === 'archive')
        return copyFiles(spec.source.path, spec.target, { meter, signal });
      const again = { onRetry, wait: options.wait };
      source = await openSource(spec, {
        signal,
        ...again,
        onWait: (text) => meter.note(text),
        reception: options.reception,
      });
      const { saving = savePolicy } = options;
      const target = await openTarget(spec, signal);
      const { log, reception } = options;
      run = { spec, source, ...target, meter, signal, log, reception, observed: undefined, resumedAt: 0, saving };
      return passes(run, again);
    });
    const seconds = (now() - startedAt) / 1000;
    const servedFrom = source?.servedFrom?.();
    const from = servedFrom === undefined ? {} : { servedFrom };
    return { outcome: 'succeeded', ...result, receivedBytes: receivedBytes(), seconds, ...from };
  } catch (error) {
    const failure = toFailure(error);
    options.log('transfer failed', { reason: failure.reason, retryable: failure.retryable, error });
    return {
      outcome: 'failed',
      ...failure,
      ...(run?.observed === undefined ? {} : { inspection: run.observed }),
      receivedBytes: receivedBytes(),
    };
  } finally {
    clearInterval(ticking);
    await source?.close().catch(() => {});
  }
};

const openTarget = async (spec: TransferSpec, signal: AbortSignal): Promise<Pick<Run, 'sink' | 'tree'>> => {
  if (spec.mode !== 'import') return { sink: undefined, tree: undefined };
  const target = requireTarget(spec);
  return target.content === 'archive'
    ? { sink: undefined, tree: createTree(target) }
    : { sink: await openSink(target, signal), tree: undefined };
};

const requireTarget = (spec: TransferSpec) => {
  if (spec.target === undefined) throw new TransferError('InvalidSpec', 'an import needs a target');
  return spec.target;
};
