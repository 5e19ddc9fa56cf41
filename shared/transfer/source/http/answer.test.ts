import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  identityOf,
  isOtherObject,
  parseContentLength,
  parseContentRange,
  parseRetryAfter,
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
  ])('reads "%s"', (value, expected) => {
    expect(parseContentRange({ 'content-range': value })).toEqual(expected);
  });

  it('never throws, and what it returns is a range', () => {
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
  ])('reads "%s"', (value, expected) => {
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
  ])('reads "%s"', (value, expected) => {
    expect(parseRetryAfter({ 'retry-after': value }, now)).toBe(expected);
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
    expect(statusFault({ status, headers: {} }, 'http://h/x', 0)).toMatchObject({ code, retryable });
  });

  it('carries what the server asks for in Retry-After', () => {
    const fault = statusFault({ status: 503, headers: { 'retry-after': '7' } }, 'http://h/x', 0);
    expect(fault.retryAfterSeconds).toBe(7);
  });
});
