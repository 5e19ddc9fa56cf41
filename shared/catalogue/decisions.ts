// What people decide about versions of golden images: each decision changes one part of a policy. The cluster asks for the right to it, and records
// who it was.
import {
  type GoldenImagePolicy,
  type GoldenImagePolicySpec,
  type RetiredMark,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { InvalidInput, isConflict, NotFound } from '#shared/runtime/errors.ts';

const { type } = goldenImagePolicyKind;
const mostTries = 5;
/** As many as a policy may hold: the oldest make room. */
const mostApprovals = 64;

type Pins = NonNullable<GoldenImagePolicySpec['pins']>;

/** A merge patch of the spec: it removes what is null. */
interface SpecPatch extends Partial<Omit<GoldenImagePolicySpec, 'pins'>> {
  readonly pins?: Readonly<Record<string, Pins[string] | null>>;
}

type Decision = (spec: GoldenImagePolicySpec) => SpecPatch;

export interface Promotion {
  readonly channel: string;
  readonly version: string;
  readonly skipSoak?: boolean | undefined;
  readonly reason?: string | undefined;
}

/** Lets a version into a channel. */
export const promoted =
  ({ channel, version, skipSoak = false, reason }: Promotion): Decision =>
  ({ approvals = [] }) => ({
    approvals: [
      ...approvals.filter((one) => one.channel !== channel || one.version !== version).slice(1 - mostApprovals),
      { channel, version, ...(skipSoak ? { skipSoak } : {}), ...(reason === undefined ? {} : { reason }) },
    ],
  });

/** Keeps a channel at one version. */
export const pinned =
  (channel: string, version: string, reason: string): Decision =>
  ({ pins = {} }) => ({ pins: { ...pins, [channel]: { version, reason } } });

export const unpinned =
  (channel: string): Decision =>
  () => ({ pins: { [channel]: null } });

/** Takes a version out of every channel. */
export const markedBad =
  (version: string, reason: string): Decision =>
  ({ bad = [] }) => ({ bad: [...bad.filter((mark) => mark.version !== version), { version, reason }] });

export const goodAgain =
  (version: string): Decision =>
  ({ bad = [] }) => ({ bad: bad.filter((mark) => mark.version !== version) });

/** What somebody may deprecate. */
type Ending = { readonly version: string } | { readonly channel: string };

const isAbout = (mark: RetiredMark, ending: Ending): boolean =>
  'version' in ending ? mark.version === ending.version : mark.channel === ending.channel;

/** Has disks made from a version or a channel with a warning, or not at all. */
export const deprecated =
  (ending: Ending, mark: Pick<RetiredMark, 'obsolete' | 'replacement' | 'reason'>): Decision =>
  ({ deprecated: marks = [] }) => ({
    deprecated: [...marks.filter((one) => !isAbout(one, ending)), { ...ending, ...mark }],
  });

export const undeprecated =
  (ending: Ending): Decision =>
  ({ deprecated: marks = [] }) => ({ deprecated: marks.filter((one) => !isAbout(one, ending)) });

/** For the policy as it was read: what somebody else decided meanwhile is not overwritten. */
export const decide = async (kube: KubeClient, policy: GoldenImagePolicy, decision: Decision): Promise<void> => {
  let now = policy;
  for (let attempt = 1; ; attempt += 1) {
    const { resourceVersion } = now.metadata;
    try {
      await kube.mergePatch(type, policy.metadata, { metadata: { resourceVersion }, spec: decision(now.spec) });
      return;
    } catch (error) {
      const current = isConflict(error) && attempt < mostTries ? await kube.get(type, policy.metadata) : undefined;
      if (current === undefined) throw error;
      now = current;
    }
  }
};

/** Of versions the channel had, the newest good one before the one it has. Throws NotFound where there is none to go to, and InvalidInput where one must be named. */
export const versionBefore = ({ status, metadata }: GoldenImagePolicy, channel: string): string => {
  const current = status?.channels?.find(({ name }) => name === channel)?.version;
  const versions = status?.versions ?? [];
  const at = versions.findIndex(({ name }) => name === current);
  const had = versions
    .slice(0, Math.max(0, at))
    .findLast(({ state, held = [] }) => state === 'Verified' && held.some((one) => one.channel === channel));
  if (had !== undefined) return had.name;
  const others = versions.filter(({ name, state }) => state === 'Verified' && name !== current);
  const there = others.map(({ name }) => name).join(', ');
  const since = current === undefined ? 'has no version' : `had no good version before ${current}`;
  const problem = `channel ${channel} of ${metadata.name} ${since}`;
  if (there === '') throw new NotFound(`${problem}, and there is no other good version: wait for the next one`);
  throw new InvalidInput(`${problem}: name one of ${there} (--to)`);
};
