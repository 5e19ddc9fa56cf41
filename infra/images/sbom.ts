// The content of an image, as SPDX 2.3. Called by image.ts.
import type { DebianPackage } from '#infra/images/packages.ts';

interface LockFile {
  readonly packages: Readonly<
    Record<
      string,
      { readonly version?: string; readonly dev?: boolean; readonly optional?: boolean; readonly license?: string }
    >
  >;
}

export interface SbomInput {
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
