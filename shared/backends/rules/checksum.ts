// `spec.checksum` as users write it. Dialects interpret it with this, and admission refuses what it refuses.
import { type Checksum, type DigestAlgorithm, digestLengths } from '#shared/transfer/spec.ts';

/** A value, or what is wrong with the text in words a user can act on. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

const algorithms = Object.keys(digestLengths) as readonly DigestAlgorithm[];
const isAlgorithm = (name: string): name is DigestAlgorithm => Object.hasOwn(digestLengths, name);

/**
 * `<algorithm>:<hex>`; case and surrounding space do not matter. A digest alone is of the algorithm `bare` names; left out: it is refused.
 */
export const parseChecksum = (text: string, bare?: DigestAlgorithm): Parsed<Checksum> => {
  const parts = text.trim().split(':');
  if (parts.length > 2) return { problem: `has ${parts.length - 1} colons; write <algorithm>:<hex>` };
  const hex = (parts.at(-1) ?? '').trim().toLowerCase();
  const algorithm = parts.length === 2 ? (parts[0] ?? '').trim().toLowerCase() : bare;
  if (algorithm === undefined) return { problem: `names no algorithm; write ${suggestionFor(hex)}` };
  if (!isAlgorithm(algorithm)) {
    return { problem: `algorithm ${JSON.stringify(algorithm)} is not known; use one of ${algorithms.join(', ')}` };
  }
  return checkDigest(algorithm, hex, parts.length === 1);
};

const checkDigest = (algorithm: DigestAlgorithm, hex: string, isBare: boolean): Parsed<Checksum> => {
  const length = digestLengths[algorithm];
  const orphan = /[^0-9a-f]/u.exec(hex);
  if (hex.length !== length) {
    const hint = isBare ? `; for another algorithm write ${suggestionFor(hex)}` : '';
    return {
      problem: `has ${hex.length} characters, and a ${algorithm} digest has ${length} hexadecimal ones${hint}`,
    };
  }
  if (orphan !== null) {
    return { problem: `has ${JSON.stringify(orphan[0])} at ${orphan.index + 1}, and a digest has 0-9 and a-f only` };
  }
  return { value: { algorithm, hex } };
};

/** The form to write, with the algorithm that the length of the digest speaks for. */
const suggestionFor = (hex: string): string => {
  const match = algorithms.find((name) => digestLengths[name] === hex.length);
  return match === undefined ? '<algorithm>:<hex>' : `${match}:<hex>`;
};
