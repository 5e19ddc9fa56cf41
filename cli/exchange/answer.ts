// What the transfer function answered, and whether to try again.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Dispatcher } from 'undici';
import { AppError, Denied, InvalidInput, NotFound, Unavailable, messageOf } from '#shared/runtime/errors.ts';

const wordsOf = async ({ body, statusCode }: Dispatcher.ResponseData): Promise<string> => {
  const text = await body.text();
  try {
    return (JSON.parse(text) as { message?: string }).message ?? text;
  } catch {
    return text === '' ? `the transfer function answered ${statusCode}` : text.trim();
  }
};

/** Of an answer that is none of the good ones. Reads its body. */
export const toError = async (answer: Dispatcher.ResponseData): Promise<AppError> => {
  const { statusCode: status } = answer;
  const words = await wordsOf(answer);
  if (status === 401 || status === 403) return new Denied(words);
  if (status === 404) return new NotFound(words);
  if (status >= 500 || status === 423 || status === 408 || status === 410) return new Unavailable(words);
  return new InvalidInput(words, [{ field: 'file', message: words }]);
};

export interface Persistence {
  readonly signal: AbortSignal;
  /** Tries in a row that get nowhere. */
  readonly tries: number;
  readonly onRetry: (why: string, seconds: number) => void;
}

/** Longest pause between two tries, in seconds. */
const longestPause = 30;

/** Again after a fault of the network or the cluster, as long as something moves. `step` throws where not all is done. */
export const persist = async (
  step: () => Promise<void>,
  progress: () => number,
  { signal, tries, onRetry }: Persistence,
): Promise<void> => {
  let failures = 0;
  for (;;) {
    const before = progress();
    try {
      await step();
      return;
    } catch (error) {
      if (signal.aborted) throw new Unavailable('interrupted; start the same command again to go on', { cause: error });
      if (error instanceof AppError && !error.retryable) throw error;
      failures = progress() > before ? 1 : failures + 1;
      if (failures > tries) throw new Unavailable(`given up: ${messageOf(error)}`, { cause: error });
      const seconds = Math.min(longestPause, 2 ** (failures - 1));
      onRetry(messageOf(error), seconds);
      await sleep(seconds * 1000, undefined, { signal }).catch(() => undefined);
    }
  }
};
