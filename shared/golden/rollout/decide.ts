// Which version each channel of a golden image is to have, and why the next one does not enter. Pure: the same for everybody who asks.
import { type BadMark, type RolloutVersion, badMarkOf, isGood, judgeVersion } from '#shared/golden/rollout/version.ts';
import { toSpan } from '#shared/runtime/age.ts';

export interface RolloutChannel {
  readonly name: string;
  readonly dataSource: string;
  /** Left out: the newest verified version enters at once. */
  readonly after?:
    | { readonly channel: string; readonly soakSeconds: number; readonly approval: 'auto' | 'manual' }
    | undefined;
}

export interface Decided {
  readonly version: string;
  readonly reason: string;
  readonly by?: string | undefined;
}

export interface Approval {
  readonly channel: string;
  readonly version: string;
  readonly skipSoak?: boolean | undefined;
  readonly reason?: string | undefined;
  readonly by?: string | undefined;
}

/** What people want. */
export interface RolloutWish {
  readonly channels: readonly RolloutChannel[];
  readonly pins: ReadonlyMap<string, Decided>;
  readonly bad: readonly BadMark[];
  readonly approvals: readonly Approval[];
}

export interface ChannelMove {
  readonly from?: string | undefined;
  readonly to: string;
  readonly reason: 'Promoted' | 'Pinned' | 'RolledBack';
  readonly by?: string | undefined;
  readonly message: string;
}

/** Why a channel is where it is. */
export interface ChannelStanding {
  readonly reason:
    | 'UpToDate'
    | 'Pinned'
    | 'Soaking'
    | 'WaitingForApproval'
    | 'WaitingForChannel'
    | 'Verifying'
    | 'VerificationFailed'
    | 'NoVersion'
    | 'NoGoodVersion'
    | 'PinNotUsable'
    | 'VersionLost';
  readonly message: string;
  readonly next?: string | undefined;
  readonly soak?: { readonly seconds: number; readonly of: number } | undefined;
}

export interface ChannelDecision {
  readonly name: string;
  readonly version: string | undefined;
  readonly move?: ChannelMove | undefined;
  readonly standing: ChannelStanding;
}

/** One channel, and what is known when its turn comes. */
interface Turn {
  readonly wish: RolloutWish;
  readonly versions: readonly RolloutVersion[];
  readonly channel: RolloutChannel;
  readonly current: string | undefined;
  /** What earlier channels have after this pass. */
  readonly before: ReadonlyMap<string, string>;
}

/** In the order of channels; an earlier one has moved when the next one is decided. */
export const decide = (
  wish: RolloutWish,
  versions: readonly RolloutVersion[],
  current: ReadonlyMap<string, string>,
): readonly ChannelDecision[] => {
  const before = new Map<string, string>();
  return wish.channels.map((channel) => {
    const turn: Turn = { wish, versions, channel, current: current.get(channel.name), before };
    const move = moveOf(turn);
    const version = move?.to ?? turn.current;
    if (version !== undefined) before.set(channel.name, version);
    return { name: channel.name, version, move, standing: standingOf({ ...turn, current: version }) };
  });
};

const find = ({ versions }: Turn, name: string | undefined): RolloutVersion | undefined =>
  versions.find((version) => version.name === name);

const good = ({ versions, wish }: Turn): readonly RolloutVersion[] =>
  versions.filter((version) => isGood(version, wish.bad));

/** Versions that arrived after the one the channel has. */
const newer = ({ versions, current }: Turn): readonly RolloutVersion[] =>
  versions.slice(versions.findIndex(({ name }) => name === current) + 1);

const isBad = ({ wish: { bad } }: Turn, name: string): boolean => badMarkOf({ name }, bad) !== undefined;

const isOlder = (turn: Turn, name: string): boolean =>
  turn.current !== undefined && !newer(turn).some((version) => version.name === name);

const moveOf = (turn: Turn): ChannelMove | undefined => {
  const pinned = pinMove(turn);
  if (pinned !== undefined) return pinned.is === 'move' ? pinned.move : escape(turn);
  const away = escape(turn);
  if (away !== undefined || isStuck(turn)) return away;
  return promotion(turn);
};

