import fc from 'fast-check';
import { parseRetryAfter } from '#shared/clients/http/refusal.ts';
import { describe, expect, it } from 'vitest';
import { expiryOf, refusalMessage } from '#shared/clients/http/refusal.ts';
import {
  identityOf,
  isOtherObject,
  parseContentLength,
  parseContentRange,
  statusFault,
  strongValidatorOf,
} from '#shared/transfer/source/http/answer.ts';

describe('parseContentRange', () => {
  it.each([
    ['bytes 0-99/1000', { first: 0, last: 99, total: 1000 }],
    ['bytes 5-5/6', { first: 5, last: 5, total: 6 }],
    ['Bytes 0-99/*', { first: 0, last: 99 }],
    ['bytes 0-99/99', undefined],
    ['bytes 9-3/99', undefined],
    ['bytes */99', undefined],
    ['items 0-1/2', undefined],
    ['bytes 0-99999999999999999/999999999999999999', undefined],
    ['', undefined],
  ])('parses "%s"', (value, expected) => {
    expect(parseContentRange({ 'content-range': value })).toEqual(expected);
  });

  it('never throws, and returns a valid range', () => {
    fc.assert(
      fc.property(fc.string(), (value) => {
        const range = parseContentRange({ 'content-range': value });
        expect(range === undefined || range.first <= range.last).toBe(true);
      }),
    );
  });
});

describe('parseContentLength', () => {
  it.each([
    ['12', 12],
    ['12, 12', undefined],
    ['-1', undefined],
    ['1e3', undefined],
  ])('parses "%s"', (value, expected) => {
    expect(parseContentLength({ 'content-length': value })).toBe(expected);
  });
});

describe('strongValidatorOf', () => {
  const date = 'Tue, 01 Dec 2026 10:00:00 GMT';
  it.each([
    [{ etag: '"abc"' }, '"abc"'],
    [{ etag: 'W/"abc"' }, undefined],
    [{ etag: 'abc' }, undefined],
    [{ 'last-modified': 'Tue, 01 Dec 2026 09:00:00 GMT', date }, 'Tue, 01 Dec 2026 09:00:00 GMT'],
    [{ 'last-modified': 'Tue, 01 Dec 2026 09:59:30 GMT', date }, undefined],
    [{ 'last-modified': 'Tue, 01 Dec 2026 09:00:00 GMT' }, undefined],
    [{ etag: 'W/"abc"', 'last-modified': 'Tue, 01 Dec 2026 09:00:00 GMT', date }, undefined],
    [{}, undefined],
  ])('of %j is %s', (headers, expected) => {
    expect(strongValidatorOf(headers as Record<string, string>)).toBe(expected);
  });
});

describe('isOtherObject', () => {
  it.each([
    [{ etag: '"a"' }, { etag: '"a"' }, false],
    [{ etag: '"a"' }, { etag: '"b"' }, true],
    [{ etag: '"a"', 'last-modified': 'x' }, { etag: '"a"', 'last-modified': 'y' }, false],
    [{ 'last-modified': 'x' }, { 'last-modified': 'y' }, true],
    [{ etag: '"a"' }, {}, false],
  ])('from %j to %j: %s', (before, after, expected) => {
    expect(isOtherObject(identityOf(before as Record<string, string>), after as Record<string, string>)).toBe(expected);
  });
});

describe('parseRetryAfter', () => {
  const now = Date.parse('Tue, 01 Dec 2026 10:00:00 GMT');
  it.each([
    ['120', 120],
    ['Tue, 01 Dec 2026 10:00:30 GMT', 30],
    ['Tue, 01 Dec 2026 09:00:00 GMT', 0],
    ['soon', undefined],
  ])('parses "%s"', (value, expected) => {
    expect(parseRetryAfter(value, now)).toBe(expected);
  });
});

