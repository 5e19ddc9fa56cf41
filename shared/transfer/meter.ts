// The progress of one run: content and time of reports; progress never decreases.
import { createPace, createScale } from '#shared/transfer/pace.ts';
import type { TransferPhase, TransferProgress } from '#shared/transfer/progress.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** At most one report per interval, except for phase changes and the inspection. */
export const reportEveryMs = 2000;

/** A source is reported as silent after this time, and again after each multiple of it. */
const silenceMs = 10_000;

export interface MeterOptions {
  readonly run: string;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** Must never throw; may be slow only where it is awaited (see `inspected`). */
  readonly send: (progress: TransferProgress) => Promise<void>;
  /** Bytes received over the wire so far. */
  readonly receivedBytes: () => number;
}

export interface Meter {
  /** Starts a phase that ends at `percent` of the total. */
  enter(phase: TransferPhase, percent: number): void;
  /** Completed share of the phase, 0..1. */
  advance(fraction: number): void;
  /** Bytes of the published file, if known. */
  expect(totalBytes: number | undefined): void;
  /** Reports the inspection; resolves once it was sent or dropped. */
  inspected(inspection: Inspection): Promise<void>;
  /** A transient fault that is being retried; `undefined` when it is over. */
  note(text: string | undefined): void;
  /** Called by a timer every `reportEveryMs`. */
  tick(): void;
}

/** Fields of every report, included unchanged. */
interface Facts {
  phase: TransferPhase;
  totalBytes?: number;
  inspection?: Inspection;
  note?: string;
}

export const createMeter = (options: MeterOptions): Meter => {
  const { now, send, receivedBytes } = options;
  const startedAt = new Date(now()).toISOString();
  const facts: Facts = { phase: 'Inspecting' };
  const scale = createScale();
  const pace = createPace(now);
  const silence = createSilence(options);
  let sequence = 0;

  const current = (): TransferProgress => {
    const { bytesPerSecond, etaSeconds } = pace.measure(receivedBytes(), scale.fraction());
    const note = facts.note ?? silence(facts.phase, scale.fraction());
    return {
      run: options.run,
      startedAt,
      sequence: sequence++,
      percent: scale.percent(),
      receivedBytes: receivedBytes(),
      ...(bytesPerSecond === undefined || facts.phase !== 'Downloading' ? {} : { bytesPerSecond }),
      ...(etaSeconds === undefined ? {} : { etaSeconds }),
      ...facts,
      ...(note === undefined ? {} : { note }),
    };
  };
  return {
    enter: (phase, to) => {
      facts.phase = phase;
      scale.begin(to);
      pace.restart(receivedBytes());
      void send(current());
    },
    advance: (fraction) => scale.advance(fraction),
    expect: (bytes) => {
      if (bytes !== undefined) facts.totalBytes = bytes;
    },
    inspected: (inspection) => {
      facts.inspection = inspection;
      return send(current());
    },
    note: (text) => {
      if (text === undefined) delete facts.note;
      else facts.note = text;
    },
    tick: () => void send(current()),
  };
};

/** A note about a source that sends nothing although more is expected, long before the timeout. */
const createSilence = ({ now, receivedBytes }: MeterOptions) => {
  let last = { bytes: receivedBytes(), at: now() };
  return (phase: TransferPhase, fraction: number): string | undefined => {
    const bytes = receivedBytes();
    if (bytes !== last.bytes) last = { bytes, at: now() };
    const isReading = phase === 'Inspecting' || (phase === 'Downloading' && fraction < 1);
    const steps = Math.floor((now() - last.at) / silenceMs);
    return isReading && steps > 0 ? `nothing received for more than ${(steps * silenceMs) / 1000} s` : undefined;
  };
};
