// Layers of images, however they were changed: the disk that GNU tar finds in them, or a rejection; and manifests of any form.
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { readManifest, selectPlatform } from '#shared/clients/registry/manifest.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { createRegistrySource } from '#shared/transfer/source/registry/create.ts';
import { damaged, damagesOf, withMendedSums } from '#test/support/damage.ts';
import { temporaryDirectory } from '#test/support/directory.ts';
import { noise } from '#test/support/disk.ts';
import { effort, fuzzTimeout } from '#test/support/random.ts';
import { refusalOf } from '#test/support/refusal.ts';
import { eStargz, skippable, zstdChunked } from '#test/support/registry/chunked-layers.ts';
import { tarOf } from '#test/support/registry/images.ts';

const root = temporaryDirectory();
const sum = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
const image = { host: 'registry', repository: 'disk', tag: 'v1' } as never;

/** A registry that has one image, of one layer. */
const registryOf = (layer: Buffer): RegistryClient => {
  const config = Buffer.from('{}');
  const described = (bytes: Buffer) => ({ mediaType: 'm', digest: sum(bytes), size: bytes.length });
  const manifest = { schemaVersion: 2 as const, config: described(config), layers: [described(layer)] };
  return {
    manifest: () => Promise.resolve({ is: 'image', digest: sum(layer), image: manifest }),
    blob: (_: unknown, digest: string, offset: number) => {
      const bytes = (digest === sum(config) ? config : layer).subarray(offset);
      const body = (async function* pieces() {
        for (let at = 0; at < bytes.length; at += 5000) yield Buffer.from(bytes.subarray(at, at + 5000));
      })();
      return Promise.resolve({ status: 206, headers: {}, body });
    },
  } as unknown as RegistryClient;
};

const diskOf = async (layer: Buffer): Promise<Buffer> => {
  const source = createRegistrySource({
    client: registryOf(layer),
    image,
    architecture: 'amd64',
    retries: 0,
    signal: new AbortController().signal,
    onRetry: () => {},
    close: () => Promise.resolve(),
  });
  try {
    await source.probe();
    return Buffer.concat(await Array.fromAsync(source.stream()));
  } finally {
    await source.close();
  }
};

/** Every plain file that GNU tar unpacks into the folder of the disk, whatever errors it reports about other files. */
const disksByTar = (archive: Buffer): readonly Buffer[] => {
  const jail = mkdtempSync(join(root, 'jail-'));
  mkdirSync(join(jail, 'disk'));
  spawnSync('tar', ['-x', '-C', jail, '--no-same-owner', '--no-same-permissions', '--mode=u+rwX'], { input: archive });
  // Names need not be text.
  return readdirSync(join(jail, 'disk'), { encoding: 'buffer' })
    .map((name) => Buffer.concat([Buffer.from(join(jail, 'disk/')), name]))
    .filter((path) => lstatSync(path).isFile())
    .map((path) => readFileSync(path));
};

const layerIn = (format: string, ...options: readonly string[]): Buffer => {
  const source = mkdtempSync(join(root, 'source-'));
  for (const folder of ['etc', 'disk']) mkdirSync(join(source, folder));
  writeFileSync(join(source, 'etc/motd'), 'hello');
  linkSync(join(source, 'etc/motd'), join(source, 'etc/again'));
  symlinkSync('motd', join(source, 'etc/link'));
  // A long name is stored next to its header.
  const isShort = format === 'ustar' || options.length > 0;
  const name = isShort ? 'disk.img' : `${'long-'.repeat(25)}.img`;
  writeFileSync(join(source, 'disk', name), noise('disk', 3000));
  return execFileSync('tar', ['-c', `--format=${format}`, ...options, '-C', source, 'etc', 'disk']);
};

