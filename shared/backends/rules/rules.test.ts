import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { isLabelValue, toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { digestLengths } from '#shared/transfer/spec.ts';

const sha256 = 'ab'.repeat(32);
const sha512 = 'cd'.repeat(64);

describe('parseChecksum', () => {
  it.each([
    ['an algorithm and a digest', `sha256:${sha256}`, { algorithm: 'sha256', hex: sha256 }],
    ['upper case', `SHA256:${sha256.toUpperCase()}`, { algorithm: 'sha256', hex: sha256 }],
    ['space around', ` sha256 : ${sha256}\n`, { algorithm: 'sha256', hex: sha256 }],
    ['a bare digest', sha512, { algorithm: 'sha512', hex: sha512 }],
    ['a bare digest in upper case with space', ` ${sha512.toUpperCase()} `, { algorithm: 'sha512', hex: sha512 }],
    ['md5', `md5:${'0'.repeat(32)}`, { algorithm: 'md5', hex: '0'.repeat(32) }],
  ])('parses %s', (_name, text, value) => {
    expect(parseChecksum(text, 'sha512')).toEqual({ value });
  });

  it.each([
    [
      'a digest that is too short',
      `sha256:${sha256.slice(1)}`,
      'has 63 characters, but a sha256 digest has 64 hexadecimal digits',
    ],
    ['a digest of another alphabet', `sha256:g${sha256.slice(1)}`, 'has "g" at 1, and a digest has 0-9 and a-f only'],
    [
      'an unknown algorithm',
      `crc32:${sha256}`,
      'algorithm "crc32" is not supported; use one of md5, sha1, sha256, sha512',
    ],
    ['two colons', `sha256:${sha256}:x`, 'has 2 colons; write <algorithm>:<hex>'],
    [
      'nothing',
      '',
      'has 0 characters, but a sha512 digest has 128 hexadecimal digits; for another algorithm write <algorithm>:<hex>',
    ],
    [
      'a bare digest of another length',
      sha256,
      'has 64 characters, but a sha512 digest has 128 hexadecimal digits; for another algorithm write sha256:<hex>',
    ],
  ])('rejects %s', (_name, text, problem) => {
    expect(parseChecksum(text, 'sha512')).toEqual({ problem });
  });

  it('rejects a bare digest where none is expected, and says which algorithm it looks like', () => {
    expect(parseChecksum(sha256)).toEqual({ problem: 'has no algorithm; write sha256:<hex>' });
  });

  it('parses every well-formed checksum again, and returns an answer for any other input', () => {
    const wellFormed = fc
      .constantFrom(...(Object.keys(digestLengths) as (keyof typeof digestLengths)[]))
      .chain((algorithm) =>
        fc
          .array(fc.constantFrom(...'0123456789abcdef'.split('')), {
            minLength: digestLengths[algorithm],
            maxLength: digestLengths[algorithm],
          })
          .map((digits) => ({ algorithm, hex: digits.join('') })),
      );
    fc.assert(
      fc.property(wellFormed, (value) => {
        expect(parseChecksum(`${value.algorithm}:${value.hex}`)).toEqual({ value });
      }),
    );
    fc.assert(
      fc.property(fc.string(), (text) => {
        expect(parseChecksum(text)).toHaveProperty('problem');
      }),
    );
  });
});

describe('parseSourceUrl', () => {
  it.each([
    'https://images.example/disk.qcow2',
    'http://127.0.0.1:8080/a?b=c',
    'HTTPS://images.example/',
    ' http://a/b ',
  ])('parses %s', (text) => {
    expect(parseSourceUrl(text)).toEqual({ value: text.trim() });
  });

  it.each([
    ['', 'is empty'],
    ['disk.qcow2', 'is not a valid URL'],
    ['http://', 'is not a valid URL'],
    ['https:images.example/disk', 'lacks //'],
    ['ftp://images.example/disk', 'has the scheme "ftp"'],
    ['file:///etc/passwd', 'has the scheme "file"'],
    ['https://jane:secret@images.example/disk', 'contains a user name or password'],
  ])('rejects %j', (text, problem) => {
    expect(parseSourceUrl(text)).toEqual({ problem: expect.stringContaining(problem) });
  });

  it('never repeats a password', () => {
    const result = parseSourceUrl('https://jane:secret@images.example:port/disk');
    expect(JSON.stringify(result)).not.toContain('secret');
  });
});

describe('toDisplayNameLabel', () => {
  it('is the name itself when that is a valid label value', () => {
    expect(toDisplayNameLabel('ubuntu_22.04-LTS')).toBe('ubuntu_22.04-LTS');
  });

  it('is a valid label value for every name, and differs for different names', () => {
    const name = fc.string({ minLength: 1, unit: 'binary' });
    fc.assert(
      fc.property(name, name, (a, b) => {
        expect(isLabelValue(toDisplayNameLabel(a))).toBe(true);
        expect(toDisplayNameLabel(a) === toDisplayNameLabel(b)).toBe(a === b);
      }),
    );
  });

  it('accepts names of any length', () => {
    expect(toDisplayNameLabel('Debian 12 (bookworm)')).toMatch(/^sha256-[0-9a-f]{48}$/);
    expect(toDisplayNameLabel('x'.repeat(64))).toMatch(/^sha256-/);
    expect(toDisplayNameLabel('x'.repeat(63))).toBe('x'.repeat(63));
  });
});
