import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { answerFor, type FileRequest, parseRange } from './server.ts';

const file = { size: 1000, hasRanges: true, etag: '"a"', contentType: 'application/x-qemu-disk' };
const packed = { ...file, size: undefined, hasRanges: false };

describe('a requested file', () => {
  it.each<[what: string, asked: FileRequest, answer: readonly (number | string | undefined)[]]>([
    ['whole', {}, [200, undefined, '1000']],
    ['from a place', { range: 'bytes=400-' }, [206, 'bytes 400-999/1000', '600']],
    ['between two places', { range: 'bytes=0-0' }, [206, 'bytes 0-0/1000', '1']],
    ['beyond its end', { range: 'bytes=900-5000' }, [206, 'bytes 900-999/1000', '100']],
    ['at its end', { range: 'bytes=-10' }, [206, 'bytes 990-999/1000', '10']],
    ['more than its end', { range: 'bytes=-5000' }, [206, 'bytes 0-999/1000', '1000']],
    ['behind its end', { range: 'bytes=1000-' }, [416, 'bytes */1000', undefined]],
    ['nothing of its end', { range: 'bytes=-0' }, [416, 'bytes */1000', undefined]],
    ['in several ranges', { range: 'bytes=0-1,5-6' }, [200, undefined, '1000']],
    ['backwards', { range: 'bytes=5-1' }, [200, undefined, '1000']],
    ['in other units', { range: 'lines=5-10' }, [200, undefined, '1000']],
    ['further on, the same', { range: 'bytes=5-', ifRange: '"a"' }, [206, 'bytes 5-999/1000', '995']],
    ['further on, another one', { range: 'bytes=5-', ifRange: '"b"' }, [200, undefined, '1000']],
    ['further on, by time', { range: 'bytes=5-', ifRange: 'Sat, 28 Nov 2026 07:00:00 GMT' }, [200, undefined, '1000']],
    ['if it is another', { ifNoneMatch: '"b", W/"a"' }, [304, undefined, undefined]],
    ['if it is the same', { ifMatch: '"b"' }, [412, undefined, undefined]],
    ['if it is there', { ifMatch: '*', range: 'bytes=1-2' }, [206, 'bytes 1-2/1000', '2']],
  ])('%s', (_what, asked, answer) => {
    const { status: answered, headers } = answerFor(file, asked);
    expect([answered, headers['content-range'], headers['content-length']]).toEqual([...answer]);
    expect(headers['etag']).toBe('"a"');
  });

  it('of unknown size is sent completely, and announces no support for ranges', () => {
    const { status, headers, range } = answerFor(packed, { range: 'bytes=5-' });
    expect({ status, range, accepts: headers['accept-ranges'] }).toEqual({
      status: 200,
      range: undefined,
      accepts: 'none',
    });
    expect(headers).not.toHaveProperty('content-length');
  });

  it('never sends bytes beyond its end', () => {
    const number = fc.option(fc.nat(2000), { nil: undefined });
    const ranges = fc.tuple(number, number, fc.integer({ min: 1, max: 1500 }));
    fc.assert(
      fc.property(ranges, ([from, to, size]) => {
        const range = parseRange(`bytes=${from ?? ''}-${to ?? ''}`, size);
        if (range === undefined || range === 'none') return;
        expect(range.first).toBeGreaterThanOrEqual(0);
        expect(range.last).toBeGreaterThanOrEqual(range.first);
        expect(range.last).toBeLessThan(size);
      }),
    );
  });
});
