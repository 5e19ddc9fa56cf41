// Checks a bearer token that the sender shares with the server. Used by servers whose callers have no service account.
import { timingSafeEqual } from 'node:crypto';

/** Compares secrets in constant time. */
export const isSame = (given: string, wanted: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
};

/** Checks `Authorization: Bearer <token>` in constant time. */
export const showsToken = (headers: Headers, token: string): boolean =>
  isSame(headers.get('authorization') ?? '', `Bearer ${token}`);
