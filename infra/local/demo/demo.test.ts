import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { bootDisk, bootLine, buildBootSector, writeBootDisk } from './boot-disk.ts';
import { parseRange, startFileServer } from '#infra/local/demo/file-server.ts';

const hasEmulator = await promisify(execFile)('qemu-system-x86_64', ['--version']).then(
  () => true,
  () => false,
);

describe('the demo disk', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'bullion-demo-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  it('is sparse, starts with a boot sector, and is reproducible', async () => {
    const [one, two] = [join(dir, 'one.raw'), join(dir, 'two.raw')];
    for (const path of [one, two]) await writeBootDisk(path, { bytes: 64 * 2 ** 20, dataBytes: 2 * 2 ** 20 });
    const facts = await stat(one);
    expect(facts.size).toBe(64 * 2 ** 20);
    expect(facts.blocks * 512).toBeLessThan(4 * 2 ** 20);
    const content = await readFile(one);
    expect(content.readUInt16BE(510)).toBe(0x55aa);
    expect(content.equals(await readFile(two))).toBe(true);
  });

  it('rejects a line that is too long', () => {
    expect(() => buildBootSector('x'.repeat(400), 1)).toThrow('does not fit');
  });

  it.skipIf(!hasEmulator)('boots and prints its line', async () => {
    const path = join(dir, 'boot.raw');
    await writeBootDisk(path, { bytes: 16 * 2 ** 20, dataBytes: 2 ** 20 });
    expect(await bootDisk(path, bootLine, 100)).toMatchObject({ kind: 'matched', line: bootLine });
  });
});

describe('the file server', () => {
  it.each([
    ['bytes=0-9', { start: 0, end: 9 }],
    ['bytes=90-', { start: 90, end: 99 }],
    ['bytes=-10', { start: 90, end: 99 }],
    ['bytes=95-200', { start: 95, end: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=0-1,5-6', undefined],
    ['lines=0-9', undefined],
    [undefined, undefined],
  ])('reads the range %s', (header, expected) => {
    expect(parseRange(header, 100)).toEqual(expected);
  });

  it('serves whole files, ranges, changed files and unknown ones', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'bullion-demo-'));
    const path = join(dir, 'file');
    await writeFile(path, '0123456789');
    const server = await startFileServer();
    const url = server.offer('disk one.img', path);
    const get = async (headers: Record<string, string> = {}, address = url) => {
      const response = await fetch(address, { headers });
      return [response.status, await response.text()];
    };
    const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? '';
    expect(await get()).toEqual([200, '0123456789']);
    expect(await get({ range: 'bytes=2-4', 'if-range': etag })).toEqual([206, '234']);
    expect(await get({ range: 'bytes=2-4', 'if-range': '"old"' })).toEqual([200, '0123456789']);
    expect((await get({ range: 'bytes=20-' }))[0]).toBe(416);
    expect((await get({}, `${server.url}/other`))[0]).toBe(404);
    await server.close();
    await rm(dir, { recursive: true });
  });
});
