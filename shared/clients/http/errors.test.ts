// Errors of connections, in words of people: what is wrong, where, and what can be done.
import { describe, expect, it } from 'vitest';
import { toHttpFailure } from './errors.ts';

describe('a connection that cannot be made', () => {
  it.each<[code: string, says: RegExp]>([
    ['ENOTFOUND', /^cannot connect to quay\.io: ENOTFOUND \(DNS has no such name: correct the name, or set a proxy/],
    ['EAI_AGAIN', /^cannot connect to quay\.io: EAI_AGAIN \(DNS did not answer: /],
    ['ECONNREFUSED', /^cannot connect to quay\.io: ECONNREFUSED \(nothing listens on this port: /],
    ['EHOSTUNREACH', /^cannot connect to quay\.io: EHOSTUNREACH$/],
  ])('of %s', (code, says) => {
    const failure = toHttpFailure(Object.assign(new TypeError('fetch failed'), { cause: { code } }), 'quay.io');
    expect(failure).toMatchObject({ code: 'Unreachable', message: expect.stringMatching(says) });
  });
});
