// Keeps the disk at work while others write to a sink: what is flushed at the end alone is waited for at the end.
import { createFlushing } from '#shared/transfer/sink/flushing.ts';
import type { Sink } from '#shared/transfer/sink/sink.ts';

const lookEveryMs = 20;

export interface Flusher {
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