/** A pin that cannot be followed holds the channel where it is. */
const pinMove = (turn: Turn): { is: 'move'; move: ChannelMove | undefined } | { is: 'unusable' } | undefined => {
  const pin = turn.wish.pins.get(turn.channel.name);
  if (pin === undefined) return undefined;
  const version = find(turn, pin.version);
  if (version === undefined || !isGood(version, turn.wish.bad)) return { is: 'unusable' };
  if (version.name === turn.current) return { is: 'move', move: undefined };
  const { current: from } = turn;
  const reason = isOlder(turn, version.name) ? 'RolledBack' : 'Pinned';
  return { is: 'move', move: { from, to: version.name, reason, by: pin.by, message: pin.reason } };
};

const isMarked = (turn: Turn): boolean => {
  const version = find(turn, turn.current);
  if (turn.current === undefined) return false;
  return version === undefined ? isBad(turn, turn.current) : badMarkOf(version, turn.wish.bad) !== undefined;
};

/** It has a bad version, and nothing to take in its place. */
const isStuck = (turn: Turn): boolean => isMarked(turn) && retreatOf(turn) === undefined;

/** The newest good version that the channel had before, else the newest that is good at all. */
const retreatOf = (turn: Turn): RolloutVersion | undefined =>
  good(turn).findLast(({ held }) => held.has(turn.channel.name)) ?? good(turn).at(-1);

/** Away from a version that was marked as bad. */
const escape = (turn: Turn): ChannelMove | undefined => {
  const to = isMarked(turn) ? retreatOf(turn) : undefined;
  if (to === undefined) return undefined;
  const { current: from, wish } = turn;
  const mark = badMarkOf(find(turn, from) ?? { name: from ?? '' }, wish.bad);
  return { from, to: to.name, reason: 'RolledBack', by: mark?.by, message: `${from} is bad: ${mark?.reason}` };
};

/** Forward, by itself or since somebody approved. */
const promotion = (turn: Turn): ChannelMove | undefined => {
  const isNewer = new Set(newer(turn).map(({ name }) => name));
  const entering = good(turn).findLast((version) => isNewer.has(version.name) && mayEnter(turn, version));
  if (entering === undefined) return undefined;
  const { current: from, channel } = turn;
  const approval = approvalOf(turn, entering);
  return {
    from,
    to: entering.name,
    reason: 'Promoted',
    by: approval?.by,
    message: approval?.reason ?? wayOf(channel, approval),
  };
};

const wayOf = ({ after }: RolloutChannel, approval: Approval | undefined): string => {
  if (approval !== undefined) return `approved${approval.skipSoak === true ? ', without its soak' : ''}`;
  if (after === undefined) return 'the newest verified version';
  return `channel ${after.channel} has had it for ${toSpan(after.soakSeconds * 1000)}`;
};

const approvalOf = ({ wish, channel }: Turn, { name }: RolloutVersion): Approval | undefined =>
  channel.after === undefined
    ? undefined
    : wish.approvals.find((one) => one.channel === channel.name && one.version === name);

/** Seconds that the channel before had it; `undefined`: it never did. */
const soakOf = ({ channel, before }: Turn, { held, name }: RolloutVersion): number | undefined => {
  const from = channel.after?.channel ?? '';
  return held.get(from) ?? (before.get(from) === name ? 0 : undefined);
};

const isSoaked = (turn: Turn, version: RolloutVersion): boolean => {
  const soaked = soakOf(turn, version);
  return soaked !== undefined && soaked >= (turn.channel.after?.soakSeconds ?? 0);
};

const mayEnter = (turn: Turn, version: RolloutVersion): boolean => {
  const { after } = turn.channel;
  if (after === undefined) return true;
  const approval = approvalOf(turn, version);
  if (approval?.skipSoak === true) return true;
  return isSoaked(turn, version) && (after.approval === 'auto' || approval !== undefined);
};

