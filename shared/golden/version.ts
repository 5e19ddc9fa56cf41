// Versions of a golden image: named after the digest they hold, and which of them may go. Pure.
import { createHash } from 'node:crypto';
import { toSpan } from '#shared/runtime/age.ts';

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
  /** RFC 3339: when a disk was last made from it, or it was last what the cron offered; empty when unknown. */
  readonly lastUse: string;
  /** RFC 3339; default: unknown, which is too young for a limit. */
  readonly created?: string | undefined;
}

/** Limits in milliseconds: what is younger, or was used since, stays. */
export interface RetentionLimits {
  readonly maxAge?: number | undefined;
  readonly unusedFor?: number | undefined;
}

interface Retention extends RetentionLimits {
  /** How many to keep, the current one included; at least 1 whatever is written here. */
  readonly keep: number;
  /** The version offered now. */
  readonly current: string;
  /** Versions that something refers to (a data source, a running clone, a backup, an import under way), and what that is. */
  readonly inUse: ReadonlyMap<string, string>;
  /** Milliseconds since the epoch; needed for limits. */
  readonly now?: number | undefined;
}

const timeOf = ({ lastUse }: Version): number => {
  const time = Date.parse(lastUse);
  return Number.isNaN(time) ? 0 : time;
};

/** Newest first. The name decides between equals, so that two looks agree. */
const byUse = (a: Version, b: Version): number => timeOf(b) - timeOf(a) || a.name.localeCompare(b.name);

export interface RetainedVersion {
  readonly name: string;
  /** `undefined`: nothing, so it goes. */
  readonly keptBy: string | undefined;
}

const keptByTime = (
  { lastUse, created = '' }: Version,
  { maxAge, unusedFor, now = 0 }: Retention,
): string | undefined => {
  const isPast = (time: string, limit: number): boolean => now - Date.parse(time) >= limit;
  if (maxAge !== undefined && !isPast(created, maxAge)) return `it is younger than ${toSpan(maxAge)}`;
  if (unusedFor !== undefined && !isPast(lastUse, unusedFor)) return `it was used within ${toSpan(unusedFor)}`;
  return undefined;
};

/** Each version and what keeps it, those used last first. Never without the current one, nor one in use; those count among the kept all the same. */
export const judgeRetention = (versions: readonly Version[], retention: Retention): readonly RetainedVersion[] => {
  const { keep, current, inUse } = retention;
  const place = (version: Version): number => (version.name === current ? 0 : 1);
  const most = Math.max(1, keep);
  return versions
    .toSorted((a, b) => place(a) - place(b) || byUse(a, b))
    .map((version, index) => {
      const { name } = version;
      if (name === current) return { name, keptBy: 'its cron offers it' };
      const user = inUse.get(name);
      // The current one counts whether or not it is listed.
      const rank = versions.some((one) => one.name === current) ? index : index + 1;
      const isRecent = rank < most;
      return {
        name,
        keptBy: user ?? (isRecent ? `it is one of the ${most} used last` : keptByTime(version, retention)),
      };
    });
};