describe('a layer that can be read in parts', () => {
  const disk = noise('in parts', 40_000);
  const files = [
    { name: 'disk/', type: '5' },
    { name: 'disk/disk.img', content: disk },
    { name: 'etc/note', content: noise('note', 100) },
  ];
  it.each([
    ['eStargz', eStargz],
    ['zstd:chunked', zstdChunked],
    [
      'of zstd, which begins with a frame to be skipped',
      (all: typeof files) => Buffer.concat([skippable(Buffer.alloc(12)), zstdChunked(all)]),
    ],
  ])('%s, becomes the disk', async (_, pack) => {
    const layer = pack(files);
    expect((await diskOf(layer)).equals(disk)).toBe(true);
    const cut = layer.subarray(0, Math.floor(layer.length / 2));
    await expect(diskOf(cut)).rejects.toThrow(/ends too early/);
  });

  it.each([
    ['gzip', eStargz(files), ['-tz']],
    ['zstd', zstdChunked(files), ['-t', '--zstd']],
  ])('of our tests is an archive to tar with %s', (_, layer, options) => {
    const { stdout, status } = spawnSync('tar', [...options, '-f', '-'], { input: layer });
    expect(stdout.toString()).toContain('disk/disk.img');
    expect(status).toBe(0);
  });
});

describe('a layer', () => {
  it.each(['gnu', 'pax', 'ustar'])(
    'in the format %s becomes the disk that GNU tar finds in it, or is rejected, however it was changed',
    async (format) => {
      const layer = layerIn(format);
      const damage = fc.array(damagesOf([[0, layer.length]]), { maxLength: 2 });
      const packing = fc.constantFrom((bytes: Buffer) => bytes, gzipSync, zstdCompressSync);
      const verdicts: Record<string, number> = {};
      const check = async (changed: Buffer, pack: (bytes: Buffer) => Buffer): Promise<void> => {
        let disk: Buffer | undefined;
        let verdict = await refusalOf(async () => (disk = await diskOf(pack(changed))));
        if (disk !== undefined) {
          const [found, ...others] = disksByTar(changed);
          verdict = found !== undefined && others.length === 0 && disk.equals(found) ? 'same' : 'different';
        }
        verdicts[verdict] = (verdicts[verdict] ?? 0) + 1;
        expect(verdict).toMatch(/^(same|ImageCorrupt|ImageTruncated|UnsupportedFormat|NotADiskImage)$/);
      };
      await fc.assert(
        fc.asyncProperty(damage, fc.nat(3), packing, async (changes, mended, pack) => {
          const changed = damaged(layer, 'BE', changes);
          await check(mended === 0 ? changed : withMendedSums(changed), pack as (bytes: Buffer) => Buffer);
        }),
        { numRuns: 15 * effort },
      );
      expect(verdicts['same']).toBeGreaterThan(0);
      console.info(`layer, ${format}, damaged:`, JSON.stringify(verdicts));
    },
    fuzzTimeout,
  );

  const disk = { name: 'disk/a.img', content: Buffer.from('one') };
  /** An entry with a modified type or size. */
  const edited = (archive: Buffer, type: string, size?: number): Buffer => {
    const copy = Buffer.from(archive);
    copy.write(type, 156, 'latin1');
    if (size !== undefined) copy.write(size.toString(8).padStart(11, '0'), 124, 'latin1');
    return withMendedSums(copy);
  };
  const other = { name: 'etc/other', content: Buffer.alloc(0) };
  const ending = tarOf([]);

  it.each<[what: string, layer: Buffer]>([
    ['a link states a size', edited(tarOf([other, disk]), '1', 512)],
    ['a directory states a size', edited(tarOf([{ name: 'etc', type: '5' }, disk]), '5', 512)],
    ['another archive follows', Buffer.concat([tarOf([disk]), tarOf([{ ...disk, content: Buffer.from('two') }])])],
  ])('with %s has the disk that GNU tar finds', async (_what, layer) => {
    expect(String(await diskOf(layer))).toBe('one');
    expect(disksByTar(layer).map(String)).toEqual(['one']);
  });

  const record = (text: string): Buffer => Buffer.from(`${text.length + 4} ${text}\n`);
  it.each<[what: string, layer: Buffer]>([
    ['continues after one empty block', Buffer.concat([Buffer.alloc(512), tarOf([disk])])],
    ['names all its entries at once', edited(tarOf([{ name: 'g', content: record('path=disk/b.img') }, disk]), 'g')],
    ['sizes all its entries at once', edited(tarOf([{ name: 'g', content: record('size=000001') }, disk]), 'g')],
    ['has an attribute without a value', edited(tarOf([{ name: 'x', content: record('pathdisk/b.img') }, disk]), 'x')],
    ['has attributes on one line', edited(tarOf([{ name: 'x', content: Buffer.from('9 path=ab') }, disk]), 'x')],
  ])('that %s is rejected', async (_what, layer) => {
    await expect(diskOf(layer)).rejects.toMatchObject({ code: 'ImageCorrupt' });
  });

  it.each(['gnu', 'pax'])(
    'of an incremental archive in the format %s has the disk that GNU tar finds',
    async (format) => {
      const layer = layerIn(format, `--listed-incremental=${join(root, `${format}-snapshot`)}`);
      expect([await diskOf(layer)]).toEqual(disksByTar(layer));
    },
  );

  it('without content after its end marker has no disk', async () => {
    await expect(diskOf(ending)).rejects.toMatchObject({ code: 'NotADiskImage' });
  });

  it('that contains its disk twice is rejected as ambiguous', async () => {
    const twice = tarOf(['one', 'two'].map((text) => ({ name: 'disk/a.img', content: Buffer.from(text) })));
    await expect(diskOf(twice)).rejects.toMatchObject({
      code: 'NotADiskImage',
      message: expect.stringContaining('/disk/a.img twice'),
    });
  });
});

