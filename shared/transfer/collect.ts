// Frees buffers before V8 would. V8 hears of their size only, lets 64 MB of them pile up, and then marks the whole heap to find that nearly all are
// young and dead: a fifth of an import's processor time. A look at the young ones alone, more often, costs a millisecond each.
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/**
 * Buffers count towards the limit at which V8 marks, which it would keep at twice the small heap that the last marking found: reached between two
 * of our collections. At five times (50 MB here) it is not.
 */
const heapGrowingPercent = 400;

type Collect = (options: { readonly type: 'minor' }) => void;

const findCollector = (): Collect | undefined => {
  setFlagsFromString('--expose-gc');
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent}`);
  const found: unknown = runInNewContext('typeof gc === "function" ? gc : undefined');
  return typeof found === 'function' ? (found as Collect) : undefined;
};

/** Each thread has a heap of its own. */
let found: { readonly collect: Collect | undefined } | undefined;

const everyBytes = 12 * 1024 * 1024;

/** Call what it gives with the bytes of each buffer that passes. */
export const createCollector = (): ((bytes: number) => void) => {
  let since = 0;
  return (bytes) => {
    since += bytes;
    if (since < everyBytes) return;
    since = 0;
    found ??= { collect: findCollector() };
    found.collect?.({ type: 'minor' });
  };
};
