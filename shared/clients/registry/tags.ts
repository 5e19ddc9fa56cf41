// Tags as versions: selects the newest one of a scheme within a range. Pure.
import semver from 'semver';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** `v`, one to three numbers, then a pre-release or build: `40`, `v1.2`, `9.4-1214`, `1.2.3_build`. */
const tagPattern = /^v?(\d{1,15})(?:\.(\d{1,15}))?(?:\.(\d{1,15}))?(?:-([0-9A-Za-z.-]+))?(?:[+_]([0-9A-Za-z.-]+))?$/;
/** `2022.04.26`, `2022-04-26`, `20220426`, `2022.04`; then a counter within the day. */
const datePattern =
  /^v?((?:19|20)\d\d)(?:([.-]?)(0?[1-9]|1[0-2])(?:\2(0?[1-9]|[12]\d|3[01]))?)?(?:[.-]?(\d{1,9}(?:\.\d+)*))?$/;

/** Schemes of numbers; only tags of one scheme can be compared. In order of precedence if equally many tags use them. */
const schemes = { version: 'versions', date: 'dates', number: 'build numbers' } as const;
type Scheme = keyof typeof schemes;

interface Release {
  readonly tag: string;
  readonly scheme: Scheme;
  readonly version: semver.SemVer;
  /** `1214.3` of `9.4-1214.3`: a rebuild of the same version. */
  readonly rebuild: readonly number[];
  /** As parsed by npm, for ranges written in its syntax. */
  readonly literal: semver.SemVer | undefined;
}

const numbersOf = (text: string | undefined): readonly number[] =>
  text === undefined ? [] : text.split('.').map(Number);

const versionOf = (...[major = '0', minor = '0', patch = '0', suffix = '']: (string | undefined)[]) =>
  semver.parse(`${[major, minor, patch].map(Number).join('.')}${suffix}`) ?? undefined;

const readDate = (tag: string, literal: semver.SemVer | undefined): Release | undefined => {
  const [, year, , month, day, within] = datePattern.exec(tag) ?? [];
  const version = year === undefined ? undefined : versionOf(year, month, day);
  return version === undefined ? undefined : { tag, scheme: 'date', version, rebuild: numbersOf(within), literal };
};

/** Larger than any product version: a build number. */
const isCounted = (tag: string): boolean => /^\d{4,}$/.test(tag);

/** `undefined` for tags that are neither. Digits after one or two numbers are a rebuild, any other suffix with `-` a pre-release. */
const readTag = (tag: string): Release | undefined => {
  const [, major, minor, patch, suffix, build] = tagPattern.exec(tag) ?? [];
  const isRebuild = patch === undefined && /^\d+(\.\d+)*$/.test(suffix ?? '');
  const suffixes = `${suffix === undefined ? '' : `-${suffix}`}${build === undefined ? '' : `+${build}`}`;
  const literal = major === undefined ? undefined : versionOf(major, minor, patch, suffixes);
  const date = readDate(tag, literal);
  const version = isRebuild ? versionOf(major, minor, patch) : literal;
  if (date !== undefined || version === undefined) return date;
  const scheme = isCounted(tag) ? 'number' : 'version';
  return { tag, scheme, version, rebuild: isRebuild ? numbersOf(suffix) : [], literal };
};

export const isTagRange = (range: string): boolean => semver.validRange(range) !== null;

const compareNumbers = (a: readonly number[], b: readonly number[]): number => {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at === -1 ? a.length - b.length : (a[at] ?? 0) - (b[at] ?? -1);
};

/** Newest first. Of equal ones the more specific tag comes first, because it does not move. */
const byAge = (a: Release, b: Release): number =>
  semver.rcompare(a.version, b.version) ||
  compareNumbers(b.rebuild, a.rebuild) ||
  b.tag.length - a.tag.length ||
  a.tag.localeCompare(b.tag);

/** The scheme of the numbers in a range; `undefined`: the range matches everything. */
const schemeAsked = (range: semver.Range): 'version' | 'other' | undefined => {
  const majors = range.set.flat().flatMap(({ semver: { major } }) => (typeof major === 'number' ? [major] : []));
  if (majors.length === 0) return undefined;
  return majors.some((major) => major >= 1000) ? 'other' : 'version';
};

export interface ChosenTag {
  readonly tag: string;
  /** Tags that look newer, and why none of them is selected; empty: there are none. */
  readonly passedOver: string;
}

/**
 * The newest tag in `range` (npm's syntax: `>=39 <41`, `^1.2`, `*`); other tags are ignored. A pre-release counts only if the range contains
 * one of the same version. Releases are compared within one scheme: that of the range, else the most frequent one. Throws InvalidInput for an
 * invalid range.
 */
export const chooseTag = (tags: readonly string[], range: string): ChosenTag | undefined => {
  if (!isTagRange(range))
    throw new InvalidInput(`"${range}" is not a valid range of versions; write one such as ">=39 <41"`);
  const wanted = new semver.Range(range);
  const read = tags.map(readTag).filter((release) => release !== undefined);
  const isIn = ({ version, literal }: Release): boolean =>
    wanted.test(version) || (literal !== undefined && wanted.test(literal));
  const inRange = read.filter(isIn);
  const scheme = schemeOf(inRange, schemeAsked(wanted));
  const [newest] = inRange.filter((release) => release.scheme === scheme).sort(byAge);
  if (newest === undefined || scheme === undefined) return undefined;
  const others = (Object.keys(schemes) as Scheme[])
    .filter((other) => other !== scheme)
    .map((other) => listOf(inRange, other, `${schemes[other]}, which are not compared with ${schemes[scheme]}`));
  const withEarly = new semver.Range(range, { includePrerelease: true });
  const isEarly = (release: Release): boolean =>
    isPreRelease(release) && !isIn(release) && withEarly.test(release.version) && byAge(release, newest) < 0;
  const early = read.filter((release) => release.scheme === scheme && isEarly(release));
  const passedOver = [...others, listOf(early, scheme, 'pre-releases')].filter((text) => text !== '').join('; ');
  return { tag: newest.tag, passedOver };
};

const isPreRelease = ({ version }: Release): boolean => version.prerelease.length > 0;

const schemeOf = (releases: readonly Release[], asked: 'version' | 'other' | undefined): Scheme | undefined => {
  const count = (scheme: Scheme) => releases.filter((release) => release.scheme === scheme).length;
  const isAsked = (scheme: Scheme) => asked !== undefined && (scheme === 'version') === (asked === 'version');
  return (Object.keys(schemes) as Scheme[])
    .filter((scheme) => count(scheme) > 0)
    .sort((a, b) => Number(isAsked(b)) - Number(isAsked(a)) || count(b) - count(a))[0];
};

const mostNamed = 3;

const listOf = (releases: readonly Release[], scheme: Scheme, why: string): string => {
  const of = releases.filter((release) => release.scheme === scheme).sort(byAge);
  if (of.length === 0) return '';
  const named = of.slice(0, mostNamed).map(({ tag }) => tag);
  const more = of.length - named.length;
  return `${named.join(', ')}${more === 0 ? '' : ` and ${more} more`} (${why})`;
};
