// `spec.checksum` as users write it. Used by dialects to interpret it and by admission to validate it.
import { type Checksum, type DigestAlgorithm, digestLengths } from '#shared/transfer/spec.ts';
import { createHash } from 'node:crypto';

/** A value, or a message for the user about what is wrong with the text. */
export type Parsed<T> = { readonly value: T } | { readonly problem: string };

const algorithms = Object.keys(digestLengths) as readonly DigestAlgorithm[];
const isAlgorithm = (name: string): name is DigestAlgorithm => Object.hasOwn(digestLengths, name);

/** `<algorithm>:<hex>`; case and surrounding space are ignored. A digest without an algorithm has the algorithm `bare`. Default: rejected. */
export const parseChecksum = (text: string, bare?: DigestAlgorithm): Parsed<Checksum> => {
  const parts = text.trim().split(':');
  if (parts.length > 2) return { problem: `has ${parts.length - 1} colons; write <algorithm>:<hex>` };
  const hex = (parts.at(-1) ?? '').trim().toLowerCase();
  const algorithm = parts.length === 2 ? (parts[0] ?? '').trim().toLowerCase() : bare;
  if (algorithm === undefined) return { problem: `has no algorithm; write ${suggestionFor(hex)}` };
  if (!isAlgorithm(algorithm)) {
    return { problem: `algorithm ${JSON.stringify(algorithm)} is not supported; use one of ${algorithms.join(', ')}` };
  }
  return checkDigest(algorithm, hex, parts.length === 1);
};

const checkDigest = (algorithm: DigestAlgorithm, hex: string, isBare: boolean): Parsed<Checksum> => {
  const length = digestLengths[algorithm];
  const orphan = /[^0-9a-f]/u.exec(hex);
  if (hex.length !== length) {
    const hint = isBare ? `; for another algorithm write ${suggestionFor(hex)}` : '';
    return {
      problem: `has ${hex.length} characters, but a ${algorithm} digest has ${length} hexadecimal digits${hint}`,
    };
  }
  if (orphan !== null) {
    return { problem: `has ${JSON.stringify(orphan[0])} at ${orphan.index + 1}, and a digest has 0-9 and a-f only` };
  }
  return { value: { algorithm, hex } };
};

/** The suggested form, with the algorithm that matches the length of the digest. */
const suggestionFor = (hex: string): string => {
  const match = algorithms.find((name) => digestLengths[name] === hex.length);
  return match === undefined ? '<algorithm>:<hex>' : `${match}:<hex>`;
};

// Display names are free text, label values are not. The label finds candidates; the name itself decides.

const labelValue = /^[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/u;

export const isLabelValue = (text: string): boolean => labelValue.test(text);

/** The name if it is a valid label value, else a digest of it. */
export const toDisplayNameLabel = (displayName: string): string =>
  isLabelValue(displayName)
    ? displayName
    : `sha256-${createHash('sha256').update(displayName).digest('hex').slice(0, 48)}`;

// The URL of an image file as users write it. Used by dialects to interpret it and by admission to validate it.

const schemes = ['http:', 'https:'];

/** An absolute http or https URL. Credentials are rejected: they would be visible to everyone who can read the object. */
export const parseSourceUrl = (text: string): Parsed<string> => {
  const trimmed = text.trim();
  if (trimmed === '') return { problem: 'is empty; write the http or https URL of an image file' };
  const url = URL.parse(trimmed);
  // The text is not repeated: it may contain a password.
  if (url === null) return { problem: 'is not a valid URL; write it in full, such as https://host/path/disk.qcow2' };
  if (!schemes.includes(url.protocol)) {
    return { problem: `has the scheme ${JSON.stringify(url.protocol.slice(0, -1))}; only http and https are served` };
  }
  if (!/^https?:\/\//iu.test(trimmed)) return { problem: 'lacks // after its scheme; write https://host/path' };
  if (url.username !== '' || url.password !== '') {
    return {
      problem: 'contains a user name or password, which everyone who can read this object would see; remove it',
    };
  }
  return { value: trimmed };
};
