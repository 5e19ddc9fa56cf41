import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bufferReader } from '#shared/transfer/format/disk.ts';
import { parseQcow2Header, readQcow2Header } from '#shared/transfer/format/qcow2/header.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { type Qcow2Fields, qcow2Header } from '#test/support/qcow2.ts';

describe('parseQcow2Header', () => {
  it('parses version 3', () => {
    expect(parseQcow2Header(qcow2Header({ size: 12_345n * 512n }))).toMatchObject({
      version: 3,
      clusterSize: 65_536,
      virtualSize: 12_345 * 512,
      l1Entries: 2,
      l1Offset: 0x30000,
      compression: 'zlib',
      hasExtendedL2: false,
    });
  });

  it('parses version 2, whatever follows its fields', () => {
    const bytes = qcow2Header({ version: 2 });
    bytes.fill(0xff, 72);
    expect(parseQcow2Header(bytes)).toMatchObject({ version: 2, compression: 'zlib', hasExtendedL2: false });
  });

  it('parses zstd compression and extended L2 entries', () => {
    expect(parseQcow2Header(qcow2Header({ incompatible: 8n, compression: 1 })).compression).toBe('zstd');
    expect(parseQcow2Header(qcow2Header({ incompatible: 16n, l1Entries: 4 })).hasExtendedL2).toBe(true);
  });

  it.each<[string, Qcow2Fields, string, RegExp]>([
    ['a backing file', { backingOffset: 200n, backingLength: 10 }, 'ExternalReference', /backing file/],
    [
      'a backing file far away',
      { backingOffset: 2n ** 40n, backingLength: 2 ** 31 },
      'ExternalReference',
      /backing file/,
    ],
    ['a data file', { incompatible: 4n }, 'ExternalReference', /data file/],
    ['AES', { encryption: 1 }, 'ImageEncrypted', /AES/],
    ['LUKS', { encryption: 2 }, 'ImageEncrypted', /LUKS/],
    ['the corrupt flag', { incompatible: 2n }, 'ImageCorrupt', /corrupt/],
    ['the dirty flag', { incompatible: 1n }, 'ImageCorrupt', /dirty/],
    ['an unknown feature', { incompatible: 2n ** 40n }, 'UnsupportedFormat', /10000000000/],
    ['another compression', { incompatible: 8n, compression: 7 }, 'UnsupportedFormat', /compression type 7/],
    ['a compression without its flag', { compression: 1 }, 'ImageCorrupt', /compression/],
    ['version 1', { version: 1 }, 'UnsupportedFormat', /version 1/],
    ['version 4', { version: 4 }, 'UnsupportedFormat', /version 4/],
    ['tiny clusters', { clusterBits: 8 }, 'ImageCorrupt', /clusters/],
    ['huge clusters', { clusterBits: 22 }, 'ImageCorrupt', /clusters/],
    ['a huge L1 table', { l1Entries: 2 ** 31 }, 'ImageCorrupt', /L1/],
    ['a short L1 table', { l1Entries: 1 }, 'ImageCorrupt', /L1/],
    ['an L1 table between clusters', { l1Offset: 0x30200n }, 'ImageCorrupt', /aligned/],
    ['a missing L1 table', { l1Offset: 0n }, 'ImageCorrupt', /no L1/],
    ['a huge refcount table', { refcountClusters: 2 ** 20 }, 'ImageCorrupt', /refcount table/],
    ['an absurd refcount width', { refcountOrder: 7 }, 'ImageCorrupt', /refcount order/],
    ['half a sector', { size: 1000n }, 'ImageCorrupt', /whole number of sectors/],
    ['an absurd size', { size: 2n ** 63n, l1Entries: 2 ** 22 }, 'ImageCorrupt', /virtual size/],
    ['an absurd L1 offset', { l1Offset: 2n ** 62n }, 'ImageCorrupt', /L1 offset/],
    ['too many snapshots', { snapshots: 2 ** 20 }, 'ImageCorrupt', /snapshots/],
    ['a header length of nothing', { headerLength: 0 }, 'ImageCorrupt', /header/],
    ['an odd header length', { headerLength: 107 }, 'ImageCorrupt', /header/],
  ])('rejects %s', (_, fields, code, words) => {
    const parse = () => parseQcow2Header(qcow2Header(fields));
    expect(parse).toThrow(expect.objectContaining({ code }));
    expect(parse).toThrow(words);
  });

  it.each([0, 4, 71, 103])('rejects a file of %i bytes as truncated', (length) => {
    expect(() => parseQcow2Header(qcow2Header().subarray(0, length))).toThrow(
      expect.objectContaining({ code: 'ImageTruncated' }),
    );
  });

  it('quotes the backing file without control characters', () => {
    const bytes = qcow2Header({ backingOffset: 512n, backingLength: 16 });
    bytes.write('/etc/\u0007passwd', 512, 'latin1');
    expect(() => parseQcow2Header(bytes)).toThrow('/etc/?passwd');
  });

  it('returns a result or an error for any bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 0, maxLength: 200 }), fc.boolean(), async (bytes, hasMagic) => {
        const head = Buffer.concat([qcow2Header().subarray(0, hasMagic ? 8 : 0), Buffer.from(bytes)]);
        expect(await refusalOf(() => parseQcow2Header(head))).toMatch(/^[A-Za-z]+$/);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('readQcow2Header', () => {
  it.each<[string, Qcow2Fields]>([
    ['L1 table', { l1Offset: 0x100000n }],
    ['refcount table', { refcountOffset: 0x100000n }],
  ])('reports a %s beyond the end of the file', async (_, fields) => {
    const reader = bufferReader(qcow2Header(fields), 0x40000);
    await expect(readQcow2Header(reader)).rejects.toMatchObject({ code: 'ImageTruncated' });
  });

  it('cannot check tables against an unknown size', async () => {
    await expect(readQcow2Header(bufferReader(qcow2Header({ l1Offset: 0x100000n })))).resolves.toMatchObject({
      version: 3,
    });
  });
});
