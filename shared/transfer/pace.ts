// The arithmetic of progress: a scale that never goes back, and a smoothed speed.

/** Weight of the newest interval in a smoothed value. */
const newestWeight = 0.4;
/** Shorter intervals say more about the clock than about the speed. */
const shortestSeconds = 0.5;
/** The last percent is the control plane's to give. */
const mostPercent = 99;

/** Percent of the whole, phase by phase. */
export interface Scale {
  /** Begins a phase that reaches up to `percent`. */
  begin(percent: number): void;
  /** How much of the phase is done, 0..1; never goes back within it. */
  advance(fraction: number): void;
  fraction(): number;
  /** With one decimal; never goes back. */
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
  /** Seconds to the end of the phase. */
  readonly etaSeconds?: number;
}

export interface Pace {
  /** Forgets the speed of the phase before. */
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
