// What tells that two volumes would hold the same bytes, before either is filled: a digest that the source is pinned to. Pure.
import { createHash } from 'node:crypto';
import { readReference } from '#shared/clients/registry/reference.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

const strong: readonly string[] = ['sha256', 'sha512'];

/** The digest that an image is pinned to. */
const pinOf = (url: string): string | undefined => {
  const reference = readReference(url);
  return 'value' in reference ? reference.value.digest : undefined;
};

/** `undefined`: what the source holds can change, or nobody vouches for it. Digests that can be forged say nothing. */
export const contentOf = ({ source, checksum }: Pick<Volume, 'source' | 'checksum'>): string | undefined => {
  if (source?.type !== 'transfer' || source.from.type === 'blank') return undefined;
  const { from } = source;
  if (from.type === 'registry') {
    const digest = pinOf(from.url);
    return digest && `registry ${digest} ${from.architecture ?? ''}`;
  }
  return checksum !== undefined && strong.includes(checksum.algorithm)
    ? `file ${checksum.algorithm}:${checksum.hex}`
    : undefined;
};

/** Name of the lease that one content has in one storage class. */
export const leaseNameOf = (content: string, className: string): string =>
  `content-${createHash('sha256').update(`${content} ${className}`).digest('hex').slice(0, 40)}`;
