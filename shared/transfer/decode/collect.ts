// Frees the buffers of a thread before V8 would, which lets 64 MB of them pile up in every thread.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const findCollector = (): (() => void) | undefined => {
  setFlagsFromString('--expose-gc');
  const found: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  return typeof found === 'function' ? (found as () => void) : undefined;
};

/**
 * Call it with the bytes of each buffer that was used; whenever they add up to `every`, garbage is collected. Only for threads with a small
 * heap: there it takes a few milliseconds.
 */
export const createCollector = (every: number): ((bytes: number) => void) => {
  const collect = findCollector();
  let since = 0;
  return (bytes) => {
    since += bytes;
    if (since < every) return;
    since = 0;
    collect?.();
  };
};
