// Writes a stream of chunks into a Node stream, with back-pressure. Used to feed decoders, hashes and child processes.
import type { Writable } from 'node:stream';

/** What `input` threw, if it did. */
export interface InputFault {
  readonly error: unknown;
}

const isOpen = (target: Writable): boolean => !target.destroyed && !target.writableEnded && target.errored === null;

/** Of plain listeners: ten thousand waits a second with signals would cost more than the writing. */
const untilWritable = (target: Writable): Promise<void> =>
  new Promise((resolve) => {
    const events = ['drain', 'close', 'error'] as const;
    const settle = (): void => {
      for (const event of events) target.off(event, settle);
      resolve();
    };
    for (const event of events) target.on(event, settle);
  });

/**
 * Ends `target` once `input` is used up; stops early, without a word, once `target` is closed (its own error tells why). An error of `input`
 * destroys `target` and is returned, never thrown.
 */
export const feed = async (input: AsyncIterable<Buffer>, target: Writable): Promise<InputFault | undefined> => {
  target.on('error', () => {});
  try {
    for await (const chunk of input) {
      if (!isOpen(target)) return undefined;
      if (!target.write(chunk)) await untilWritable(target);
    }
    if (isOpen(target)) target.end();
    return undefined;
  } catch (error) {
    target.destroy(error instanceof Error ? error : new Error(String(error)));
    return { error };
  }
};
