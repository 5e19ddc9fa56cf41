// The next step of a policy: takes note of versions, decides what each channel has, points DataSources to what was decided before. Pure.
import type { ChannelStatus, HistoryEntry, VersionStatus } from '#shared/api/bullion/golden-image-policy.ts';
import {
  type ChannelDecision,
  type ChannelMove,
  type ChannelStanding,
  type RolloutWish,
  decide,
} from '#shared/golden/rollout/decide.ts';
import { deprecationOfChannel, deprecationOfVersion } from '#shared/golden/rollout/deprecation.ts';
import {
  type RolloutVersion,
  badMarkOf,
  countHeld,
  judgeVersion,
  recordedStep,
  stepSince,
} from '#shared/golden/rollout/version.ts';
import type { Action, PlanContext } from '#shared/populate/actions.ts';
import { isoTime } from '#shared/populate/state.ts';
import {
  channelMark,
  endsOf,
  markVersions,
  withDeprecation,
} from '#shared/resources/golden-image-policy/deprecated.ts';
import { notesOf } from '#shared/resources/golden-image-policy/history.ts';
import {
  type ObservedPolicy,
  type PolicyResource,
  type PolicyState,
  wishOf,
} from '#shared/resources/golden-image-policy/policy.ts';
import { planProofs } from '#shared/resources/golden-image-policy/proof/plan.ts';
import { adoptedBy, ownerTrouble, pointChannel } from '#shared/resources/golden-image-policy/sources.ts';
import { conclude, withoutCrons } from '#shared/resources/golden-image-policy/verdict.ts';
import { arrivals, toRollout } from '#shared/resources/golden-image-policy/versions.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

/** Entries of history that are kept. */
const mostHistory = 50;

type Step = PlannedStep<PolicyState>;

/**
 * What is decided is written into the status first, for the policy as it was read; DataSources follow in the next pass, by nothing but that status. So
 * a pass that dies, or one that is late, leaves nothing that was not decided.
 */
export const plan = (policy: PolicyResource, found: ObservedPolicy, context: PlanContext): Step => {
  const { now } = context;
  const proving = planProofs(policy, found, context);
  const observed = { ...found, checks: allChecks(found.checks, proving.checks) };
  const known = arrivals(policy, observed, isoTime(now));
  const blocked = blockedChannels(policy, observed);
  const whole = wishOf(policy);
  const wish: RolloutWish = { ...whole, channels: whole.channels.filter(({ name }) => !blocked.has(name)) };
  const adopted = adoptedBy(policy, observed, { known, blocked });
  const before = new Map([...held(policy.state, blocked), ...adopted]);
  const counted = count(policy, { wish, before, versions: toRollout(known, observed), now });
  const { decisions } = counted;
  const { spec } = policy.object;
  const after = new Map(decisions.flatMap(({ name, version }) => (version === undefined ? [] : [[name, version]])));
  const judged = toStatuses(known, countHeld(counted.versions, after, 0), { wish, checks: observed.checks });
  const versions = judged.map((version) =>
    version.state === 'Gone' ? version : withDeprecation(version, deprecationOfVersion(spec, version, now)),
  );
  const entries = entriesOf(policy, { decisions, adopted, versions, wish, time: isoTime(now) });
  const ends = endsOf(policy, versions, isoTime(now));
  const next: PolicyState = {
    ...policy.state,
    observedGeneration: policy.generation,
    observedAt: counted.observedAt,
    channels: whole.channels.map(({ name, dataSource }) => {
      const status = blocked.get(name) ?? statusOf(policy, dataSource, { decisions, name, adopted, now, observed });
      return withDeprecation(status, deprecationOfChannel(spec, name));
    }),
    versions,
    history: [...policy.state.history, ...entries, ...ends].slice(-mostHistory),
    pendingRemovals: proving.ended,
    pendingEvents: Math.min(mostHistory, entries.length + ends.length),
  };
  const concluded = conclude(next, withoutCrons(policy, observed));
  return {
    actions: [
      ...actionsOf(policy, observed, { decisions, versions }),
      ...markVersions(policy, observed, versions),
      ...proving.actions,
    ],
    starts: proving.starts,
    state: { ...concluded, notes: notesOf(policy, concluded) },
  };
};

