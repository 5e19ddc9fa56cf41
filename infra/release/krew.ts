// The command line as a plugin of kubectl that krew installs: an archive for each platform, and the manifest that names them with their digests.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';

/** Platforms of executables, as Node and as krew name them. */
const platforms = {
  'linux-x64': { os: 'linux', arch: 'amd64' },
  'linux-arm64': { os: 'linux', arch: 'arm64' },
  'darwin-x64': { os: 'darwin', arch: 'amd64' },
  'darwin-arm64': { os: 'darwin', arch: 'arm64' },
} as const;
type Platform = keyof typeof platforms;

export interface Archive {
  readonly platform: Platform;
  readonly file: string;
  readonly sha256: string;
}

/** Where the executables and the licence are, and where archives go. */
interface Folders {
  readonly executables: string;
  readonly license: string;
  readonly to: string;
}

const executableOf = (platform: Platform): string => `bullion-${platform}`;

/** Same bytes for the same executable. */
const pack = async (platform: Platform, { executables, license, to }: Folders): Promise<Archive> => {
  const file = `${executableOf(platform)}.tar.gz`;
  const fixed = [
    '--sort=name',
    '--mtime=@0',
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--use-compress-program=gzip -n',
  ];
  const from = ['-C', executables, executableOf(platform), '-C', license, 'LICENSE'];
  await promisify(execFile)('tar', [...fixed, '-cf', join(to, file), ...from]);
  return {
    platform,
    file,
    sha256: createHash('sha256')
      .update(await readFile(join(to, file)))
      .digest('hex'),
  };
};

export const buildKrewManifest = (archives: readonly Archive[], version: string, download: string): string =>
  stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'bullion' },
    spec: {
      version: `v${version}`,
      homepage: download,
      shortDescription: 'Golden images for virtual machines',
      description:
        'Imports, uploads, downloads, exports and explains images and disks of virtual machines, and decides which version of a golden image is offered.\nWorks on clusters that serve the kinds of Bullion, CDI, Harvester or HyperCloud.',
      platforms: archives.map(({ platform, file, sha256 }) => ({
        selector: { matchLabels: platforms[platform] },
        uri: `${download}/${file}`,
        sha256,
        files: [executableOf(platform), 'LICENSE'].map((from) => ({ from, to: '.' })),
        bin: executableOf(platform),
      })),
    },
  });

export interface KrewResult {
  readonly files: readonly string[];
  /** Platforms without an executable. */
  readonly missing: readonly string[];
}

/** Packs the executables that are there. Without any, no manifest is written. */
export const writeKrew = async (folders: Folders, version: string, download: string): Promise<KrewResult> => {
  const all = Object.keys(platforms) as readonly Platform[];
  const found = all.filter((platform) => existsSync(join(folders.executables, executableOf(platform))));
  const archives = await Promise.all(found.map((platform) => pack(platform, folders)));
  const missing = all.filter((platform) => !found.includes(platform));
  if (archives.length === 0) return { files: [], missing };
  const manifest = join(folders.to, 'bullion.krew.yaml');
  await writeFile(manifest, buildKrewManifest(archives, version, download));
  return { files: [...archives.map(({ file }) => join(folders.to, file)), manifest], missing };
};