describe('a manifest', () => {
  const digest = sum(Buffer.from('x'));
  const descriptor = { mediaType: 'm', digest, size: 1 };
  const whole = {
    schemaVersion: 2,
    mediaType: 'm',
    config: descriptor,
    layers: [descriptor, descriptor],
    manifests: [{ ...descriptor, platform: { os: 'linux', architecture: 'amd64' } }],
  };
  const path = fc.array(fc.oneof(fc.constantFrom(...Object.keys(whole), ...Object.keys(descriptor)), fc.nat(2)));
  const change = fc.tuple(path, fc.jsonValue());

  const changed = (value: unknown, [key, ...rest]: readonly (string | number)[], to: unknown): unknown => {
    if (key === undefined) return to;
    if (Array.isArray(value)) return value.map((item, index) => (index === key ? changed(item, rest, to) : item));
    if (typeof value !== 'object' || value === null) return value;
    return { ...value, [key]: changed((value as Record<string, unknown>)[key], rest, to) };
  };

  it('of any form is parsed to a valid request, or rejected with a message', () => {
    const document = fc
      .tuple(fc.constantFrom('index', 'image'), fc.array(change, { maxLength: 3 }), fc.nat(20), fc.string())
      .map(([is, changes, cut, text]) => {
        const { manifests, config, layers, ...rest } = whole;
        const begun: unknown = is === 'index' ? { ...rest, manifests } : { ...rest, config, layers };
        const json = JSON.stringify(changes.reduce((value, [at, to]) => changed(value, at, to), begun)) ?? '';
        return Buffer.from(cut === 0 ? json.slice(0, json.length / 2) + text : json);
      });
    const isAskable = ({ digest: name, size }: { digest: string; size: number }): boolean =>
      /^sha(256:[0-9a-f]{64}|512:[0-9a-f]{128})$/.test(name) && Number.isSafeInteger(size) && size >= 0;
    const wordsOf = (bytes: Buffer): string => {
      try {
        const read = readManifest(bytes, undefined, 'x');
        const asked =
          read.is === 'image'
            ? [read.image.config, ...read.image.layers]
            : [selectPlatform(read.entries, 'amd64', 'x')];
        return asked.every(isAskable) ? 'askable' : JSON.stringify(asked);
      } catch (error) {
        if (!(error instanceof RegistryFailure)) throw error;
        return error.message;
      }
    };
    fc.assert(
      fc.property(document, (bytes) => {
        expect(wordsOf(bytes)).toMatch(/^(askable|the manifest of x is not JSON|x (has no image for|is neither) .*)$/);
      }),
      { numRuns: 100 * effort },
    );
  });
});
