// An OCI image layout on disk: blobs by digest, a configuration, a manifest, an index. Called by image.ts.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { Unavailable } from '#shared/runtime/errors.ts';

export interface BlobDescriptor {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
}

interface Layer extends BlobDescriptor {
  /** Digest of the uncompressed tar. */
  readonly diffId: string;
}

interface ImageConfig {
  readonly env: readonly string[];
  readonly entrypoint: readonly string[];
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
}

const hashing = (): { readonly stream: Transform; readonly done: () => { digest: string; size: number } } => {
  const hash = createHash('sha256');
  let size = 0;
  const stream = new Transform({
    transform: (chunk: Buffer, _encoding, next) => {
      hash.update(chunk);
      size += chunk.length;
      next(null, chunk);
    },
  });
  return { stream, done: () => ({ digest: `sha256:${hash.digest('hex')}`, size }) };
};

const blobPath = (dir: string, digest: string): string => join(dir, 'blobs', 'sha256', digest.replace('sha256:', ''));

/** The files below `from` as one layer: sorted, owned by root, dated 1970, so that it is reproducible. `level`: of gzip. */
export const writeLayer = async (dir: string, from: string, level: number): Promise<Layer> => {
  await mkdir(join(dir, 'blobs', 'sha256'), { recursive: true });
  const args = [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--format=gnu',
    '-C',
    from,
    '-cf',
    '-',
    '.',
  ];
  const tar = spawn('tar', args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => tar.once('exit', resolve));
  const plain = hashing();
  const packed = hashing();
  const part = join(dir, 'layer.part');
  await pipeline(tar.stdout, plain.stream, createGzip({ level }), packed.stream, createWriteStream(part));
  if ((await ended) !== 0) throw new Error(`tar of ${from} failed; its output is above`);
  const { digest, size } = packed.done();
  await rename(part, blobPath(dir, digest));
  return { mediaType: 'application/vnd.oci.image.layer.v1.tar+gzip', digest, size, diffId: plain.done().digest };
};

const writeJson = async (dir: string, mediaType: string, content: object): Promise<BlobDescriptor> => {
  const bytes = Buffer.from(JSON.stringify(content));
  const digest = `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
  await writeFile(blobPath(dir, digest), bytes);
  return { mediaType, digest, size: bytes.length };
};

/** Resolves with the descriptor of the manifest, which identifies the image. */
export const writeImage = async (
  dir: string,
  layers: readonly Layer[],
  { env, entrypoint, user, labels }: ImageConfig,
): Promise<BlobDescriptor> => {
  const config = await writeJson(dir, 'application/vnd.oci.image.config.v1+json', {
    architecture: process.arch === 'x64' ? 'amd64' : process.arch,
    os: 'linux',
    config: { Env: env, Entrypoint: entrypoint, User: user, WorkingDir: '/app', Labels: labels },
    rootfs: { type: 'layers', diff_ids: layers.map(({ diffId }) => diffId) },
  });
  const mediaType = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await writeJson(dir, mediaType, {
    schemaVersion: 2,
    mediaType,
    config,
    layers: layers.map(({ mediaType: type, digest, size }) => ({ mediaType: type, digest, size })),
  });
  await writeFile(join(dir, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }));
  await writeFile(join(dir, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }));
  return manifest;
};

// Pushes an OCI layout to a registry, over its HTTP API.

interface Manifest {
  readonly config: BlobDescriptor;
  readonly layers: readonly BlobDescriptor[];
}

interface PushOptions {
  readonly layoutDir: string;
  readonly manifest: BlobDescriptor;
  /** Such as `http://127.0.0.1:5000`. */
  readonly registry: string;
  readonly repository: string;
  readonly tag: string;
}

/** Existing blobs are not sent again. Throws Unavailable with the registry's message. */
export const pushImage = async ({ layoutDir, manifest, registry, repository, tag }: PushOptions): Promise<void> => {
  const base = `${registry}/v2/${repository}`;
  const blob = (digest: string) => readFile(join(layoutDir, 'blobs', 'sha256', digest.replace('sha256:', '')));
  const text = await blob(manifest.digest);
  const { config, layers } = JSON.parse(text.toString()) as Manifest;
  for (const { digest } of [config, ...layers]) {
    const body = await blob(digest);
    if ((await send(`${base}/blobs/${digest}`, { method: 'HEAD' })).ok) continue;
    await attempt(async () => {
      const started = await expectOk(await send(`${base}/blobs/uploads/`, { method: 'POST' }), 'start an upload');
      const target = new URL(started.headers.get('location') ?? '', registry);
      target.searchParams.set('digest', digest);
      const headers = { 'content-type': 'application/octet-stream' };
      await expectOk(await fetch(target, { method: 'PUT', headers, body }), `take ${digest}`);
    });
  }
  const headers = { 'content-type': manifest.mediaType };
  await expectOk(await send(`${base}/manifests/${tag}`, { method: 'PUT', headers, body: text }), `take ${tag}`);
};

/** A registry closes connections that were idle while a layer was read; a request on such a connection is sent again. */
const attempt = async <T>(work: () => Promise<T>, left = 2): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (left === 0 || !(error instanceof TypeError)) throw error;
    return attempt(work, left - 1);
  }
};

const send = (url: string, init: RequestInit): Promise<Response> => attempt(() => fetch(url, init));

const expectOk = async (response: Response, what: string): Promise<Response> => {
  if (response.ok) return response;
  throw new Unavailable(`the registry failed to ${what}: ${response.status} ${await response.text()}`);
};