const standingOf = (turn: Turn): ChannelStanding => {
  const pin = turn.wish.pins.get(turn.channel.name);
  if (isMarked(turn))
    return {
      reason: 'NoGoodVersion',
      message: `${turn.current} is marked as bad and stays in use, since there is no good version to replace it: publish one`,
    };
  if (pin !== undefined) return pinStanding(turn, pin);
  const version = find(turn, turn.current);
  if (turn.current !== undefined && version?.isUsable !== true)
    return {
      reason: 'VersionLost',
      message: `${turn.current} no longer exists: it is imported again if the source still has it; otherwise pin another version`,
    };
  return turn.channel.after === undefined ? firstStanding(turn) : laterStanding(turn, turn.channel.after);
};

const pinStanding = (turn: Turn, { version, reason, by }: Decided): ChannelStanding => {
  if (turn.current === version)
    return {
      reason: 'Pinned',
      message: `stays at ${version}${by === undefined ? '' : `, by ${by}`}: ${reason} (bullion unpin)`,
    };
  const found = find(turn, version);
  const why = found === undefined ? 'there is no such version' : judgeVersion(found, turn.wish.bad).message;
  return {
    reason: 'PinNotUsable',
    next: version,
    message: `pinned to ${version}, which cannot be used: ${why}; it stays at ${turn.current ?? 'nothing'} until the pin is changed or removed`,
  };
};

/** Of the version in use as well: a check that was added later, or a policy that came later, may not pass it. */
const upToDate = (turn: Turn, nothing: ChannelStanding): ChannelStanding => {
  const { current, wish } = turn;
  const version = find(turn, current);
  if (version === undefined) return nothing;
  const { state, message } = judgeVersion(version, wish.bad);
  if (state === 'Waiting')
    return { reason: 'Verifying', message: `${current} stays in use while it is verified: ${message}` };
  if (state === 'Failed')
    return {
      reason: 'VerificationFailed',
      message: `${current} stays in use, since there is no good version to replace it: ${message}; publish a good one`,
    };
  return { reason: 'UpToDate', message: `${current} is the newest version that may enter` };
};

const firstStanding = (turn: Turn): ChannelStanding => {
  const waiting = newer(turn)
    .map((version) => ({ version, ...judgeVersion(version, turn.wish.bad) }))
    .findLast(({ state }) => state === 'Waiting' || state === 'Failed');
  if (waiting === undefined)
    return upToDate(turn, { reason: 'NoVersion', message: 'no version has been imported and verified yet' });
  const { version, state, message } = waiting;
  if (state === 'Waiting')
    return { reason: 'Verifying', next: version.name, message: `${version.name} is being verified: ${message}` };
  return {
    reason: 'VerificationFailed',
    next: version.name,
    message: `${version.name} is not offered: ${message}; publish a good one`,
  };
};

const laterStanding = (turn: Turn, after: NonNullable<RolloutChannel['after']>): ChannelStanding => {
  const isNewer = new Set(newer(turn).map(({ name }) => name));
  const coming = good(turn).filter(({ name }) => isNewer.has(name));
  const soaked = coming.findLast((version) => isSoaked(turn, version));
  const soaking = coming.find(({ name }) => name === turn.before.get(after.channel) && name !== soaked?.name);
  if (soaked !== undefined)
    return {
      reason: 'WaitingForApproval',
      next: soaked.name,
      message: `${soaked.name} may enter once it is approved: bullion promote ${turn.channel.name} ${soaked.name}`,
    };
  if (soaking !== undefined) return soakingOf(turn, soaking, after);
  return upToDate(turn, {
    reason: 'WaitingForChannel',
    message: `waits for a version that channel ${after.channel} has had for ${toSpan(after.soakSeconds * 1000)}: that channel has no good version yet`,
  });
};

const soakingOf = (
  turn: Turn,
  version: RolloutVersion,
  after: NonNullable<RolloutChannel['after']>,
): ChannelStanding => {
  const seconds = soakOf(turn, version) ?? 0;
  const isAsked = after.approval === 'manual' && approvalOf(turn, version) === undefined;
  return {
    reason: 'Soaking',
    next: version.name,
    soak: { seconds, of: after.soakSeconds },
    message:
      `channel ${after.channel} has had ${version.name} for ${toSpan(seconds * 1000)} of ${toSpan(after.soakSeconds * 1000)}` +
      (isAsked ? '; then it has to be approved' : ''),
  };
};
