// Copies of the versions of a golden image in other storage classes: which are wanted, and for how long one stays. Pure; asked where disks are made, and
// by the tick.
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { policyOf } from '#shared/golden/rollout/policies.ts';
import { parseSpan } from '#shared/runtime/age.ts';

export interface CopyRule {
  /** Storage classes that each version is copied into at once. */
  readonly prewarm: readonly string[];
  /** Whether a version may also be copied into the class of a first disk. */
  readonly onFirstUse: boolean;
  /** Milliseconds without a new disk after which a copy goes. */
  readonly unusedFor: number;
  /** Whether a version must not be used. */
  readonly isBad: (version: string) => boolean;
  /** Whether a channel has a version or waits for it. */
  readonly isInChannel: (version: string) => boolean;
}

const day = 24 * 3_600_000;
export const usualUnusedFor = 7 * day;
/** A disk that is being made from a copy is done by then. */
export const leastUnusedFor = day / 12;

export const namesIn = (text: string | undefined): readonly string[] =>
  (text ?? '')
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');

type Asked = NonNullable<GoldenImagePolicy['spec']['copies']>;

const askedOf = ({ metadata: { annotations: found = {} } }: Pick<KubeObject, 'metadata'>): Asked => ({
  prewarm: [...namesIn(found[annotations.prewarm])],
  onFirstUse: found[annotations.copyOnFirstUse] === 'true',
});

const judgedBy = (policy: GoldenImagePolicy | undefined): Pick<CopyRule, 'isBad' | 'isInChannel'> => {
  const { bad = [] } = policy?.spec ?? {};
  const { versions = [], channels = [] } = policy?.status ?? {};
  return {
    isBad: (version) =>
      bad.some((mark) => mark.version === version) ||
      versions.some(({ name, state }) => name === version && state === 'Bad'),
    isInChannel: (version) => channels.some((channel) => channel.version === version || channel.next === version),
  };
};

/** A policy decides for its crons, whatever they say themselves. `policies`: those of the namespace of the cron. */
export const copyRuleOf = (cron: KubeObject, policies: readonly GoldenImagePolicy[]): CopyRule => {
  const policy = policyOf(cron, policies);
  const {
    prewarm = [],
    onFirstUse = false,
    unusedFor = '',
  } = policy === undefined ? askedOf(cron) : (policy.spec.copies ?? {});
  return {
    prewarm: [...new Set(prewarm)],
    onFirstUse,
    unusedFor: Math.max(leastUnusedFor, parseSpan(unusedFor) ?? usualUnusedFor),
    ...judgedBy(policy),
  };
};
