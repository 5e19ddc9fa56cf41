import { serve, sha256, transfer } from '#test/support/transfer.ts';
import { convertQcow2 } from '#test/support/qcow2-plans.ts';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { type OriginRequest, fileAnswer } from '#test/support/origin.ts';
import { buildQcow2 } from '#test/support/qcow2-image.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { hasTools } from '#test/support/tools.ts';

const root = temporaryDirectory();
const mib = 1024 * 1024;

describe('a qcow2 read in ranges', () => {
  const clusterBits = 16;
  const plan = {
    version: 3 as const,
    clusterBits,
    compression: 'zlib' as const,
    hasExtendedL2: false,
    clusters: Array.from(
      { length: 220 },
      (_, index) => (['compressed', 'plain', 'hole', 'compressed', 'zero'] as const)[index % 5] ?? 'hole',
    ),
    shortSectors: 3,
    order: [3, 1, 4, 1, 5, 9, 2, 6],
    gap: 100,
  };
  const { file } = buildQcow2(plan);
  const virtualSize = 220 * 2 ** clusterBits - 3 * 512;
  const isData = ({ headers }: OriginRequest) =>
    Number(/bytes=(\d+)/.exec(headers.range ?? '')?.[1] ?? -1) % (4 * mib) === 0 && headers['if-range'] !== undefined;
  const disk = (): Buffer => convertQcow2(file) ?? Buffer.alloc(0);
  describe.skipIf(!hasTools('qemu-img'))('compared with qemu-img', () => {
    it('is the same disk, however often the connection is cut', async () => {
      const observed = new Set<string>();
      const { report, target, leftovers } = await transfer((request) => {
        const answer = fileAnswer(request, file);
        const range = request.headers.range ?? '';
        if (request.index === 0 || observed.has(range)) return answer;
        observed.add(range);
        return { ...answer, cutAfter: 5000 };
      });
      expect(report).toMatchObject({
        outcome: 'succeeded',
        inspection: { virtualSize },
        digests: { sha256: sha256(file) },
      });
      expect(readFileSync(target).equals(disk())).toBe(true);
      expect(leftovers).toEqual([]);
    });

    it('is read sequentially once the server stops supporting ranges', async () => {
      let isBroken = false;
      const { report, target } = await transfer((request) => {
        isBroken ||= isData(request);
        return fileAnswer(request, file, { ranges: !isBroken });
      });
      expect(report.outcome).toBe('succeeded');
      expect(readFileSync(target).equals(disk())).toBe(true);
    });

    it('starts over when the object changes meanwhile', async () => {
      const other = buildQcow2({ ...plan, order: [1], gap: 0 }).file;
      let isChanged = false;
      const { report, target } = await transfer((request) => {
        const answer = isChanged ? fileAnswer(request, other, { etag: '"v2"' }) : fileAnswer(request, file);
        isChanged ||= isData(request);
        return answer;
      });
      expect(report).toMatchObject({ outcome: 'succeeded', digests: { sha256: sha256(other) } });
      expect(readFileSync(target).equals(disk())).toBe(true);
    });
  });

  it('is rejected when a cluster cannot be decompressed, and leaves nothing', async () => {
    const broken = Buffer.from(file);
    broken.fill(0xff, 3 * mib, 3 * mib + 40_000);
    const { report, target, leftovers } = await transfer(serve(broken));
    expect(report).toMatchObject({
      outcome: 'failed',
      reason: 'ImageCorrupt',
      message: expect.stringContaining('compressed cluster'),
    });
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });

  it('is rejected when its checksum is wrong, and leaves nothing', async () => {
    const { report, target, leftovers } = await transfer(serve(file), {
      checksum: { algorithm: 'sha256', hex: '0'.repeat(64) },
    });
    expect(report).toMatchObject({ outcome: 'failed', reason: 'ChecksumMismatch' });
    expect(existsSync(target)).toBe(false);
    expect(leftovers).toEqual([]);
  });

  it('ends within a second when it is cancelled', async () => {
    const controller = new AbortController();
    let cancelledAt = 0;
    const { report, leftovers } = await transfer(
      (request) => {
        if (isData(request)) {
          setTimeout(() => {
            cancelledAt ||= Date.now();
            controller.abort();
          }, 200);
        }
        return { ...fileAnswer(request, file), ...(isData(request) ? { pace: 100 } : {}) };
      },
      { signal: controller.signal },
    );
    expect(report).toMatchObject({ reason: 'Cancelled' });
    expect(Date.now() - cancelledAt).toBeLessThan(5000);
    expect(leftovers).toEqual([]);
  });

  it('fails when the target cannot be written', async () => {
    const { report } = await transfer(serve(file), { path: join(root, 'nowhere', 'disk.img') });
    expect(report).toMatchObject({ reason: 'TargetFailed' });
  });
});
