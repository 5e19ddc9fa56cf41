// Keeps the disk at work while others write to a sink: what is flushed at the end alone is waited for at the end.
import type { Sink } from '#shared/transfer/sink/sink.ts';

const flushEveryBytes = 128 * 1024 * 1024;
const lookEveryMs = 50;

export interface Flusher {
  /** Waits for the flush under way; there are none after it. Never throws. */
  stop(): Promise<void>;
}

/** Flushes whenever enough was written since the last time. `writtenBytes`: by workers or programs that write past the sink. */
export const flushWhile = (
  sink: Sink,
  writtenBytes: () => number | Promise<number> = () => sink.writtenBytes(),
): Flusher => {
  let flushedAt = 0;
  let flushing: Promise<void> | undefined;
  const flush = async (): Promise<void> => {
    const written = await writtenBytes();
    if (written - flushedAt < flushEveryBytes) return;
    flushedAt = written;
    await sink.flush();
  };
  const clear = (): void => {
    flushing = undefined;
  };
  const timer = setInterval(() => {
    // What fails here fails again at the end, where it is seen.
    flushing ??= flush().then(clear, clear);
  }, lookEveryMs);
  return {
    stop: async () => {
      clearInterval(timer);
      await flushing;
    },
  };
};
