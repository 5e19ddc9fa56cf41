// What tells that two volumes would hold the same bytes, before either is filled: a digest that the source is pinned to. Pure.
import { createHash } from 'node:crypto';
import { labels } from '#shared/api/names.ts';
import { type Source, isFile, pinOf } from '#shared/populate/source.ts';
import type { Checksum } from '#shared/transfer/spec.ts';

/** What is to be put into a volume. */
export interface Wanted {
  readonly from: Source | undefined;
  readonly checksum?: Checksum | undefined;
}

const strong: readonly string[] = ['sha256', 'sha512'];

/** `undefined`: what the source holds can change, or nobody vouches for it. Digests that can be forged say nothing. */
export const contentOf = ({ from, checksum }: Wanted): string | undefined => {
  if (from === undefined) return undefined;
  return isFile(from) && checksum !== undefined && strong.includes(checksum.algorithm)
    ? fileContent(`${checksum.algorithm}:${checksum.hex}`)
    : pinOf(from);
};

/** `digest`: `<algorithm>:<hex>`, or what stands for it. */
export const fileContent = (digest: string): string => `file ${digest}`;

/** Labels by which volumes are found that hold a content: one whose digest was found out has another for what stood for it until then. */
export const contentLabels = (content: string): readonly string[] =>
  content.startsWith(fileContent('validator:')) ? [labels.content, labels.askedContent] : [labels.content];

/** Whether what a volume was filled with is that content, as far as its digests tell. */
export const isOfContent = (content: string, digests: Readonly<Record<string, string>>): boolean => {
  const [, algorithm = '', hex = ''] = /^file (sha256|sha512):([0-9a-f]+)$/.exec(content) ?? [];
  return algorithm === '' || digests[algorithm] === hex;
};

/** What one content has in one storage class: name of the Lease of who fetches it, and label of every golden volume and snapshot that holds it. */
export const contentName = (content: string, className: string): string =>
  `content-${createHash('sha256').update(`${content} ${className}`).digest('hex').slice(0, 40)}`;
