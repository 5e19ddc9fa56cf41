// Keeps the progress of one run: what is sent, when, and that it never goes backwards.
import { createPace, createScale } from '#shared/transfer/pace.ts';
import type { TransferPhase, TransferProgress } from '#shared/transfer/progress.ts';
import type { Inspection } from '#shared/transfer/report.ts';

/** At most one report in this time, phase changes and the inspection aside. */
export const reportEveryMs = 2000;

/** A source that is silent for this long is said to be, in steps of as much. */
const silenceMs = 10_000;

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

/** What each report repeats, written into it as it is. */
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

/** Words for a source that sends nothing although more is to come, long before it is given up. */
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
