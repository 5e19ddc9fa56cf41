import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { detectCompression, detectFormat } from '#shared/transfer/format/detect.ts';
import { refusalOf } from '#test/support/refusal.ts';

const withMagic = (hex: string, at = 0): Buffer => {
  const bytes = Buffer.alloc(64 * 1024);
  Buffer.from(hex, 'hex').copy(bytes, at);
  return bytes;
};

describe('detectFormat', () => {
  it.each([
    ['qcow2', withMagic('514649fb')],
    ['vmdk', withMagic('4b444d56')],
    ['vdi', withMagic('7f10dabe', 0x40)],
    ['vhd', withMagic('636f6e6563746978')],
    ['vhdx', withMagic('7668647866696c65')],
    ['iso', withMagic('4344303031', 0x8001)],
    ['raw', withMagic('eb63900000')],
    ['raw', Buffer.alloc(512)],
    ['raw', withMagic('55aa', 510)],
  ])('finds %s', (format, head) => {
    expect(detectFormat(head)).toBe(format);
  });

  it.each([
    ['zip', withMagic('504b0304')],
    ['tar', withMagic('7573746172', 0x101)],
    ['bzip2', withMagic('425a68')],
    ['7-Zip', withMagic('377abcaf271c')],
    ['COWD', withMagic('434f5744')],
    ['seSparse', withMagic('bebafeca00000000')],
  ])('rejects %s by name', (name, head) => {
    expect(() => detectFormat(head)).toThrow(new RegExp(name));
  });

  it.each([
    ['a page', '<!doctype html><title>Sign in</title>'],
    ['a long page', `<html>${'<p>lorem ipsum</p>\n'.repeat(1000)}`],
    ['JSON', '{"error":"no such image"}'],
    ['a listing', 'total 12\r\ndrwxr-xr-x 2 root\r\n'],
    ['umlauts', `Datei nicht gefunden: Übergröße ${'ä'.repeat(3000)}`],
  ])('rejects %s, quoting content type and first bytes', (_, text) => {
    const head = Buffer.from(text);
    const start = text.slice(0, 6);
    expect(() => detectFormat(head, 'text/html')).toThrow(
      expect.objectContaining({ code: 'NotADiskImage', message: expect.stringContaining('text/html') }),
    );
    expect(() => detectFormat(head)).toThrow(start);
  });

  it.each([
    ['nothing', Buffer.alloc(0)],
    ['less than a sector', Buffer.alloc(511)],
  ])('rejects %s', (_, head) => {
    expect(() => detectFormat(head)).toThrow(expect.objectContaining({ code: 'NotADiskImage' }));
  });

  it('rejects a vmdk descriptor for the files it names', () => {
    const text = '# Disk DescriptorFile\nversion=1\nRW 100 FLAT "/etc/passwd" 0\n';
    expect(() => detectFormat(Buffer.from(text))).toThrow(expect.objectContaining({ code: 'ExternalReference' }));
  });

  it('returns a result or an error for any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2048 }), async (bytes) => {
        expect(await refusalOf(() => detectFormat(Buffer.from(bytes), 'x/y'))).toMatch(/^[A-Za-z]+$/);
      }),
    );
  });
});

describe('detectCompression', () => {
  it.each([
    ['gz', withMagic('1f8b08')],
    ['xz', withMagic('fd377a585a00')],
    ['zst', withMagic('28b52ffd')],
    ['zst', withMagic('502a4d1808000000')],
    ['none', withMagic('514649fb')],
    ['none', Buffer.alloc(0)],
    ['none', Buffer.from([0x1f])],
  ])('finds %s', (compression, head) => {
    expect(detectCompression(head)).toBe(compression);
  });
});
