// Pushes containerDisks and other test images into a registry, like build tools.
import { createHash } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';

export const sha256 = (bytes: Buffer): string => `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export interface TarFile {
  readonly name: string;
  readonly content?: Buffer;
  /** `0` file, `5` directory, `2` symbolic link. */
  readonly type?: string;
  readonly link?: string;
}

const block = 512;

const octal = (value: number, length: number): string => value.toString(8).padStart(length - 1, '0');

/** One ustar entry. */
const tarEntry = ({ name, content = Buffer.alloc(0), type = '0', link = '' }: TarFile): Buffer => {
  const header = Buffer.alloc(block);
  header.write(name, 0, 100);
  header.write(octal(0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(content.length, 12), 124);
  header.write(octal(0, 12), 136);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(link, 157, 100);
  header.write('ustar\0' + '00', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 7)}\0 `, 148);
  const padding = Buffer.alloc((block - (content.length % block)) % block);
  return Buffer.concat([header, content, padding]);
};

export const tarOf = (files: readonly TarFile[]): Buffer =>
  Buffer.concat([...files.map(tarEntry), Buffer.alloc(2 * block)]);

const ociLayer = 'application/vnd.oci.image.layer.v1.tar';
const packers = {
  gzip: { pack: (bytes: Buffer) => gzipSync(bytes, { level: 1 }), type: `${ociLayer}+gzip` },
  zstd: { pack: (bytes: Buffer) => zstdCompressSync(bytes), type: `${ociLayer}+zstd` },
  none: { pack: (bytes: Buffer) => bytes, type: ociLayer },
  docker: {
    pack: (bytes: Buffer) => gzipSync(bytes, { level: 1 }),
    type: 'application/vnd.docker.image.rootfs.diff.tar.gzip',
  },
} as const;
export type Packing = keyof typeof packers;

export interface Layer {
  readonly files: readonly TarFile[];
  readonly packing?: Packing;
  /** Media type in the manifest. Default: the actual one. */
  readonly mediaType?: string;
}

export interface PushTarget {
  readonly host: string;
  readonly repository: string;
  readonly authorization?: string;
}

const call = async (target: PushTarget, method: string, path: string, init: RequestInit = {}): Promise<Response> => {
  const url = path.startsWith('http') ? path : `http://${target.host}${path}`;
  const authorization = target.authorization === undefined ? {} : { authorization: target.authorization };
  const headers = { ...authorization, ...(init.headers as Record<string, string> | undefined) };
  const response = await fetch(url, { ...init, method, headers });
  if (!response.ok) throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  return response;
};

export const pushBlob = async (target: PushTarget, bytes: Buffer): Promise<string> => {
  const digest = sha256(bytes);
  const begun = await call(target, 'POST', `/v2/${target.repository}/blobs/uploads/`);
  const location = new URL(begun.headers.get('location') ?? '', `http://${target.host}`);
  location.searchParams.set('digest', digest);
  await call(target, 'PUT', location.pathname + location.search, {
    body: new Uint8Array(bytes),
    headers: { 'content-type': 'application/octet-stream' },
  });
  return digest;
};

export const pushManifest = async (
  target: PushTarget,
  reference: string,
  manifest: object & { readonly mediaType: string },
): Promise<{ readonly digest: string; readonly size: number }> => {
  const bytes = Buffer.from(JSON.stringify(manifest));
  await call(target, 'PUT', `/v2/${target.repository}/manifests/${reference}`, {
    body: new Uint8Array(bytes),
    headers: { 'content-type': manifest.mediaType },
  });
  return { digest: sha256(bytes), size: bytes.length };
};

/** An image of these layers, the lowest first. Without a tag it is available only by its digest. */
export const pushImage = async (
  target: PushTarget,
  layers: readonly Layer[],
  tag?: string,
  environment: readonly string[] = [],
) => {
  const isDocker = layers.some(({ packing }) => packing === 'docker');
  const kind = isDocker
    ? 'application/vnd.docker.distribution.manifest.v2+json'
    : 'application/vnd.oci.image.manifest.v1+json';
  const configType = isDocker
    ? 'application/vnd.docker.container.image.v1+json'
    : 'application/vnd.oci.image.config.v1+json';
  const config = Buffer.from(JSON.stringify({ architecture: 'amd64', os: 'linux', config: { Env: environment } }));
  const described = [];
  for (const { files, packing = 'gzip', mediaType } of layers) {
    const bytes = packers[packing].pack(tarOf(files));
    const digest = await pushBlob(target, bytes);
    described.push({ mediaType: mediaType ?? packers[packing].type, digest, size: bytes.length });
  }
  const manifest = {
    schemaVersion: 2,
    mediaType: kind,
    config: { mediaType: configType, digest: await pushBlob(target, config), size: config.length },
    layers: described,
  };
  const bytes = Buffer.from(JSON.stringify(manifest));
  const pushed = await pushManifest(target, tag ?? sha256(bytes), manifest);
  return { ...pushed, mediaType: kind, layers: described };
};

/** A usual containerDisk: one file under /disk/. */
export const pushDisk = (target: PushTarget, disk: Buffer, tag: string, packing: Packing = 'gzip') =>
  pushImage(
    target,
    [
      {
        packing,
        files: [
          { name: 'disk/', type: '5' },
          { name: 'disk/disk.img', content: disk },
        ],
      },
    ],
    tag,
  );

/** Adds another tag for the image of a tag. */
export const retag = async (target: PushTarget, from: string, to: string): Promise<void> => {
  const accept = 'application/vnd.oci.image.manifest.v1+json';
  const manifest = await call(target, 'GET', `/v2/${target.repository}/manifests/${from}`, { headers: { accept } });
  await call(target, 'PUT', `/v2/${target.repository}/manifests/${to}`, {
    body: await manifest.arrayBuffer(),
    headers: { 'content-type': accept },
  });
};

export interface IndexedImage {
  readonly architecture: string;
  readonly image: { readonly digest: string; readonly size: number; readonly mediaType: string };
}

export const pushIndex = (target: PushTarget, images: readonly IndexedImage[], tag: string) => {
  const attested = images.map(({ image }) => ({
    ...descriptorOf(image),
    platform: { os: 'unknown', architecture: 'unknown' },
    annotations: { 'vnd.docker.reference.type': 'attestation-manifest', 'vnd.docker.reference.digest': image.digest },
  }));
  const manifests = images.map(({ architecture, image }) => ({
    ...descriptorOf(image),
    platform: { os: 'linux', architecture },
  }));
  return pushManifest(target, tag, {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [...attested, ...manifests],
  } as never);
};

const descriptorOf = ({ digest, size, mediaType }: IndexedImage['image']) => ({ mediaType, digest, size });
