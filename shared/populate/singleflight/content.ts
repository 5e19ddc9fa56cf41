// Identifies equal content of two volumes before either is filled: by a digest that the source is pinned to. Pure.
import { createHash } from 'node:crypto';
import { labels } from '#shared/api/names.ts';
import { type Source, isFile, pinOf } from '#shared/populate/source.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

/** The requested content of a volume. */
export interface Wanted {
  readonly from: Source | undefined;
  readonly checksum?: Checksum | undefined;
}

const strong: readonly string[] = ['sha256', 'sha512'];

/** `undefined`: the content of the source can change or is not verified. Digests of broken algorithms do not count. */
export const contentOf = ({ from, checksum }: Wanted): string | undefined => {
  if (from === undefined) return undefined;
  return isFile(from) && checksum !== undefined && strong.includes(checksum.algorithm)
    ? fileContent(`${checksum.algorithm}:${checksum.hex}`)
    : pinOf(from);
};

/** `digest`: `<algorithm>:<hex>`, or a validator in its place. */
export const fileContent = (digest: string): string => `file ${digest}`;

/** Labels that find volumes with a content: a volume whose digest was determined later still has the label of its validator, too. */
export const contentLabels = (content: string): readonly string[] =>
  content.startsWith(fileContent('validator:')) ? [labels.content, labels.askedContent] : [labels.content];

/** Whether a volume was filled with that content, according to its digests. */
export const isOfContent = (content: string, digests: Readonly<Record<string, string>>): boolean => {
  const [, algorithm = '', hex = ''] = /^file (sha256|sha512):([0-9a-f]+)$/.exec(content) ?? [];
  return algorithm === '' || digests[algorithm] === hex;
};

/** Identifies one content in one storage class: name of the Lease of its fetcher, and label of every golden volume and snapshot that holds it. */
export const contentName = (content: string, className: string): string =>
  `content-${createHash('sha256').update(`${content} ${className}`).digest('hex').slice(0, 40)}`;
