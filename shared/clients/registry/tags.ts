// Tags as versions: the newest tag within a range. Pure.
import semver from 'semver';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** `v`, one to three numbers, then what a pre-release or a build is called. `40`, `v1.2`, `9.4-20240101.0`, `1.2.3_build`. */
const tagPattern = /^v?(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(?:-([0-9A-Za-z.-]+))?(?:[+_]([0-9A-Za-z.-]+))?$/;

const versionOf = (tag: string): semver.SemVer | undefined => {
  const match = tagPattern.exec(tag);
  if (match === null) return undefined;
  const [, major = '0', minor = '0', patch = '0', preRelease, build] = match;
  const numbers = [major, minor, patch].map(Number).join('.');
  const text = `${numbers}${preRelease === undefined ? '' : `-${preRelease}`}${build === undefined ? '' : `+${build}`}`;
  return semver.parse(text) ?? undefined;
};

/** Whether `range` can be read. */
export const isTagRange = (range: string): boolean => semver.validRange(range) !== null;

/**
 * The tag with the highest version in `range` (npm's syntax: `>=39 <41`, `^1.2`, `*`); tags that are no versions do not count. A pre-release counts
 * only where the range names one of the same version. Of equal versions the more exact tag wins: it is the one that does not move.
 * Throws InvalidInput for a range that cannot be read.
 */
export const newestTag = (tags: readonly string[], range: string): string | undefined => {
  if (!isTagRange(range)) throw new InvalidInput(`"${range}" is no range of versions; write one such as ">=39 <41"`);
  const wanted = new semver.Range(range);
  const candidates = tags
    .map((tag) => ({ tag, version: versionOf(tag) }))
    .filter(
      (item): item is { tag: string; version: semver.SemVer } =>
        item.version !== undefined && wanted.test(item.version),
    );
  candidates.sort(
    (a, b) => semver.rcompare(a.version, b.version) || b.tag.length - a.tag.length || a.tag.localeCompare(b.tag),
  );
  return candidates[0]?.tag;
};
