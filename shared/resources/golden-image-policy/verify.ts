// The checks of spec.verify on versions that are to enter a channel: run while a policy is observed, recorded in its status, repeated until passed.
import type { CheckStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { SignatureOutcome } from '#shared/golden/signature/outcome.ts';
import { isoTime } from '#shared/populate/state.ts';
import type { PolicyCron, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { fingerprintOf, isDue } from '#shared/resources/golden-image-policy/proof/run.ts';
import { type Candidate, candidatesOf, notImported } from '#shared/resources/golden-image-policy/versions.ts';
import type { Probes } from '#shared/resources/reconciler.ts';

/** Versions checked by one reconciliation, the newest first: older ones follow in the next. */
const mostChecked = 4;

/** Milliseconds before a failed check is repeated: signatures may be published after their image. */
const repeatMs = 10 * 60_000;

const name = 'signature';

/** What the source named when it returned the version that the cron has now: an index may be signed in place of the image. */
const sourceDigestOf = ({ found: { cron }, digest }: Candidate): string | undefined =>
  cron.digest === digest ? cron.state.lastPoll?.sourceDigest : undefined;

const resultOf = (outcome: SignatureOutcome): Pick<CheckStatus, 'state' | 'reason' | 'message' | 'attestations'> => {
  switch (outcome.is) {
    case 'verified': {
      const { message, attestations = [] } = outcome;
      const attested = attestations.length === 0 ? {} : { attestations: [...attestations] };
      return { state: 'Passed', reason: 'Verified', message, ...attested };
    }
    case 'refused':
      return { state: 'Failed', reason: outcome.reason, message: outcome.message };
    case 'unreachable':
      return { state: 'Pending', reason: outcome.reason, message: `${outcome.message}; retrying every minute` };
  }
};

const isToVerify = (before: CheckStatus | undefined, now: number): boolean =>
  before?.state === 'Failed' ? isDue(before, now, repeatMs) : before?.state !== 'Passed';

/** The next tick asks again where nothing was decided. */
const againOf = ({ state }: Pick<CheckStatus, 'state'>, now: number): Pick<CheckStatus, 'nextTry'> =>
  state === 'Failed' ? { nextTry: isoTime(now + repeatMs) } : {};

/** By version: the results of its checks, those of earlier reconciliations included. Empty where the policy asks for none. */
export const checkVersions = async (
  policy: PolicyResource,
  crons: readonly PolicyCron[],
  { verify, now = Date.now }: Probes,
): Promise<ReadonlyMap<string, readonly CheckStatus[]>> => {
  const signature = policy.object.spec.verify?.signature;
  if (signature === undefined) return new Map();
  const rule = fingerprintOf(signature);
  const known = (version: string, digest: string): CheckStatus | undefined =>
    policy.state.versions
      .find((status) => status.name === version)
      ?.checks?.find((check) => check.name === name && check.rule === rule && check.digest === digest);
  const all = candidatesOf(policy, crons);
  const candidates = all.filter(({ impostor }) => impostor === undefined);
  const due = candidates
    .filter(({ found, digest }) => isToVerify(known(found.name, digest), now()))
    .slice(0, mostChecked);
  const checked = await Promise.all(
    candidates.map(async (candidate): Promise<readonly [string, readonly CheckStatus[]]> => {
      const { digest } = candidate;
      const { name: version, cron } = candidate.found;
      const before = known(version, digest);
      const base = { name, digest, rule, time: isoTime(now()) };
      if (!due.includes(candidate)) return [version, [before ?? { ...base, ...inTurn }]];
      if (verify === undefined || cron.source === undefined) return [version, [{ ...base, ...elsewhere }]];
      const { namespace } = policy;
      const asked = {
        source: cron.source,
        namespace,
        rule: signature,
        digest,
        sourceDigest: sourceDigestOf(candidate),
      };
      const result = resultOf(await verify(asked));
      return [version, [{ ...base, ...result, ...againOf(result, now()) }]];
    }),
  );
  const refused = all.flatMap(
    ({ found: { name: version }, digest, impostor }): readonly (readonly [string, readonly CheckStatus[]])[] => {
      if (impostor === undefined) return [];
      const message = `${impostor}: delete it, and the version is imported again`;
      const before = known(version, digest);
      const time = before?.message === message ? before.time : isoTime(now());
      return [[version, [{ name, digest, rule, time, state: 'Failed', reason: notImported, message }]]];
    },
  );
  return new Map([...checked, ...refused]);
};

const inTurn = { state: 'Pending', reason: 'NotChecked', message: 'newer versions are checked first' } as const;
const elsewhere = {
  state: 'Pending',
  reason: 'NotChecked',
  message: 'waiting for a function that can reach the source',
} as const;
