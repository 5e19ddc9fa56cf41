// Decides when a file is flushed while it is written, so that the disk is never idle and dirty pages stay bounded: they count towards the
// memory of a container. Measured (test/bench/README.md): with one flush at a time the disk is idle a third of the time, and smaller flushes
// are slower.
import type { Sink } from '#shared/transfer/sink/sink.ts';

/** The first one comes early: before it the disk is idle. */
const firstBytes = 16 * 1024 * 1024;
const everyBytes = 64 * 1024 * 1024;
/** While one waits for the disk, the other keeps it busy. */
const mostAtOnce = 2;

export interface Flushing {
  /** Reports the bytes written so far; starts a flush if they are enough. */
  reach(writtenBytes: number): void;
  /** Waits for the flushes in progress. */
  settled(): Promise<void>;
}

/** `flush` must not throw: the writer keeps the error, and fails with it. */
export const createFlushing = (flush: () => Promise<void>): Flushing => {
  const underWay = new Set<Promise<void>>();
  let [reached, flushedAt] = [0, 0];
  const startDue = (): void => {
    if (underWay.size >= mostAtOnce || reached - flushedAt < (flushedAt === 0 ? firstBytes : everyBytes)) return;
    flushedAt = reached;
    const one = flush().finally(() => {
      underWay.delete(one);
      startDue();
    });
    underWay.add(one);
  };
  return {
    reach: (writtenBytes) => {
      reached = writtenBytes;
      startDue();
    },
    settled: async () => {
      while (underWay.size > 0) await Promise.all(underWay);
    },
  };
};

/** Keeps the disk busy while others write to a sink: otherwise everything would be flushed at the end. */
const pollMs = 20;

interface Flusher {
  /** Waits for the flushes in progress; none follow. Never throws. */
  stop(): Promise<void>;
}

/** Flushes whenever enough bytes were written since the last time. `writtenBytes`: of workers or programs that write past the sink. */
export const flushWhile = (
  sink: Sink,
  writtenBytes: () => number | Promise<number> = () => sink.writtenBytes(),
): Flusher => {
  // The sink keeps the error of a flush, and fails with it at commit.
  const flushing = createFlushing(() => sink.flush().catch(() => {}));
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => flushing.reach(await writtenBytes());
  const clear = (): void => {
    looking = undefined;
  };
  const timer = setInterval(() => {
    looking ??= look().then(clear, clear);
  }, pollMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await looking;
      await flushing.settled();
    },
  };
};
