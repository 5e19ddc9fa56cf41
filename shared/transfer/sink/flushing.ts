// When a file is flushed while it is being written, so that the disk is never idle and dirty pages stay bounded: the memory of a container counts them.
// The figures are measured (test/bench/README.md): a disk that waits for the end of one flush before it hears of the next is idle a third of the time,
// and smaller flushes than these make it slower.
import type { Sink } from '#shared/transfer/sink/sink.ts';

/** The first comes early: until then the disk has nothing to do. */
const firstBytes = 16 * 1024 * 1024;
const everyBytes = 64 * 1024 * 1024;
/** While the one waits for the disk to say that it is done, the other keeps it at work. */
const mostAtOnce = 2;

export interface Flushing {
  /** Says how many bytes were written so far; starts a flush where that is enough of them. */
  reach(writtenBytes: number): void;
  /** Waits for the flushes under way. */
  settled(): Promise<void>;
}

/** `flush` must not throw: whoever writes keeps the fault, and fails by it. */
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

/** Keeps the disk at work while others write to a sink: what is flushed at the end alone is waited for at the end. */
const lookEveryMs = 20;

interface Flusher {
  /** Waits for the flushes under way; there are none after it. Never throws. */
  stop(): Promise<void>;
}

/** Flushes whenever enough was written since the last time. `writtenBytes`: by workers or programs that write past the sink. */
export const flushWhile = (
  sink: Sink,
  writtenBytes: () => number | Promise<number> = () => sink.writtenBytes(),
): Flusher => {
  // The sink keeps the fault of a flush, and fails by it when it is committed.
  const flushing = createFlushing(() => sink.flush().catch(() => {}));
  let looking: Promise<void> | undefined;
  const look = async (): Promise<void> => flushing.reach(await writtenBytes());
  const clear = (): void => {
    looking = undefined;
  };
  const timer = setInterval(() => {
    looking ??= look().then(clear, clear);
  }, lookEveryMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await looking;
      await flushing.settled();
    },
  };
};
