// Loads into a bucket that were cut, and that meet others: the object is the disk of the bundle at hand, and SHA256SUMS lists what every load brought.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openArchive } from '#cli/bundle/archive.ts';
import { readBundle } from '#cli/bundle/check.ts';
import {
  type BundledImage,
  configType,
  documentArtifact,
  indexBytes,
  manifestType,
  refName,
} from '#cli/bundle/layout.ts';
import { openState } from '#cli/bundle/state.ts';
import { writeDisks } from '#cli/bundle/to-bucket.ts';
import { createBundleWriter } from '#cli/bundle/writer.ts';
import { digestOf } from '#shared/clients/registry/manifest.ts';
import type { S3Client } from '#shared/clients/s3/client.ts';
import { S3Failure } from '#shared/clients/s3/errors.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import { layerAround } from '#shared/transfer/export/disk-layer.ts';
import { layerType, manifestOf } from '#shared/transfer/export/image-documents.ts';
import { noise } from '#test/support/disk.ts';
import { sha256 } from '#test/support/registry/images.ts';

const place = { bucket: 'b', prefix: 'golden/' };
let dir: string;
let store: ReturnType<typeof createStore>;
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'bullion-to-bucket-'));
  store = createStore();
});
afterEach(() => rm(dir, { recursive: true, force: true }));

/** A store that puts together whatever parts it has, as stores do. */
const createStore = () => {
  const objects = new Map<string, Buffer>();
  const uploads = new Map<string, { readonly key: string; readonly parts: Map<string, Buffer> }>();
  const faults: Error[] = [];
  const absent = (): never => {
    throw new S3Failure('ObjectNotFound', 'not there');
  };
  const notAsked = (): never => {
    throw new TypeError('not asked for here');
  };
  let begun = 0;
  const s3: S3Client = {
    head: async ({ key }) => ({ size: (objects.get(key) ?? absent()).length }) as never,
    get: async ({ key }) => {
      const body = objects.get(key) ?? absent();
      return {
        body: (async function* bytes() {
          yield body;
        })(),
      } as never;
    },
    put: async ({ key, body }) => {
      objects.set(key, Buffer.from(body));
      return undefined;
    },
    remove: notAsked,
    list: notAsked,
    multipart: {
      begin: async ({ key }) => {
        begun += 1;
        uploads.set(`upload-${begun}`, { key, parts: new Map() });
        return `upload-${begun}`;
      },
      putPart: async ({ uploadId, number, body }) => {
        uploads.get(uploadId)?.parts.set(`etag-${number}`, Buffer.from(body));
        return `etag-${number}`;
      },
      complete: async ({ uploadId, etags }) => {
        const fault = faults.shift();
        if (fault !== undefined) throw fault;
        const { key, parts } = uploads.get(uploadId) ?? absent();
        objects.set(key, Buffer.concat(etags.map((etag) => parts.get(etag) ?? absent())));
        uploads.delete(uploadId);
        return { etag: undefined, versionId: undefined, crc32: undefined };
      },
      abort: async ({ uploadId }) => void uploads.delete(uploadId),
      list: async () => [...uploads].map(([uploadId, { key }]) => ({ uploadId, key })),
    },
  };
  return { s3, objects, uploads, faults };
};

const path = () => join(dir, 'images.bundle');

/** A bundle with these disks, by the name of their image. */
const save = async (...disks: readonly (readonly [name: string, disk: Buffer])[]): Promise<void> => {
  const writer = await createBundleWriter(path());
  const images: BundledImage[] = [];
  const listed = [];
  for (const [name, disk] of disks) {
    const { head, tail } = layerAround('disk.img', disk.length);
    const layer = Buffer.concat([head, disk, tail]);
    const config = Buffer.from('{"architecture":"amd64","os":"linux"}');
    const manifest = manifestOf({
      config: { mediaType: configType, digest: digestOf(config), size: config.length },
      layers: [{ mediaType: layerType, digest: digestOf(layer), size: layer.length }],
    });
    for (const bytes of [layer, config, manifest]) await writer.addBytes(bytes);
    const facts = { layer: digestOf(layer), file: 'disk/disk.img', size: disk.length, sha256: sha256(disk).slice(7) };
    const digest = digestOf(manifest);
    images.push({ name, digest, tags: [`t${images.length}`], from: name, dataSources: [], leftOut: [], disk: facts });
    listed.push({
      mediaType: manifestType,
      digest,
      size: manifest.length,
      annotations: { [refName]: `${name}:latest` },
    });
  }
  const artifact = documentArtifact({ version: 1, images, objects: [] });
  for (const bytes of artifact.blobs) await writer.addBytes(bytes);
  await writer.finish(indexBytes([artifact.listed, ...listed]));
  await writer.close();
};

const load = async (): Promise<void> => {
  const archive = await openArchive(path());
  const state = await openState(path(), 's3://b/golden');
  const { signal } = new AbortController();
  const said = { say: () => {}, onProgress: () => {} };
  try {
    await writeDisks({ bundle: await readBundle(archive), s3: store.s3, place, state, signal, ...said });
  } finally {
    await archive.close();
  }
};
const sums = () => store.objects.get('golden/SHA256SUMS')?.toString('utf8');
const [old, fresh] = [noise('old', 64 * 1024), noise('new', 64 * 1024)];
const lineOf = (disk: Buffer, name: string) => `${sha256(disk).slice(7)}  ${name}.img\n`;

it('does not resume with the parts of another bundle that had the same name', async () => {
  await save(['jammy', old]);
  store.faults.push(new InvalidInput('cut'));
  await expect(load()).rejects.toThrow('cut');
  await save(['jammy', fresh]);
  await load();
  expect(store.objects.get('golden/jammy.img')?.equals(fresh)).toBe(true);
  expect({ sums: sums(), left: store.uploads.size }).toEqual({ sums: lineOf(fresh, 'jammy'), left: 0 });
});

it('resumes with its own parts', async () => {
  await save(['jammy', old]);
  store.faults.push(new InvalidInput('cut'));
  await expect(load()).rejects.toThrow('cut');
  const { multipart } = store.s3;
  let sent = 0;
  store.s3 = { ...store.s3, multipart: { ...multipart, putPart: (part) => ((sent += 1), multipart.putPart(part)) } };
  await load();
  expect({ sent, isWhole: store.objects.get('golden/jammy.img')?.equals(old) }).toEqual({ sent: 0, isWhole: true });
});

it('keeps the checksums that another load wrote meanwhile', async () => {
  await save(['jammy', old]);
  const { multipart } = store.s3;
  const complete: typeof multipart.complete = (upload) => {
    store.objects.set('golden/SHA256SUMS', Buffer.from(lineOf(fresh, 'noble')));
    return multipart.complete(upload);
  };
  store.s3 = { ...store.s3, multipart: { ...multipart, complete } };
  await load();
  expect(sums()).toBe(lineOf(old, 'jammy') + lineOf(fresh, 'noble'));
});

it('refuses two disks of one name before it writes any', async () => {
  await save(['jammy', old], ['jammy', fresh]);
  await expect(load()).rejects.toThrow('several images that would be jammy.img there');
  expect(store.objects.size).toBe(0);
});
