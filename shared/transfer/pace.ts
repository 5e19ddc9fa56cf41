// Computes progress: a percentage that never decreases, and a smoothed speed.

/** Weight of the latest interval in a smoothed value. */
const newestWeight = 0.4;
/** Shorter intervals are too inaccurate. */
const shortestSeconds = 0.5;
/** The last percent is set by the control plane. */
const mostPercent = 99;

/** Percent of the total, phase by phase. */
export interface Scale {
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

export interface PaceReading {
  readonly bytesPerSecond?: number;
  /** Seconds until the end of the phase. */
  readonly etaSeconds?: number;
}

export interface Pace {
  /** Resets the speed at the start of a phase. */
  restart(bytes: number): void;
  measure(bytes: number, fraction: number): PaceReading;
}

const blend = (before: number | undefined, newest: number): number =>
  before === undefined ? newest : before * (1 - newestWeight) + newest * newestWeight;

/** `now` in milliseconds. */
export const createPace = (now: () => number): Pace => {
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
