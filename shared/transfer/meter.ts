// Keeps the progress of one run: what is sent, when, and that it never goes backwards.
import { type TransferPhase, type TransferProgress } from '#shared/transfer/progress.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** At most one report in this time, phase changes and the inspection aside. */
export const reportEveryMs = 2000;
/** Weight of the newest interval in the smoothed speed. */
const newestWeight = 0.4;
const mostPercent = 99;

export interface MeterOptions {
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Must never throw; may take its time only where it is awaited (see `inspected`). */
  readonly send: (progress: TransferProgress) => Promise<void>;
  /** Bytes received over the wire so far. */
  readonly receivedBytes: () => number;
}

export interface Meter {
  /** Begins a phase that ends at `percent` of the whole. */
  enter(phase: TransferPhase, percent: number): void;
  /** How much of the phase is done, 0..1. */
  advance(fraction: number): void;
  /** Bytes of the published file, once known. */
  expect(totalBytes: number | undefined): void;
  /** Reports what was found; settled once that was sent or given up. */
  inspected(inspection: Inspection): Promise<void>;
  /** A transient fault that is being retried; `undefined` once it is over. */
  note(text: string | undefined): void;
  /** Called by a timer every `reportEveryMs`. */
  tick(): void;
}

interface Sample {
  at: number;
  bytes: number;
  fraction: number;
}

const blend = (before: number | undefined, newest: number): number =>
  before === undefined ? newest : before * (1 - newestWeight) + newest * newestWeight;

export const createMeter = (options: MeterOptions): Meter => {
  const { now, send, receivedBytes } = options;
  const startedAt = new Date(now()).toISOString();
  let sequence = 0;
  let phase: TransferPhase = 'Inspecting';
  let span = { from: 0, to: 1 };
  let fraction = 0;
  let percent = 0;
  let totalBytes: number | undefined;
  let inspection: Inspection | undefined;
  let note: string | undefined;
  let last: Sample = { at: now(), bytes: 0, fraction: 0 };
  let bytesPerSecond: number | undefined;
  let fractionPerSecond: number | undefined;

  const measure = (): void => {
    const seconds = (now() - last.at) / 1000;
    if (seconds < 0.5) return;
    const bytes = receivedBytes();
    bytesPerSecond = blend(bytesPerSecond, (bytes - last.bytes) / seconds);
    fractionPerSecond = blend(fractionPerSecond, Math.max(0, fraction - last.fraction) / seconds);
    last = { at: now(), bytes, fraction };
  };

  const current = (): TransferProgress => {
    percent = Math.min(mostPercent, Math.max(percent, span.from + (span.to - span.from) * fraction));
    const eta = fractionPerSecond === undefined || fractionPerSecond <= 0 ? undefined : (1 - fraction) / fractionPerSecond;
    return {
      run: options.run,
      startedAt,
      sequence: sequence++,
      phase,
      percent: Math.floor(percent * 10) / 10,
      receivedBytes: receivedBytes(),
      ...(totalBytes === undefined ? {} : { totalBytes }),
      ...(bytesPerSecond === undefined || phase !== 'Downloading' ? {} : { bytesPerSecond: Math.round(bytesPerSecond) }),
      ...(eta === undefined ? {} : { etaSeconds: Math.round(eta) }),
      ...(inspection === undefined ? {} : { inspection }),
      ...(note === undefined ? {} : { note }),
    };
  };
  const report = (): Promise<void> => {
    measure();
    return send(current());
  };

  return {
    enter: (next, to) => {
      span = { from: Math.max(percent, span.from + (span.to - span.from) * fraction), to };
      phase = next;
      fraction = 0;
      fractionPerSecond = undefined;
      last = { at: now(), bytes: receivedBytes(), fraction: 0 };
      void report();
    },
    advance: (done) => {
      fraction = Math.min(1, Math.max(fraction, done));
    },
    expect: (bytes) => {
      totalBytes = bytes;
    },
    inspected: async (found) => {
      inspection = found;
      await report();
    },
    note: (text) => {
      note = text;
    },
    tick: () => void report(),
  };
};
