// One version of a golden image on its way through channels: whether it may be offered, and how long channels had it. Pure.

/** What one check says of a version. A signature, a boot, a Job of the user's: each is one of these. */
export interface Verdict {
  /** Names the check, for people. */
  readonly check: string;
  readonly is: 'passed' | 'failed' | 'pending';
  readonly message: string;
}

/** In the order of arrival, oldest first. */
export interface RolloutVersion {
  readonly name: string;
  readonly digest?: string | undefined;
  /** Its bytes are there, in a form that can be offered. */
  readonly isUsable: boolean;
  readonly verdicts: readonly Verdict[];
  /** Seconds that channels were observed to have it; a channel that is there had it at some time. */
  readonly held: ReadonlyMap<string, number>;
}

export interface BadMark {
  readonly version: string;
  readonly digest?: string | undefined;
  readonly reason: string;
  readonly by?: string | undefined;
}

/** The mark that says a version is bad: of its name, or of the same bytes under another one. */
export const badMarkOf = (
  { name, digest }: Pick<RolloutVersion, 'name' | 'digest'>,
  bad: readonly BadMark[],
): BadMark | undefined =>
  bad.find((mark) => mark.version === name || (mark.digest !== undefined && mark.digest === digest));

export interface VersionJudgement {
  readonly state: 'Waiting' | 'Verified' | 'Failed' | 'Bad' | 'Gone';
  /** Why it may not be offered. */
  readonly message?: string | undefined;
}

/** With no check at all, a version is verified when its bytes are there. */
export const judgeVersion = (version: RolloutVersion, bad: readonly BadMark[]): VersionJudgement => {
  const mark = badMarkOf(version, bad);
  if (mark !== undefined) return { state: 'Bad', message: mark.reason };
  if (!version.isUsable)
    return {
      state: 'Gone',
      message: 'neither its volume nor a snapshot of it is there; bullion undelete lists what can be brought back',
    };
  const failed = version.verdicts.find(({ is }) => is === 'failed');
  if (failed !== undefined) return { state: 'Failed', message: `${failed.check}: ${failed.message}` };
  const pending = version.verdicts.find(({ is }) => is === 'pending');
  if (pending !== undefined) return { state: 'Waiting', message: `${pending.check}: ${pending.message}` };
  return { state: 'Verified' };
};

export const isGood = (version: RolloutVersion, bad: readonly BadMark[]): boolean =>
  judgeVersion(version, bad).state === 'Verified';

// How long channels had a version. The clock may jump: what counts is time that was observed, step by step.

/** The most that one look adds, in seconds: a jump of the clock counts as one such step, and so does a time when nobody looked. */
export const mostStep = 300;

/** A step is written down once it is that long, in seconds, or when something else is. */
export const recordedStep = 120;

/** Seconds since a look; none where the clock went back. Times are milliseconds since the epoch. */
export const stepSince = (before: number | undefined, now: number): number =>
  before === undefined || Number.isNaN(before) ? 0 : Math.min(mostStep, Math.max(0, Math.floor((now - before) / 1000)));

/** The versions, with `seconds` more for what each channel has. */
export const countHeld = (
  versions: readonly RolloutVersion[],
  current: ReadonlyMap<string, string>,
  seconds: number,
): readonly RolloutVersion[] =>
  versions.map((version) => {
    const channels = [...current].filter(([, name]) => name === version.name).map(([channel]) => channel);
    if (channels.length === 0) return version;
    const held = new Map(version.held);
    for (const channel of channels) held.set(channel, (held.get(channel) ?? 0) + seconds);
    return { ...version, held };
  });
