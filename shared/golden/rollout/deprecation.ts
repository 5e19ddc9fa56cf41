// Versions and channels that disks should not be made from any more: by age, or by hand. Pure, and decided anew from times each time, so that what a
// clock did that was wrong is undone once it is right. What was decided is a mark on DataSources and on versions, which admission reads.
import { z } from 'zod';
import { DeprecationStatus } from '#shared/api/bullion/lifecycle.ts';
import type { GoldenImagePolicy, GoldenImagePolicySpec } from '#shared/api/bullion/golden-image-policy.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { isoTime } from '#shared/populate/state.ts';
import { parseSpan, toSpan } from '#shared/runtime/age.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';

/** What is known of a version beside the policy. */
interface Aging {
  readonly name: string;
  /** RFC 3339. */
  readonly arrived: string;
}

type Rules = Pick<GoldenImagePolicySpec, 'deprecation' | 'deprecated'>;

const byHand = (
  { deprecated = [] }: Rules,
  isMeant: (mark: { readonly version?: string | undefined; readonly channel?: string | undefined }) => boolean,
): DeprecationStatus | undefined => {
  const mark = deprecated.find(isMeant);
  if (mark === undefined) return undefined;
  const { obsolete = false, reason: message, replacement, by, at: since } = mark;
  return withoutUndefined({ state: obsolete ? 'Obsolete' : 'Deprecated', since, message, replacement, by });
};

const withoutUndefined = (status: DeprecationStatus): DeprecationStatus =>
  Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined)) as DeprecationStatus;

/** A time that cannot be read is no age: nothing ends by a guess. */
const byAge = ({ deprecation = {} }: Rules, { arrived }: Aging, now: number): DeprecationStatus | undefined => {
  const limits = [
    ['Obsolete', deprecation.obsoleteAfter],
    ['Deprecated', deprecation.after],
  ] as const;
  for (const [state, span] of limits) {
    const age = parseSpan(span ?? '');
    if (age === undefined) continue;
    const since = Date.parse(arrived) + age;
    if (!(now >= since)) continue;
    const message = `it is older than ${toSpan(age)}`;
    return withoutUndefined({ state, since: isoTime(since), message, replacement: deprecation.replacement });
  }
  return undefined;
};

/** The stricter of two; of equals the first. */
export const stricter = (
  one: DeprecationStatus | undefined,
  other: DeprecationStatus | undefined,
): DeprecationStatus | undefined =>
  one === undefined || (one.state === 'Deprecated' && other?.state === 'Obsolete') ? other : one;

export const deprecationOfVersion = (rules: Rules, version: Aging, now: number): DeprecationStatus | undefined =>
  stricter(
    byHand(rules, (mark) => mark.version === version.name),
    byAge(rules, version, now),
  );

export const deprecationOfChannel = (rules: Rules, channel: string): DeprecationStatus | undefined =>
  byHand(rules, (mark) => mark.channel === channel);

/** Whether the status says what its times say now. */
export const isDeprecationUpToDate = ({ spec, status }: GoldenImagePolicy, now: number): boolean =>
  (status?.versions ?? []).every(
    (version) =>
      version.state === 'Gone' || deprecationOfVersion(spec, version, now)?.state === version.deprecation?.state,
  );

const Mark = DeprecationStatus.extend({
  policy: z.string().describe('of the same namespace'),
  /** What is meant: a version, or the channel as such. */
  version: z.string().optional(),
});
export type DeprecationMark = z.infer<typeof Mark>;

export const toMark = (policy: string, version: string | undefined, status: DeprecationStatus | undefined) =>
  status &&
  JSON.stringify({ policy, ...(version === undefined ? {} : { version }), ...status } satisfies DeprecationMark);

/** `undefined`: disks should be made from it. */
export const deprecationIn = (object: KubeObject | undefined): DeprecationMark | undefined =>
  parseJsonAs(Mark, object?.metadata.annotations?.[annotations.deprecation]);

/** Of an image by itself, which no policy has: its owners write the mark. */
export const deprecationOfImage = (image: KubeObject | undefined): DeprecationStatus | undefined =>
  parseJsonAs(DeprecationStatus, image?.metadata.annotations?.[annotations.deprecation]);

/** The sentence for people about a version, a channel or an image. */
export const sentenceOf = (
  { state, since, message, replacement, by }: DeprecationStatus,
  kind: 'DataSource' | 'image' = 'DataSource',
): string =>
  `${state.toLowerCase()}${since === undefined ? '' : ` since ${since}`}${by === undefined ? '' : `, by ${by}`}: ${message}${
    replacement === undefined ? '' : `; use ${kind} ${replacement} instead`
  }`;