describe('statusFault', () => {
  it.each([
    [400, 'SourceRefused', false],
    [401, 'SourceForbidden', false],
    [403, 'SourceForbidden', false],
    [404, 'SourceNotFound', false],
    [410, 'SourceNotFound', false],
    [204, 'SourceRefused', false],
    [408, 'SourceUnavailable', true],
    [429, 'SourceUnavailable', true],
    [500, 'SourceUnavailable', true],
    [503, 'SourceUnavailable', true],
  ])('of %i is %s', (status, code, retryable) => {
    expect(statusFault({ status, headers: {} }, 'http://h/x', { nowMs: 0 })).toMatchObject({ code, retryable });
  });

  it('includes the delay in Retry-After', () => {
    const fault = statusFault({ status: 503, headers: { 'retry-after': '7' } }, 'http://h/x', { nowMs: 0 });
    expect(fault.retryAfterSeconds).toBe(7);
  });
});

describe('why a server rejects a request', () => {
  const xml = (code: string, message: string) =>
    `<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message><StringToSign>s3cret</StringToSign></Error>`;

  it.each([
    ['application/xml', xml('AccessDenied', 'Request has expired'), 'AccessDenied: Request has expired'],
    ['text/xml', xml('ExpiredToken', 'a &lt;b&gt; &amp; c'), 'ExpiredToken: a <b> & c'],
    ['text/plain', '\nlink expired\nat noon', 'link expired'],
    [undefined, 'no\u0000body', 'no body'],
    ['text/plain', 'see https://u:p@h/x?X-Amz-Signature=abc or token=abcdef', 'see https://h/x or token=[redacted]'],
    ['text/plain', 'x'.repeat(500), `${'x'.repeat(160)}…`],
    ['text/html', '<html>403</html>', undefined],
    ['text/html', '<!doctype html><Title>\n Link &amp; key expired</title><p>token=abcdef', 'Link & key expired'],
    ['text/plain', '<html><title>Gone</title>', 'Gone'],
    ['text/plain', '<html>403</html>', undefined],
    ['text/html', '<title>see https://h/x?sig=abcdef or /x?sig=abcdef</title>', 'see https://h/x or /x'],
    ['application/json', '{"a":1}', undefined],
    ['text/plain', '', undefined],
  ])('is read from %s: %j', (type, body, words) => {
    expect(refusalMessage(body, type)).toBe(words);
  });

  const now = Date.parse('2026-03-01T12:00:01Z');
  it.each([
    ['X-Amz-Date=20260301T110000Z&X-Amz-Expires=3600', '2026-03-01T12:00:00.000Z'],
    ['X-Amz-Date=20260301T110000Z&X-Amz-Expires=3602', undefined],
    ['X-Goog-Date=20260301T110000Z&X-Goog-Expires=60', '2026-03-01T11:01:00.000Z'],
    [`Expires=${Date.parse('2026-03-01T12:00:00Z') / 1000}`, '2026-03-01T12:00:00.000Z'],
    ['se=2026-03-01T12:00:00Z&sig=x', '2026-03-01T12:00:00.000Z'],
    ['se=2027-03-01T12:00:00Z&sig=x', undefined],
    ['X-Amz-Date=tomorrow&X-Amz-Expires=1', undefined],
    ['', undefined],
  ])('includes whether an address has expired: %s', (query, expected) => {
    const expired = expiryOf(new URL(`https://h/x?${query}`), now);
    expect(expired === undefined ? undefined : new Date(expired).toISOString()).toBe(expected);
  });

  it.each([
    [
      { status: 403, expired: now },
      /^http:\/\/h\/x answered 403: the signed address expired at 2026-03-01T12:00:01.000Z: create a new one/,
    ],
    [{ status: 400, expired: now, reason: 'AuthFailed' }, /answered 400 \(AuthFailed\): the signed address expired/],
    [
      { status: 403, reason: 'AccessDenied: Request has expired' },
      /: the signed address has expired: create a new one/,
    ],
    [{ status: 403, reason: 'AccessDenied: no' }, /answered 403 \(AccessDenied: no\): credentials are missing/],
  ])('includes what to do: %o', ({ status, ...refusal }, words) => {
    const fault = statusFault({ status, headers: {} }, 'http://h/x', { nowMs: now, ...refusal });
    expect(fault).toMatchObject({ code: 'SourceForbidden', message: expect.stringMatching(words) });
  });
});
