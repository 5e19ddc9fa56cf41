// Builds the images without a Docker daemon: Debian packages, Node and the bundles. Called by `npm run images` and its test.
import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { listEntries } from '#infra/bundle/build.ts';
import { type imageNames, jobFunctions } from '#infra/generate/wiring.ts';
import { type BlobDescriptor, writeImage, writeLayer } from '#infra/images/layout.ts';
import { buildSbom, type DebianPackage, unpackPackages } from './packages.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('../../', import.meta.url));

export interface ImageKind {
  readonly name: (typeof imageNames)[number];
  readonly packages: readonly string[];
  readonly entrypoint: readonly string[];
  /** `uid:gid` of the process if the pod sets none. */
  readonly user: string;
}

/** Libraries that Node is linked to. */
const forNode = ['libc6', 'libstdc++6', 'libgcc-s1', 'ca-certificates'] as const;

export const imageKinds: readonly ImageKind[] = [
  {
    name: 'functions',
    packages: forNode,
    entrypoint: ['node', '/app/start.mjs'],
    user: '65532:65532',
  },
  {
    name: 'transfer-job',
    packages: [...forNode, 'qemu-utils', 'util-linux', 'xz-utils', 'zstd'],
    entrypoint: ['node', '/app/start.mjs', 'transfer-job'],
    user: '107:107',
  },
  {
    name: 'boot-job',
    packages: [...forNode, 'qemu-system-x86', 'seabios', 'ovmf'],
    entrypoint: ['node', '/app/start.mjs', 'boot-job'],
    user: '107:107',
  },
];

export interface ImageOptions {
  /** Output of `npm run build`. */
  readonly bundleDir: string;
  /** Destination of the OCI layout, the SBOM, and the unpacked root file system. */
  readonly outDir: string;
  /** Caches Debian packages between builds. */
  readonly cacheDir: string;
  /** Level of gzip, 1 to 9. Default: 6. */
  readonly level?: number;
}

export interface BuiltImage {
  readonly layoutDir: string;
  readonly sbomFile: string;
  readonly rootDir: string;
  readonly manifest: BlobDescriptor;
}

/** Processes find their compiled code: see `infra/bundle/code-cache`. */
const environment = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  NODE_ENV: 'production',
  HOST: '0.0.0.0',
  NODE_COMPILE_CACHE: '/app/code',
  NODE_COMPILE_CACHE_PORTABLE: '1',
} as const;

/** One layer that changes with Debian and Node, one that changes with Bullion. */
export const buildImage = async (
  kind: ImageKind,
  { bundleDir, outDir, cacheDir, level = 6 }: ImageOptions,
): Promise<BuiltImage> => {
  await rm(outDir, { recursive: true, force: true });
  const systemDir = join(outDir, 'system');
  const appDir = join(outDir, 'application');
  const layoutDir = join(outDir, 'layout');
  const packages = await fillSystem(kind, systemDir, cacheDir);
  const system = await writeLayer(layoutDir, systemDir, level);
  await cp(bundleDir, join(systemDir, 'app'), { recursive: true });
  await compileCode(kind, systemDir);
  await mkdir(appDir, { recursive: true });
  await cp(join(systemDir, 'app'), join(appDir, 'app'), { recursive: true });
  const layers = [system, await writeLayer(layoutDir, appDir, level)];
  const manifest = await writeImage(layoutDir, layers, {
    env: Object.entries(environment).map(([name, value]) => `${name}=${value}`),
    entrypoint: kind.entrypoint,
    user: kind.user,
    labels: {
      'org.opencontainers.image.title': `bullion ${kind.name}`,
      'org.opencontainers.image.licenses': 'Apache-2.0',
    },
  });
  const sbomFile = join(outDir, 'sbom.spdx.json');
  const lock = JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Parameters<
    typeof buildSbom
  >[0]['lock'];
  const sbom = buildSbom({
    name: `bullion-${kind.name}`,
    digest: manifest.digest,
    packages,
    node: process.version,
    lock,
  });
  await writeFile(sbomFile, JSON.stringify(sbom, undefined, 2));
  return { layoutDir, sbomFile, rootDir: systemDir, manifest };
};

/** What an image starts. */
export const startedBy = async ({ name: image }: ImageKind): Promise<readonly string[]> =>
  Object.keys(await listEntries())
    .filter((name) => (jobFunctions.some((job) => job.name === name) ? name : 'functions') === image)
    .toSorted();

/** In the root of the image, since V8's cache depends on paths. Reproducible. */
export const compileCode = async (kind: ImageKind, rootDir: string): Promise<void> => {
  const [uid = ''] = kind.user.split(':');
  // By its absolute path: without /proc a program cannot determine it.
  const inside = ['chroot', rootDir, '/usr/local/bin/node', '/app/code-cache.mjs', uid, ...(await startedBy(kind))];
  const [program = '', ...args] = process.getuid?.() === 0 ? inside : ['unshare', '-r', ...inside];
  await run(program, args, { env: { PATH: `${environment.PATH}:/usr/sbin:/sbin` } });
};

const fillSystem = async (
  { packages }: ImageKind,
  rootDir: string,
  cacheDir: string,
): Promise<readonly DebianPackage[]> => {
  for (const folder of ['etc', 'tmp', 'usr/local/bin', 'dev', 'proc'])
    await mkdir(join(rootDir, folder), { recursive: true });
  await chmod(join(rootDir, 'tmp'), 0o1777);
  const unpacked = await unpackPackages(packages, { rootDir, cacheDir });
  await joinAuthorities(rootDir);
  await rm(join(rootDir, 'usr/share/doc'), { recursive: true, force: true });
  await rm(join(rootDir, 'usr/share/man'), { recursive: true, force: true });
  await cp(process.execPath, join(rootDir, 'usr/local/bin/node'), { dereference: true });
  const users = [
    'root:x:0:0::/:/sbin/nologin',
    'qemu:x:107:107::/:/sbin/nologin',
    'bullion:x:65532:65532::/:/sbin/nologin',
  ];
  await writeFile(join(rootDir, 'etc/passwd'), `${users.join('\n')}\n`);
  return unpacked;
};

/** One file with all certificate authorities, as created by the package's script. */
const joinAuthorities = async (rootDir: string): Promise<void> => {
  const from = join(rootDir, 'usr/share/ca-certificates/mozilla');
  const files = (await readdir(from)).toSorted();
  const texts = await Promise.all(files.map((file) => readFile(join(from, file), 'utf8')));
  await mkdir(join(rootDir, 'etc/ssl/certs'), { recursive: true });
  await writeFile(join(rootDir, 'etc/ssl/certs/ca-certificates.crt'), texts.join(''));
};
