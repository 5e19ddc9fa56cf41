// The keys that clients of an upload are known by, fetched from whoever issues their tokens, and again when a token names a new one.
import { request } from 'undici';
import { type Verdict, type VerifyingKey, parseKeySet, verifyToken } from '#shared/runtime/token.ts';

const fetchMs = 5_000;
/** A stranger who makes up key names must not make us ask all the time. */
const leastPauseMs = 5_000;

export interface TokenChecker {
  /** Throws when the keys cannot be fetched. */
  check(token: string): Promise<Verdict>;
}

export const createTokenChecker = (keysUrl: string, now: () => number = Date.now): TokenChecker => {
  let keys: readonly VerifyingKey[] = [];
  let fetchedAt = -Infinity;
  const fetchKeys = async (): Promise<void> => {
    fetchedAt = now();
    const { statusCode, body } = await request(keysUrl, { signal: AbortSignal.timeout(fetchMs) });
    if (statusCode !== 200) {
      await body.dump();
      throw new Error(`${keysUrl} answered ${statusCode}`);
    }
    keys = parseKeySet(await body.json());
  };
  return {
    check: async (token) => {
      const verdict = verifyToken(keys, token, now());
      if (verdict.is !== 'unknown-key' || now() - fetchedAt < leastPauseMs) return verdict;
      await fetchKeys();
      return verifyToken(keys, token, now());
    },
  };
};
