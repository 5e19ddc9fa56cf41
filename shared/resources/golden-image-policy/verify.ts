// The checks of spec.verify on versions that are to enter a channel: run while a policy is observed, recorded in its status, repeated until passed.
import { createHash } from 'node:crypto';
import type { CheckStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { SignatureOutcome } from '#shared/golden/signature/outcome.ts';
import { isoTime } from '#shared/populate/state.ts';
import { hasArrived, impostorIn } from '#shared/resources/data-import-cron/version.ts';
import type { PolicyCron, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { digestOf } from '#shared/resources/golden-image-policy/versions.ts';
import type { Probes } from '#shared/resources/reconciler.ts';

/** Versions checked by one reconciliation, the newest first: older ones follow in the next. */
const mostChecked = 4;

/** Milliseconds before a failed check is repeated: signatures may be published after their image. */
const repeatMs = 10 * 60_000;

const name = 'signature';

interface Candidate {
  readonly version: string;
  readonly cron: PolicyCron['cron'];
  readonly digest: string;
  /** What shows that the cron did not import it. */
  readonly impostor: string | undefined;
}

const fingerprintOf = (rule: object): string =>
  createHash('sha256').update(JSON.stringify(rule)).digest('hex').slice(0, 12);

/** Versions with their bytes, the newest first: new ones arrived after all that status lists. */
const candidatesOf = ({ state }: PolicyResource, crons: readonly PolicyCron[]): readonly Candidate[] => {
  const order = state.versions.map(({ name: known }) => known);
  const rank = (version: string): number => (order.includes(version) ? order.indexOf(version) : order.length);
  return crons
    .flatMap(({ cron, versions }) =>
      [...versions]
        .filter(([version, observed]) => hasArrived(cron, version, observed))
        .flatMap(([version, observed]): readonly Candidate[] => {
          // Of a registry image only the cron knows the digest, and only of its newest version: status keeps it.
          const known = state.versions.find((status) => status.name === version)?.digest;
          const digest = known ?? digestOf({ name: version, cron, version: observed });
          return digest === undefined ? [] : [{ version, cron, digest, impostor: impostorIn(cron, observed, digest) }];
        }),
    )
    .toSorted((a, b) => rank(b.version) - rank(a.version));
};

/** What the source named when it returned the version that the cron has now: an index may be signed in place of the image. */
const sourceDigestOf = ({ cron, digest }: Candidate): string | undefined =>
  cron.digest === digest ? cron.state.lastPoll?.sourceDigest : undefined;

const resultOf = (outcome: SignatureOutcome): Pick<CheckStatus, 'state' | 'reason' | 'message'> => {
  switch (outcome.is) {
    case 'verified':
      return { state: 'Passed', reason: 'Verified', message: outcome.message };
    case 'refused':
      return { state: 'Failed', reason: outcome.reason, message: outcome.message };
    case 'unreachable':
      return { state: 'Pending', reason: outcome.reason, message: `${outcome.message}; retrying every minute` };
  }
};

const isDue = (before: CheckStatus | undefined, now: number): boolean =>
  before === undefined ||
  before.state === 'Pending' ||
  before.reason === notImported ||
  (before.state === 'Failed' && !(now - Date.parse(before.time) < repeatMs));

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
  const due = candidates.filter(({ version, digest }) => isDue(known(version, digest), now())).slice(0, mostChecked);
  const checked = await Promise.all(
    candidates.map(async (candidate): Promise<readonly [string, readonly CheckStatus[]]> => {
      const { version, digest, cron } = candidate;
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
      return [version, [{ ...base, ...resultOf(await verify(asked)) }]];
    }),
  );
  const refused = all.flatMap(
    ({ version, digest, impostor }): readonly (readonly [string, readonly CheckStatus[]])[] => {
      if (impostor === undefined) return [];
      const message = `${impostor}: delete it, and the version is imported again`;
      const before = known(version, digest);
      const time = before?.message === message ? before.time : isoTime(now());
      return [[version, [{ name, digest, rule, time, state: 'Failed', reason: notImported, message }]]];
    },
  );
  return new Map([...checked, ...refused]);
};

/** What is offered under the name of a version is something else. */
export const notImported = 'NotImported';

const inTurn = { state: 'Pending', reason: 'NotChecked', message: 'newer versions are checked first' } as const;
const elsewhere = {
  state: 'Pending',
  reason: 'NotChecked',
  message: 'waiting for a function that can reach the source',
} as const;
