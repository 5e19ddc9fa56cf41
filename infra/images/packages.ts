// Debian packages with all dependencies, unpacked into a folder. They are not installed: no script of a package runs. Called by image.ts.
import { execFile } from 'node:child_process';
import { mkdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const bytesOfOutput = 64 * 2 ** 20;

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  readonly sha256: string;
}

/** The packages and their dependencies, by name. Throws for a package that apt does not know. */
const closureOf = async (names: readonly string[]): Promise<readonly string[]> => {
  const unwanted = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map(
    (name) => `--no-${name}`,
  );
  const { stdout } = await run('apt-cache', ['depends', '--recurse', ...unwanted, ...names], {
    maxBuffer: bytesOfOutput,
  });
  const found = stdout.split('\n').filter((line) => /^[a-z0-9]/.test(line));
  // Packages that only configure a running system, which this is not.
  return [...new Set(found)].filter((name) => !/^(debconf|cdebconf|perl-base|dpkg|tar)/.test(name)).toSorted();
};

/** A line of `apt-get download --print-uris`: URL, file, bytes, digest. A file is `<name>_<version>_<architecture>.deb`, its version encoded. */
const download = /^'[^']*' (([^\s_]+)_([^\s_]+)_([^\s_]+)\.deb) \d+ SHA256:([0-9a-f]{64})$/;

/** One shell for all of them: starting a process takes a process as large as a test's longer than unpacking most of them. */
const unpackAll = `set -e; root=$1; shift; sha256sum --quiet --check; for file; do dpkg-deb -x "$file" "$root"; done`;

/** Downloads packages missing in `cacheDir`, and unpacks all of them into `rootDir`. Throws if one is not what apt's lists say. */
export const unpackPackages = async (
  names: readonly string[],
  { rootDir, cacheDir }: { readonly rootDir: string; readonly cacheDir: string },
): Promise<readonly DebianPackage[]> => {
  await mkdir(cacheDir, { recursive: true });
  const closure = await closureOf(names);
  await run('apt-get', ['download', ...closure], { cwd: cacheDir, maxBuffer: bytesOfOutput });
  // The cache may contain earlier versions as well: only those that apt would download now are used.
  const { stdout: uris } = await run('apt-get', ['download', '--print-uris', ...closure], { maxBuffer: bytesOfOutput });
  const lines = uris.split('\n').filter((line) => line.startsWith("'"));
  const found = lines
    .map((line) => download.exec(line) ?? [])
    .map(([, file = '', name = '', version = '', architecture = '', sha256 = '']) => ({
      file,
      package: { name, version: decodeURIComponent(version), architecture, sha256 },
    }))
    .toSorted((one, other) => (one.file < other.file ? -1 : 1));
  if (found.some(({ file }) => file === '')) throw new Error(`apt-get lists packages in another form: ${lines[0]}`);
  const shell = run('sh', ['-c', unpackAll, 'sh', resolve(rootDir), ...found.map(({ file }) => file)], {
    cwd: cacheDir,
  });
  shell.child.stdin?.end(found.map((one) => `${one.package.sha256}  ${one.file}\n`).join(''));
  await shell;
  return found.map((one) => one.package);
};

// The content of an image, as SPDX 2.3.

interface LockFile {
  readonly packages: Readonly<
    Record<
      string,
      { readonly version?: string; readonly dev?: boolean; readonly optional?: boolean; readonly license?: string }
    >
  >;
}

interface SbomInput {
  readonly name: string;
  /** Of the image's manifest; makes the name of the document unique. */
  readonly digest: string;
  readonly packages: readonly DebianPackage[];
  /** Such as `v24.21.0`. */
  readonly node: string;
  readonly lock: LockFile;
}

interface Part {
  readonly name: string;
  readonly version: string;
  readonly purl: string;
  readonly sha256?: string;
  readonly license?: string | undefined;
}

/** Dependencies in the bundles, without development dependencies. */
const npmParts = ({ packages }: LockFile): readonly Part[] =>
  Object.entries(packages).flatMap(([path, { version, dev, optional, license }]) => {
    const name = path.split('node_modules/').at(-1) ?? '';
    if (name === '' || version === undefined || dev === true || optional === true) return [];
    return [{ name, version, license, purl: `pkg:npm/${name.replace('@', '%40')}@${version}` }];
  });

/** Without times: the same image has the same SBOM. */
export const buildSbom = ({ name, digest, packages, node, lock }: SbomInput): object => {
  const parts: readonly Part[] = [
    ...packages.map((one) => ({ ...one, purl: `pkg:deb/debian/${one.name}@${one.version}?arch=${one.architecture}` })),
    { name: 'node', version: node.slice(1), license: 'MIT', purl: `pkg:generic/node@${node.slice(1)}` },
    ...npmParts(lock),
  ];
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name,
    documentNamespace: `https://bullion.dev/spdx/${name}/${digest.replace('sha256:', '')}`,
    creationInfo: { created: '1970-01-01T00:00:00Z', creators: ['Tool: bullion infra/images'] },
    packages: parts.map(({ name: part, version, purl, sha256, license }, index) => ({
      SPDXID: `SPDXRef-Package-${index}`,
      name: part,
      versionInfo: version,
      downloadLocation: 'NOASSERTION',
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: license ?? 'NOASSERTION',
      ...(sha256 === undefined ? {} : { checksums: [{ algorithm: 'SHA256', checksumValue: sha256 }] }),
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
    })),
    relationships: parts.map((_, index) => ({
      spdxElementId: 'SPDXRef-DOCUMENT',
      relationshipType: 'DESCRIBES',
      relatedSpdxElement: `SPDXRef-Package-${index}`,
    })),
  };
};
