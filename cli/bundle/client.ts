// A bundle as a registry: what verifies signatures and finds disks in registries does so in bundles. Its images are in one repository.
import { type BundleArchive, readSmall } from '#cli/bundle/archive.ts';
import { type Listed, refName } from '#cli/bundle/layout.ts';
import type { RegistryClient } from '#shared/clients/registry/client.ts';
import { type IndexEntry, type Manifest, readEntries, readManifest } from '#shared/clients/registry/manifest.ts';
import { type Reference, formatReference } from '#shared/clients/registry/reference.ts';
import { RegistryFailure } from '#shared/clients/registry/refusal.ts';
import { pourFrom } from '#shared/clients/http/exchange.ts';

/** Stands for the address of a registry. */
export const inBundle: Pick<Reference, 'host' | 'repository'> = { host: 'bundle', repository: 'images' };

const subjectOf = (bytes: Uint8Array): { readonly subject?: { readonly digest?: string }; artifactType?: string } =>
  JSON.parse(Buffer.from(bytes).toString('utf8')) as never;

/** What refers to an image says so itself. */
const referrersIn = async (archive: BundleArchive, listed: readonly Listed[], digest: string) => {
  const found: object[] = [];
  for (const one of listed) {
    const { subject, artifactType } = subjectOf(await readSmall(archive, one.digest));
    if (subject?.digest === digest) found.push({ ...one, ...(artifactType === undefined ? {} : { artifactType }) });
  }
  return readEntries({ schemaVersion: 2, manifests: found });
};

export const createBundleClient = (archive: BundleArchive, listed: readonly Listed[]): RegistryClient => {
  const named = ({ digest, tag = 'latest' }: Reference): string | undefined =>
    digest ?? listed.find(({ annotations }) => annotations?.[refName]?.endsWith(`:${tag}`) === true)?.digest;
  const find = (image: Reference): string => {
    const digest = named(image);
    if (digest !== undefined && archive.blobs.has(digest)) return digest;
    throw new RegistryFailure('ImageNotFound', `${archive.path} has no ${formatReference(image)}`);
  };
  const manifest = async (image: Reference): Promise<Manifest> => {
    const digest = find(image);
    return readManifest(await readSmall(archive, digest), digest, `${archive.path}: ${digest}`);
  };
  return {
    manifest,
    head: async (image) => ({ digest: find(image), mediaType: '' }),
    tags: () => Promise.resolve([]),
    referrers: ({ digest }): Promise<readonly IndexEntry[]> => referrersIn(archive, listed, digest),
    blob: async (image, digest, offset) => {
      const body = archive.read(find({ ...image, digest }), offset);
      const discard = (): void => void body.return();
      return { status: offset === 0 ? 200 : 206, headers: {}, body, pour: pourFrom(body), discard };
    },
  };
};
