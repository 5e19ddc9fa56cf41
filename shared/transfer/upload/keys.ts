// The keys that verify the tokens of an upload's clients, fetched from the issuer, and again for a token with an unknown key.
import type { IncomingMessage } from 'node:http';
import { request as ask } from 'undici';
import { type TokenVerdict, type VerifyingKey, parseKeySet, verifyToken } from '#shared/runtime/token.ts';

const fetchMs = 5_000;
/** Tokens with invented key names must not cause a request each. */
const leastPauseMs = 5_000;

export interface TokenChecker {
  /** Throws if the keys cannot be fetched. */
  check(token: string): Promise<TokenVerdict>;
}

export const createTokenChecker = (keysUrl: string, now: () => number = Date.now): TokenChecker => {
  let keys: readonly VerifyingKey[] = [];
  let fetchedAt = -Infinity;
  let fetching: Promise<void> | undefined;
  const fetchKeys = async (): Promise<void> => {
    const { statusCode, body } = await ask(keysUrl, { signal: AbortSignal.timeout(fetchMs) });
    if (statusCode !== 200) {
      await body.dump();
      throw new Error(`${keysUrl} answered ${statusCode}`);
    }
    keys = parseKeySet(await body.json());
    fetchedAt = now();
  };
  return {
    check: async (token) => {
      const verdict = verifyToken(keys, token, now());
      if (verdict.is !== 'unknown-key') return verdict;
      // Several clients may connect at once to a pod that has just started: all of them wait for its first request.
      if (fetching === undefined && now() - fetchedAt < leastPauseMs) return verdict;
      fetching ??= fetchKeys().finally(() => (fetching = undefined));
      await fetching;
      return verifyToken(keys, token, now());
    },
  };
};

/** Whether a request has a token for the pod that works for `subject`. */
export const mayWork = async (
  request: IncomingMessage,
  { checker, subject }: { readonly checker: TokenChecker; readonly subject: string },
): Promise<boolean> => {
  const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1];
  if (token === undefined) return false;
  const verdict = await checker.check(token);
  return verdict.is === 'good' && verdict.claims.verb === 'work' && verdict.claims.target === subject;
};
