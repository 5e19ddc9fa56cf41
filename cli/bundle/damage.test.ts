// Bundles that were changed on their way: each is refused with what is wrong and where, before anything is made.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openArchive } from '#cli/bundle/archive.ts';
import { checkBundle, readBundle } from '#cli/bundle/check.ts';
import {
  type BundleDocument,
  type Listed,
  blobName,
  documentArtifact,
  indexBytes,
  indexFile,
  layoutBytes,
  layoutFile,
  manifestType,
  refName,
} from '#cli/bundle/layout.ts';
import { createBundleWriter, partialOf, toWriteRefusal } from '#cli/bundle/writer.ts';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import { configType, layerType, manifestOf } from '#shared/transfer/export/image-documents.ts';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { noise } from '#test/support/disk.ts';
import { type TarFile, sha256, tarOf } from '#test/support/registry/images.ts';

const disk = noise('disk', 256 * 1024);
const { head, tail } = layerAround('disk.qcow2', disk.length);
const plain = Buffer.concat([head, disk, tail]);
const config = Buffer.from('{"architecture":"amd64","os":"linux"}');

/** What one test changes. */
interface Changes {
  readonly layer?: Buffer;
  readonly layerLine?: object;
  readonly image?: object;
  readonly document?: object;
  readonly line?: object;
  readonly lines?: readonly Listed[];
}

interface Parts {
  readonly blobs: readonly Buffer[];
  readonly index: Buffer;
  readonly layer: Buffer;
  readonly manifest: Buffer;
}

const partsOf = ({ layer = plain, layerLine, image, document, line, lines = [] }: Changes): Parts => {
  const described = { mediaType: layerType, digest: digestOf(layer), size: layer.length, ...layerLine };
  const manifest = manifestOf({
    config: { mediaType: configType, digest: digestOf(config), size: config.length },
    layers: [described],
  });
  const bundled: BundleDocument = {
    version: 1,
    images: [
      {
        name: 'jammy',
        digest: digestOf(manifest),
        tags: ['latest'],
        from: 'image jammy',
        dataSources: [],
        leftOut: [],
        disk: { layer: described.digest, file: 'disk/disk.qcow2', size: disk.length, sha256: sha256(disk).slice(7) },
        ...image,
      },
    ],
    objects: [],
    ...document,
  };
  const artifact = documentArtifact(bundled);
  const listed: Listed = {
    mediaType: manifestType,
    digest: digestOf(manifest),
    size: manifest.length,
    annotations: { [refName]: 'jammy:latest' },
    ...line,
  };
  return {
    blobs: [layer, config, manifest, ...artifact.blobs],
    index: indexBytes([artifact.listed, listed, ...lines]),
    layer,
    manifest,
  };
};

const filesOf = ({ blobs, index }: Parts): readonly TarFile[] => [
  ...blobs.map((content) => ({ name: blobName(digestOf(content)), content })),
  { name: layoutFile, content: layoutBytes },
  { name: indexFile, content: index },
];

const good = partsOf({});
const archive = tarOf(filesOf(good));
const withFiles = (...more: readonly TarFile[]): Buffer => tarOf([...filesOf(good), ...more]);
const flipped = (bytes: Buffer, at: number): Buffer => {
  const changed = Buffer.from(bytes);
  changed[at] = (changed[at] ?? 0) ^ 1;
  return changed;
};
const without = (name: string): Buffer => tarOf(filesOf(good).filter((file) => file.name !== name));
const made = (changes: Changes): Buffer => tarOf(filesOf(partsOf(changes)));
const urls = ['https://elsewhere.example/layer'];
const wide = Buffer.concat([head, disk, Buffer.alloc(70 * 1024 * 1024)]);

