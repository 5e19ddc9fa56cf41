// What a bundle holds, for people and programs. Pure.
import type { ReadBundle } from '#cli/bundle/check.ts';
import { type BundledImage, type Listed, bundleType, refName } from '#cli/bundle/layout.ts';
import { tableOf } from '#cli/output.ts';
import { formatBytes } from '#shared/api/quantity.ts';
import { signatureTag } from '#shared/transfer/export/sign-image.ts';

/** Signatures and attestations that lie beside it; they are not verified. */
const besides = ({ listed }: ReadBundle, { name, digest, indexDigest }: BundledImage): string => {
  const has = (kind: 'sig' | 'att'): boolean =>
    [digest, indexDigest].some(
      (one) =>
        one !== undefined &&
        listed.some(
          ({ annotations }) => annotations?.[refName] === `${name}:${signatureTag(one).replace(/sig$/, kind)}`,
        ),
    );
  const isOther = ({ digest: own, annotations, artifactType }: Listed): boolean =>
    annotations?.[refName] === undefined && artifactType !== bundleType && own !== indexDigest;
  const others = listed.some(isOther);
  return [has('sig') ? 'signature' : '', has('att') ? 'attestation' : '', others ? 'referrers' : '']
    .filter((word) => word !== '')
    .join(', ');
};

export const bundleTable = (bundle: ReadBundle, most: number | undefined): string => {
  const { document } = bundle;
  const images = tableOf(
    ['IMAGE', 'TAGS', 'DISK', 'SIZE', 'WITH', 'DIGEST', 'FROM'],
    document.images.map((image) => [
      image.version ?? image.name,
      image.tags.join(','),
      image.leftOut.length > 0 ? 'left out' : image.disk?.file,
      image.disk === undefined ? undefined : formatBytes(image.disk.size),
      besides(bundle, image),
      image.digest,
      image.from,
    ]),
    most,
  );
  if (document.objects.length === 0) return images;
  const objects = tableOf(
    ['KIND', 'NAME'],
    document.objects.map(({ kind, metadata }) => [kind, metadata.name]),
    most,
  );
  return `${images}\n${objects}`;
};

export const bundleDocumentOf = ({ archive, document, listed }: ReadBundle): object => ({
  ...document,
  manifests: listed,
  blobs: [...archive.blobs].map(([digest, { size }]) => ({ digest, size })),
});
