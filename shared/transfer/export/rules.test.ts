import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { combineCrc32 } from './parts.ts';
import { createExtentList } from './volume.ts';
import { ExportFormat } from './format.ts';
import { mostParts, planParts } from './parts.ts';

const gib = 1024 ** 3;

describe('the rules of an export', () => {
  it('combine CRCs to that of the whole', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), fc.uint8Array({ maxLength: 300 }), (first, second) => {
        const whole = crc32(Buffer.concat([first, second]));
        expect(combineCrc32(crc32(first), crc32(second), second.length)).toBe(whole);
      }),
    );
    const zeroes = Buffer.alloc(70_000_000);
    expect(combineCrc32(crc32('x'), crc32(zeroes), zeroes.length)).toBe(crc32(zeroes, crc32('x')));
  });

  it('plan enough parts, and constant memory', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1024 * gib }), (bytes) => {
        const { partBytes, atOnce, buffers } = planParts(bytes);
        expect(partBytes * (mostParts - 1)).toBeGreaterThanOrEqual(bytes);
        expect(partBytes).toBeGreaterThanOrEqual(5 * 1024 * 1024);
        expect(atOnce).toBeGreaterThanOrEqual(1);
        expect(partBytes * (bytes < 300 * gib ? buffers : 1)).toBeLessThanOrEqual(115 * 1024 * 1024);
      }),
    );
  });

  it('join adjacent extents, within the disk', () => {
    const list = createExtentList(1000, 100);
    for (const [start, length] of [
      [0, 1],
      [150, 10],
      [199, 2],
      [450, 10],
      [990, 10],
    ] as const)
      list.add(start, length);
    expect(list.extents()).toEqual([
      { start: 0, end: 300 },
      { start: 400, end: 500 },
      { start: 900, end: 1000 },
    ]);
  });

  it.each([
    [{ format: 'qcow2', compression: 'gz' }, /compression/],
    [{ format: 'raw', compression: 'zlib' }, /compression/],
    [{ format: 'qcow2', compression: 'zlib', level: 12 }, /level/],
  ])('reject %j', (form, fault) => {
    expect(ExportFormat.safeParse(form).error?.message).toMatch(fault);
  });
});
