// `spec.checksum` as users write it. Dialects interpret it with this, and admission refuses what it refuses.
import { type Checksum, type DigestAlgorithm, digestLengths } from '#shared/transfer/spec.ts';
import { createHash } from 'node:crypto';

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

// Display names are free text, and label values are not. The label finds images of one name; the name itself decides.

const labelValue = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;

export const isLabelValue = (text: string): boolean => labelValue.test(text);

/** The name where it can be a label value, else a digest of it. */
export const toDisplayNameLabel = (displayName: string): string =>
  isLabelValue(displayName)
    ? displayName
    : `sha256-${createHash('sha256').update(displayName).digest('hex').slice(0, 48)}`;

// The URL of an image file as users write it. Dialects interpret it with this, and admission refuses what it refuses.

const schemes = ['http:', 'https:'];

/** An absolute http or https URL. Credentials are refused: whoever can read the object would read them, too. */
export const parseSourceUrl = (text: string): Parsed<string> => {
  const trimmed = text.trim();
  if (trimmed === '') return { problem: 'is empty; write the http or https URL of an image file' };
  const url = URL.parse(trimmed);
  // Nothing of the text is repeated: it may hold a password.
  if (url === null) return { problem: 'is not a valid URL; write it in full, such as https://host/path/disk.qcow2' };
  if (!schemes.includes(url.protocol)) {
    return { problem: `has the scheme ${JSON.stringify(url.protocol.slice(0, -1))}; only http and https are served` };
  }
  if (!/^https?:\/\//iu.test(trimmed)) return { problem: 'lacks // after its scheme; write https://host/path' };
  if (url.username !== '' || url.password !== '') {
    return { problem: 'holds a user name or password, which everybody who can read this object would see; remove it' };
  }
  return { value: trimmed };
};