type Checks = ObservedPolicy['checks'];

const allChecks = (signatures: Checks, others: Checks): Checks =>
  new Map(
    [...new Set([...signatures.keys(), ...others.keys()])].map((version) => [
      version,
      [...(signatures.get(version) ?? []), ...(others.get(version) ?? [])],
    ]),
  );

/** Channels whose DataSource is somebody else's. */
const blockedChannels = (policy: PolicyResource, observed: ObservedPolicy): ReadonlyMap<string, ChannelStatus> =>
  new Map(
    policy.object.spec.channels.flatMap(({ name, dataSource }) => {
      const message = ownerTrouble(policy, observed, dataSource);
      return message === undefined ? [] : [[name, { name, dataSource, reason: 'DataSourceUnmanaged', message }]];
    }),
  );

const held = (state: PolicyState, blocked: ReadonlyMap<string, unknown>): readonly (readonly [string, string])[] =>
  state.channels.flatMap(({ name, version }) => (version === undefined || blocked.has(name) ? [] : [[name, version]]));

interface Counting {
  readonly wish: RolloutWish;
  readonly before: ReadonlyMap<string, string>;
  readonly versions: readonly RolloutVersion[];
  readonly now: number;
}

interface Counted {
  readonly decisions: readonly ChannelDecision[];
  readonly versions: readonly RolloutVersion[];
  readonly observedAt: string | undefined;
}

/** Time counts only while somebody waits for it, and is written down when it makes a difference or is long enough. */
const count = ({ state }: PolicyResource, { wish, before, versions, now }: Counting): Counted => {
  const isSoaking = (channels: readonly { readonly reason: string }[]): boolean =>
    channels.some(({ reason }) => reason === 'Soaking');
  const since = Date.parse(state.observedAt ?? '');
  const wasSoaking = isSoaking(state.channels);
  const step = wasSoaking ? stepSince(since, now) : 0;
  const stepped = countHeld(versions, before, step);
  const sooner = decide(wish, stepped, before);
  const waited = decide(wish, versions, before);
  const isOver = sooner.some(
    ({ move, standing }, index) => move !== undefined || standing.reason !== waited[index]?.standing.reason,
  );
  const isDue = step >= recordedStep || isOver;
  const decisions = isDue ? sooner : waited;
  // A clock that went back begins anew, or nothing would count until it is where it was.
  const isAnew = isDue || !wasSoaking || !(since <= now);
  const observedAt = isAnew ? isoTime(now) : state.observedAt;
  return {
    decisions,
    versions: isDue ? stepped : versions,
    observedAt: isSoaking(decisions.map(({ standing }) => standing)) ? observedAt : undefined,
  };
};

const toStatuses = (
  known: readonly VersionStatus[],
  versions: readonly RolloutVersion[],
  { wish: { bad }, checks }: { readonly wish: RolloutWish; readonly checks: ObservedPolicy['checks'] },
): readonly VersionStatus[] =>
  known.flatMap((status) => {
    const version = versions.find(({ name }) => name === status.name);
    if (version === undefined) return [];
    const { state, message } = judgeVersion(version, bad);
    const times = [...version.held].map(([channel, seconds]) => ({ channel, seconds }));
    const { message: _, held: __, checks: ___, ...rest } = status;
    // Of one that is gone, the last results stay.
    const results = checks.get(status.name) ?? (state === 'Gone' ? (status.checks ?? []) : []);
    return {
      ...rest,
      state,
      ...(message === undefined ? {} : { message }),
      ...(results.length === 0 ? {} : { checks: [...results] }),
      ...(times.length === 0 ? {} : { held: times }),
    };
  });