describe('a bundle', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'bullion-damage-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const check = async (bytes: Buffer): Promise<void> => {
    const path = join(dir, 'bundle.tar');
    writeFileSync(path, bytes);
    const opened = await openArchive(path);
    try {
      await checkBundle(await readBundle(opened), { signal: new AbortController().signal, onProgress: () => {} });
    } finally {
      await opened.close();
    }
  };

  it('that nobody changed is good', async () => {
    await expect(check(archive)).resolves.toBeUndefined();
    await expect(check(made({ layer: gzipSync(plain) }))).resolves.toBeUndefined();
    const name = `ubuntu18.04.${'a'.repeat(241)}`;
    await expect(check(made({ image: { name, dataSources: [name] } }))).resolves.toBeUndefined();
  });

  it.each<[string, Buffer, RegExp]>([
    ['a changed byte of a disk', flipped(archive, 200_000), /blobs\/sha256\/[0-9a-f]{64}, the disk of jammy: .*digest/],
    [
      'a changed byte of a document',
      flipped(archive, archive.indexOf(config) + 3),
      /damaged in blobs\/sha256\/\S+: its 37 bytes/,
    ],
    [
      'a changed byte of a manifest',
      flipped(archive, archive.indexOf(good.manifest) + 5),
      /is damaged in blobs\S+: its \d+ bytes have digest sha256:/,
    ],
    ['a missing blob', without(blobName(digestOf(good.layer))), /lacks sha256:\S+, which manifest sha256:\S+ names/],
    ['a missing manifest', without(blobName(digestOf(good.manifest))), /lacks sha256:\S+, which index.json names/],
    ['a missing index', without(indexFile), /it has no index\.json/],
    ['a file that was cut', archive.subarray(0, 100_000), /the file ends before: it was cut/],
    ['an end that was cut', archive.subarray(0, archive.length - 1024), /ends before its end marker/],
    ['a name that leads out', withFiles({ name: '../../etc/cron.d/x', content: config }), /leads out of it/],
    ['an absolute name', withFiles({ name: '/etc/passwd', content: config }), /"etc\/passwd" does not belong/],
    ['a symbolic link', withFiles({ name: 'blobs/x', type: '2', link: '/etc' }), /is a symbolic link/],
    ['a hard link', withFiles({ name: indexFile, type: '1', link: 'x' }), /is a hard link/],
    ['a blob twice', withFiles({ name: blobName(digestOf(config)), content: disk }), /is there twice/],
    ['a blob that nothing names', withFiles({ name: blobName(digestOf(disk)), content: disk }), /which nothing names/],
    ['a manifest that points outside', made({ layerLine: { urls } }), /points outside: manifest \S+ fetches/],
    ['a line that points outside', made({ line: { urls } }), /points outside: index\.json fetches/],
    [
      'another size of a layer',
      made({ layerLine: { size: 5 } }),
      /has \d+ bytes in blobs\/sha256\/\S+, and 5 by manifest/,
    ],
    ['another image than its document says', made({ image: { digest: sha256(disk) } }), /has no image sha256:/],
    [
      'another disk than its document says',
      made({
        image: { disk: { layer: digestOf(plain), file: 'disk/disk.qcow2', size: disk.length, sha256: '0'.repeat(64) } },
      }),
      /is another one than its document says/,
    ],
    ['a layer that unpacks to more', made({ layer: gzipSync(wide) }), /unpacks to more than the \d+ bytes of its disk/],
    [
      'a disk of another size',
      made({ layer: gzipSync(Buffer.concat([layerAround('disk.qcow2', 2 ** 40).head, disk])) }),
      /has 1099511627776 bytes, and 262144 by the document/,
    ],
    ['a name of an image that is a path', made({ image: { name: '../x' } }), /images\.0\.name/],
    ['a name with an empty part', made({ image: { name: 'a..b' } }), /images\.0\.name/],
    ['a name with control characters', made({ image: { from: '\u001B[2J' } }), /images\.0\.from/],
    [
      'an object of another kind',
      made({ document: { objects: [{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'x' }, spec: {} }] } }),
      /objects\.0\.kind/,
    ],
    [
      'an object with an owner',
      made({
        document: {
          objects: [
            {
              apiVersion: 'bullion.dev/v1alpha1',
              kind: 'GoldenImagePolicy',
              metadata: { name: 'x', ownerReferences: [] },
              spec: {},
            },
          ],
        },
      }),
      /objects\.0\.metadata/,
    ],
    ['a document of a later version', made({ document: { version: 2 } }), /version/],
    ['a file that is no archive', noise('x', 4096), /is damaged, or is no bundle/],
    ['an empty file', Buffer.alloc(0), /it was cut/],
    [
      'an image of another tool',
      tarOf([
        { name: layoutFile, content: layoutBytes },
        { name: indexFile, content: indexBytes([]) },
      ]),
      /made by something else/,
    ],
  ])('with %s is refused', async (_, bytes, words) => {
    await expect(check(bytes)).rejects.toThrow(words);
    await expect(check(bytes)).rejects.toThrow(/bundle\.tar .*: nothing was taken from it/s);
  });

  it.each([0, 1, 700, 131_072, 262_900, plain.length + 700])(
    'is written the same after a cut at byte %d',
    async (cut) => {
      const path = join(dir, `cut-${cut}.tar`);
      const write = async (target: string): Promise<Buffer> => {
        const writer = await createBundleWriter(target);
        async function* from(start: number) {
          yield plain.subarray(start);
        }
        await writer.add({ digest: digestOf(plain), size: plain.length, read: from });
        await writer.addBytes(config);
        await writer.finish(Buffer.from('{}'));
        await writer.close();
        return readFileSync(target);
      };
      const whole = await write(join(dir, 'whole.tar'));
      writeFileSync(partialOf(path), whole.subarray(0, cut));
      expect((await write(path)).equals(whole)).toBe(true);
      // What is there of another save is of no use, and does no harm.
      writeFileSync(partialOf(path), noise('else', cut));
      expect((await write(path)).equals(whole)).toBe(true);
    },
  );

  it('is written by one at a time, and again after one that was killed', async () => {
    const path = join(dir, 'shared.tar');
    const first = await createBundleWriter(path);
    await expect(createBundleWriter(path)).rejects.toThrow(`${path} is being written by process ${process.pid}: wait`);
    await first.close();
    const { pid } = spawnSync('true');
    writeFileSync(`${partialOf(path)}.lock`, String(pid));
    await (await createBundleWriter(path)).close();
    expect(existsSync(`${partialOf(path)}.lock`)).toBe(false);
  });

  it('that cannot be written says so', async () => {
    const path = join(dir, 'nowhere', 'bundle.tar');
    await expect(createBundleWriter(path)).rejects.toThrow(`${path} cannot be written: ENOENT`);
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), {
      code: 'ENOSPC',
      syscall: 'write',
    });
    expect(toWriteRefusal(path, full)).toMatchObject({
      code: 'InvalidInput',
      message: expect.stringMatching(/ENOSPC.*make room/),
    });
    const other = new TypeError('a bug');
    expect(toWriteRefusal(path, other)).toBe(other);
  });
});
