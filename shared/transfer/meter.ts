// The progress of one run: content and time of reports; progress never decreases.
import type { Inspection, TransferPhase, TransferProgress } from './report.ts';

// Computes progress: a percentage that never decreases, and a smoothed speed.

/** Weight of the latest interval in a smoothed value. */
const newestWeight = 0.4;
/** Shorter intervals are too inaccurate. */
const shortestSeconds = 0.5;
/** The last percent is set by the control plane. */
const mostPercent = 99;

/** Percent of the total, phase by phase. */
interface Scale {
  /** Starts a phase that ends at `percent`. */
  begin(percent: number): void;
  /** Completed share of the phase, 0..1; never decreases within it. */
  advance(fraction: number): void;
  fraction(): number;
  /** With one decimal; never decreases. */
  percent(): number;
}

export const createScale = (): Scale => {
  let span = { from: 0, to: 0 };
  let fraction = 0;
  let reached = 0;
  const percent = (): number => {
    reached = Math.min(mostPercent, Math.max(reached, span.from + Math.max(0, span.to - span.from) * fraction));
    return Math.floor(reached * 10) / 10;
  };
  return {
    begin: (to) => {
      percent();
      span = { from: reached, to };
      fraction = 0;
    },
    advance: (done) => {
      fraction = Math.min(1, Math.max(fraction, done));
    },
    fraction: () => fraction,
    percent,
  };
};

interface PaceReading {
  readonly bytesPerSecond?: number;
  /** Seconds until the end of the phase. */
  readonly etaSeconds?: number;
}

interface Pace {
  /** Resets the speed at the start of a phase. */
  restart(bytes: number): void;
  measure(bytes: number, fraction: number): PaceReading;
}

const blend = (before: number | undefined, newest: number): number =>
  before === undefined ? newest : before * (1 - newestWeight) + newest * newestWeight;

/** `now` in milliseconds. */
const createPace = (now: () => number): Pace => {
  let last = { at: now(), bytes: 0, fraction: 0 };
  let speed: { readonly bytes: number; readonly fraction: number } | undefined;
  return {
    restart: (bytes) => {
      last = { at: now(), bytes, fraction: 0 };
      speed = undefined;
    },
    measure: (bytes, fraction) => {
      const seconds = (now() - last.at) / 1000;
      if (seconds >= shortestSeconds) {
        speed = {
          bytes: blend(speed?.bytes, (bytes - last.bytes) / seconds),
          fraction: blend(speed?.fraction, Math.max(0, fraction - last.fraction) / seconds),
        };
        last = { at: now(), bytes, fraction };
      }
      if (speed === undefined) return {};
      const eta = speed.fraction > 0 ? { etaSeconds: Math.round((1 - fraction) / speed.fraction) } : {};
      return { bytesPerSecond: Math.round(speed.bytes), ...eta };
    },
  };
};

/** At most one report per interval, except for phase changes and the inspection. */
export const reportEveryMs = 2000;

/** A source is reported as silent after this time, and again after each multiple of it. */
const silenceMs = 10_000;

interface MeterOptions {
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