interface Standings {
  readonly decisions: readonly ChannelDecision[];
  readonly name: string;
  readonly adopted: ReadonlyMap<string, string>;
  readonly now: number;
  readonly observed: ObservedPolicy;
}

const noStanding: ChannelStanding = { reason: 'NoVersion', message: 'nothing was decided yet' };

/** The cron says what keeps the first version from being imported. */
const withWhere = ({ reason, message }: ChannelStanding, { crons }: ObservedPolicy): string => {
  const [first] = crons;
  if (reason !== 'NoVersion' || first === undefined) return message;
  const { name, namespace } = first.cron.ref;
  return `${message}: bullion why dataimportcron/${name} -n ${namespace} says why`;
};

const statusOf = (
  { state }: PolicyResource,
  dataSource: string,
  { decisions, name, adopted, now, observed }: Standings,
): ChannelStatus => {
  const decision = decisions.find((one) => one.name === name);
  const before = state.channels.find((one) => one.name === name);
  const { version, move } = decision ?? {};
  const isNew = move !== undefined || adopted.has(name);
  const { reason, message, next, soak } = decision?.standing ?? noStanding;
  return {
    name,
    dataSource,
    ...(version === undefined ? {} : { version, since: isNew ? isoTime(now) : (before?.since ?? isoTime(now)) }),
    ...(next === undefined ? {} : { next }),
    ...(soak === undefined ? {} : { soakSeconds: soak.of, soakedSeconds: soak.seconds }),
    reason,
    message: withWhere({ reason, message }, observed),
  };
};

interface Happening {
  readonly decisions: readonly ChannelDecision[];
  readonly adopted: ReadonlyMap<string, string>;
  readonly versions: readonly VersionStatus[];
  readonly wish: RolloutWish;
  readonly time: string;
}

/** What happens in this pass, for the record. */
const entriesOf = (
  { state }: PolicyResource,
  { decisions, adopted, versions, wish, time }: Happening,
): readonly HistoryEntry[] => {
  const isNews = ({ name, state: now }: VersionStatus): boolean =>
    now === 'Bad' && state.versions.find((one) => one.name === name)?.state !== 'Bad';
  const marked = versions.filter(isNews).map((version): HistoryEntry => {
    const mark = badMarkOf(version, wish.bad);
    return { time, to: version.name, reason: 'MarkedBad', ...byOf(mark?.by), message: mark?.reason ?? '' };
  });
  const taken = [...adopted].map(([channel, to]): HistoryEntry => {
    return { time, channel, to, reason: 'Adopted', message: 'its DataSource had it when the policy came' };
  });
  const moved = decisions.flatMap(({ name, move }) => (move === undefined ? [] : [entryOf(name, move, time)]));
  return [...taken, ...marked, ...moved];
};

const byOf = (by: string | undefined): { readonly by?: string } => (by === undefined ? {} : { by });

const entryOf = (channel: string, { from, to, reason, by, message }: ChannelMove, time: string): HistoryEntry => ({
  time,
  channel,
  ...(from === undefined ? {} : { from }),
  to,
  reason,
  ...byOf(by),
  message,
});

/** Of channels that the status has had in this place since before this pass. */
const actionsOf = (
  policy: PolicyResource,
  observed: ObservedPolicy,
  {
    decisions,
    versions,
  }: { readonly decisions: readonly ChannelDecision[]; readonly versions: readonly VersionStatus[] },
): readonly Action[] =>
  decisions.flatMap(({ name, version }) => {
    const { spec } = policy.object;
    const before = policy.state.channels.find((one) => one.name === name);
    const dataSource = spec.channels.find((one) => one.name === name)?.dataSource ?? '';
    if (version === undefined || before?.version !== version) return [];
    const mark = channelMark(policy, versions, { name, version });
    return pointChannel(policy, observed, { dataSource, version, mark });
  });
