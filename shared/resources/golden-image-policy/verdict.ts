// What a policy says of itself as a whole. Pure.
import type { ChannelStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { ObservedPolicy, PolicyResource, PolicyState } from '#shared/resources/golden-image-policy/policy.ts';

interface Trouble {
  readonly reason: string;
  readonly message: string;
}

/** Reasons of channels that need somebody. */
const troubles: ReadonlySet<string> = new Set(['NoGoodVersion', 'PinNotUsable', 'VersionLost', 'DataSourceUnmanaged']);
export const isTrouble = (reason: string): boolean => troubles.has(reason);

/** Reasons of channels that wait for what comes with time, or by an event that nobody sends: the tick looks. */
const looked: ReadonlySet<string> = new Set([
  'Soaking',
  'Verifying',
  'VerificationFailed',
  'VersionLost',
  'PinNotUsable',
  'DataSourceUnmanaged',
]);

/** Reasons of channels that have what they may have. */
const calm: ReadonlySet<string> = new Set(['UpToDate', 'Pinned']);

const hasNoCrons = (reason: string): boolean =>
  reason === 'NoCrons' || reason === 'CronDeleted' || reason === 'CronOfOtherPolicy';

/** Begins the reasons of what the API refused (index.ts). */
const ofApi = 'Api';

/** Why no step could be taken at all: that may change without an event. */
const isBlocked = (reason: string): boolean => hasNoCrons(reason) || reason.startsWith(ofApi);

export const isLookedAt = ({ reason, channels }: PolicyState): boolean =>
  isBlocked(reason) || channels.some((channel) => looked.has(channel.reason));

/** Why there is nothing to roll out at all. */
export const withoutCrons = (
  { object: { spec }, state }: PolicyResource,
  { crons, taken }: ObservedPolicy,
): Trouble | undefined => {
  const [other] = taken;
  if (other !== undefined)
    return {
      reason: 'CronOfOtherPolicy',
      message: `DataImportCron ${other.cron} is GoldenImagePolicy ${other.policy}'s, which is older: select another cron, or delete that policy`,
    };
  if (crons.length > 0) return undefined;
  const gone = [...new Set(state.versions.map(({ cron }) => cron))];
  if (gone.length > 0)
    return {
      reason: 'CronDeleted',
      message: `DataImportCron ${gone.join(', ')} is gone, or has other labels now: no more versions are imported, and DataSources stay where they are; create it again, select another, or delete this policy`,
    };
  const { names, matchLabels = {} } = spec.dataImportCrons;
  const which =
    names?.join(', ') ??
    Object.entries(matchLabels)
      .map(([key, value]) => `${key}=${value}`)
      .join(',');
  return {
    reason: 'NoCrons',
    message: `there is no DataImportCron ${which} in this namespace: create one, or select another`,
  };
};

const messageOfChannel = ({ name, message }: ChannelStatus): string => `channel ${name}: ${message}`;

/** Whether every channel has a version that may be used; and what to look at first. */
const standingOf = (
  { channels }: PolicyState,
  trouble: Trouble | undefined,
): Pick<PolicyState, 'phase' | 'reason' | 'message'> => {
  if (trouble !== undefined) return { phase: 'Attention', ...trouble };
  const wrong = channels.find(({ reason }) => isTrouble(reason));
  if (wrong !== undefined) return { phase: 'Attention', reason: wrong.reason, message: messageOfChannel(wrong) };
  const failed = channels.find(({ reason }) => reason === 'VerificationFailed');
  if (failed !== undefined) return { phase: 'Attention', reason: failed.reason, message: messageOfChannel(failed) };
  const waiting = channels.find(({ reason }) => !calm.has(reason));
  if (waiting !== undefined) return { phase: 'Waiting', reason: waiting.reason, message: messageOfChannel(waiting) };
  return { phase: 'Ready', reason: 'Ready', message: 'every channel has the newest version that it may have' };
};

export const conclude = (next: PolicyState, trouble: Trouble | undefined): PolicyState => {
  const standing = standingOf(next, trouble);
  return { ...next, ...standing, phase: next.pendingEvents + next.pendingRemovals > 0 ? 'Moving' : standing.phase };
};

/** Whether disks can be made from every channel. */
export const isReady = ({ reason, channels }: PolicyState): boolean =>
  !hasNoCrons(reason) &&
  channels.length > 0 &&
  channels.every((channel) => channel.version !== undefined && !isTrouble(channel.reason));
