// Versions of a golden image: named after the digest they hold, and which of them may go. Pure.
import { createHash } from 'node:crypto';

/** In the place of a digest, where a server tells none before the file is fetched. */
const validatorPrefix = 'validator:';

const prefixes = ['sha256:', 'sha512:', 'uid:', validatorPrefix] as const;
const shortLength = 12;
const mostNameLength = 253;

/** The part of a name that stands for a digest, or what is wrong with it in the original's words. */
export const shortDigest = (digest: string): { readonly value: string } | { readonly problem: string } => {
  const prefix = prefixes.find((candidate) => digest.startsWith(candidate));
  if (prefix === undefined) return { problem: 'Digest has no supported prefix' };
  const short = digest.slice(prefix.length, prefix.length + shortLength);
  return short.length < shortLength ? { problem: 'Digest is too short' } : { value: short };
};

/** FNV-1a, 32 bits, as eight hex digits. */
const fnv32a = (text: string): string => {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
};

/** `<dataSource>-<12 hex>`: the same digest always has the same name. */
export const versionName = (dataSource: string, short: string): string => {
  const name = `${dataSource}-${short}`;
  if (name.length <= mostNameLength) return name;
  const base = dataSource.slice(0, mostNameLength - 10 - short.length);
  return `${base}-${fnv32a(dataSource)}-${short}`;
};

/** A version whose plain name is taken by the same bytes in another storage class. */
export const placedName = (name: string, className: string): string =>
  `${name.slice(0, mostNameLength - 9)}-${fnv32a(className)}`;

/** Stands in for a digest until the file was fetched: what the server tells of it, such as URL, tag, date and size. */
export const validatorDigest = (parts: readonly (string | undefined)[]): string =>
  `${validatorPrefix}${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

/** Whether the digest is yet to be found out. */
export const isValidator = (digest: string): boolean => digest.startsWith(validatorPrefix);

/** Which versions of a golden image may go. */
interface Version {
  readonly name: string;
  /** RFC 3339: when it was last what the cron offered; empty when unknown. */
  readonly lastUse: string;
}

interface Retention {
  /** How many to keep, the current one included; at least 1 whatever is written here. */
  readonly keep: number;
  /** The version offered now. */
  readonly current: string;
  /** Versions that something refers to: a data source, a running clone, a backup, an import under way. */
  readonly inUse: ReadonlySet<string>;
}

const timeOf = ({ lastUse }: Version): number => {
  const time = Date.parse(lastUse);
  return Number.isNaN(time) ? 0 : time;
};

/** Newest first. The name decides between equals, so that two looks agree. */
const byUse = (a: Version, b: Version): number => timeOf(b) - timeOf(a) || a.name.localeCompare(b.name);

/** The versions to remove, oldest first. Never the current one, nor one in use; those count among the kept all the same. */
export const outdatedVersions = (
  versions: readonly Version[],
  { keep, current, inUse }: Retention,
): readonly string[] => {
  const others = versions.filter(({ name }) => name !== current).sort(byUse);
  return others
    .slice(Math.max(1, keep) - 1)
    .map(({ name }) => name)
    .filter((name) => !inUse.has(name))
    .reverse();
};
