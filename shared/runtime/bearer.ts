// Whether a request shows a token that its sender shares with us. Called by servers that callers without an account of the cluster come through.
import { timingSafeEqual } from 'node:crypto';

const isSame = (given: string, wanted: string): boolean => {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
};

/** `Authorization: Bearer <token>`; takes as long for a wrong token as for the right one. */
export const showsToken = (headers: Headers, token: string): boolean =>
  isSame(headers.get('authorization') ?? '', `Bearer ${token}`);
