import { generateKeyPairSync } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseKeySet, publicHalfOf, signToken, toKeySet, toSigningKey, verifyToken } from '#shared/runtime/token.ts';

const makeKey = () =>
  toSigningKey(generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());

const now = 1_800_000_000_000;
const claims = {
  sub: 'jane',
  verb: 'upload',
  target: 'datavolumes/ns/a',
  iat: now / 1000,
  exp: now / 1000 + 300,
} as const;
const key = makeKey();
const keys = [publicHalfOf(key)];
const token = signToken(key, claims);

describe('a token', () => {
  it('contains the claims it was issued with', () => {
    expect(verifyToken(keys, token, now)).toEqual({ is: 'good', claims: { iss: 'bullion', ...claims } });
  });

  it('is verified with published keys', () => {
    const published = parseKeySet(JSON.parse(JSON.stringify(toKeySet(keys))));
    expect(verifyToken(published, token, now).is).toBe('good');
  });

  it.each([
    ['before its time', now - 60_000, 'expired'],
    ['in the first second of a faster clock', now - 9_000, 'good'],
    ['at its last second', now + 299_000, 'good'],
    ['a moment later, by a slower clock', now + 309_000, 'good'],
    ['after that', now + 311_000, 'expired'],
  ])('%s', (_when, at, verdict) => {
    expect(verifyToken(keys, token, at).is).toBe(verdict);
  });

  it('with an unknown key is rejected', () => {
    expect(verifyToken([publicHalfOf(makeKey())], token, now).is).toBe('unknown-key');
  });

  it('is never valid once any character of it was changed', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.';
    fc.assert(
      fc.property(fc.nat(token.length - 1), fc.constantFrom(...alphabet.split('')), (at, character) => {
        const changed = token.slice(0, at) + character + token.slice(at + 1);
        // The last character of base64url has unused bits.
        fc.pre(changed !== token && !Buffer.from(changed.split('.')[2] ?? '', 'base64url').equals(signatureOf()));
        expect(verifyToken(keys, changed, now).is).not.toBe('good');
      }),
    );
  });

  it.each(['', 'a.b.c', 'Bearer', `${token}.x`, 'eyJhbGciOiJub25lIn0.e30.'])('is invalid as %j', (text) => {
    expect(verifyToken(keys, text, now).is).toBe('malformed');
  });
});

const signatureOf = (): Buffer => Buffer.from(token.split('.')[2] ?? '', 'base64url');
