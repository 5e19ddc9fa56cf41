// Which hosts are worth asking: a circuit breaker for each. A host that fails again and again is left alone for a while; then one request tries it, and
// the others wait for its result. Kept in memory by whoever asks: a function for its polls, a Job for its transfer.

/** Consecutive failures after which a host is left alone. */
const mostFailures = 3;
const firstPauseMs = 30_000;
const longestPauseMs = 10 * 60_000;
/** A probe that reports nothing in this time has ended in some other way. */
const probeMs = 60_000;

interface Circuit {
  failures: number;
  /** Milliseconds since the epoch: until then it is not asked. */
  pausedUntil: number;
  probedUntil: number;
}

export interface HostHealth {
  /** Milliseconds until the host may be asked; 0: now. */
  readonly waitMs: (host: string) => number;
  /** Like `waitMs`, for a caller that asks if it is 0, and then reports the result: it may be the only one that is let through. */
  readonly take: (host: string) => number;
  /** It has answered, with whatever status. */
  readonly answered: (host: string) => void;
  /** It did not answer, or not usefully: no connection, no bytes, a server error. */
  readonly failed: (host: string) => void;
}

/** Milliseconds since the epoch. */
export const createHostHealth = (now: () => number): HostHealth => {
  const circuits = new Map<string, Circuit>();
  const waitMs = (host: string): number => {
    const circuit = circuits.get(host);
    return circuit === undefined ? 0 : Math.max(0, circuit.pausedUntil - now(), circuit.probedUntil - now());
  };
  return {
    waitMs,
    take: (host) => {
      const wait = waitMs(host);
      const circuit = circuits.get(host);
      if (wait === 0 && circuit !== undefined && circuit.failures >= mostFailures)
        circuit.probedUntil = now() + probeMs;
      return wait;
    },
    answered: (host) => void circuits.delete(host),
    failed: (host) => {
      const failures = (circuits.get(host)?.failures ?? 0) + 1;
      const pause = Math.min(longestPauseMs, firstPauseMs * 2 ** (failures - mostFailures));
      circuits.set(host, { failures, pausedUntil: failures < mostFailures ? 0 : now() + pause, probedUntil: 0 });
    },
  };
};
