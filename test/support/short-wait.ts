// The normal delays between retries, but shorter: for tests of what is retried, not of when.
import { setTimeout as delay } from 'node:timers/promises';

const share = 1 / 20;

export const shortWait = (ms: number, signal: AbortSignal): Promise<void> => delay(ms * share, undefined, { signal });
