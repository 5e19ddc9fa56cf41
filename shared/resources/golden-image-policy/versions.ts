// Versions that a policy has taken note of, in the order of arrival. Pure.
import type { CheckStatus, VersionStatus } from '#shared/api/bullion/golden-image-policy.ts';
import type { RolloutVersion, Verdict } from '#shared/golden/rollout/version.ts';
import type { CronResource, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import {
  hasArrived,
  impostorIn,
  isUsable,
  notedUse,
  pinnedDigest,
  verifiedDigest,
} from '#shared/resources/data-import-cron/version.ts';
import type { ObservedPolicy, PolicyCron, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';

/** Versions kept in status, but for those that are there. */
const mostVersions = 50;

export interface FoundVersion {
  readonly name: string;
  readonly cron: CronResource;
  readonly version: ObservedVersion;
}

const foundIn = ({ crons }: ObservedPolicy): readonly FoundVersion[] =>
  crons.flatMap(({ cron, versions }) => [...versions].map(([name, version]) => ({ name, cron, version })));

/** The version of a cron of the policy, where its bytes are there. */
export const usableVersion = (observed: ObservedPolicy, name: string): FoundVersion | undefined =>
  foundIn(observed).find((found) => found.name === name && isUsable(found.version));

export const digestOf = ({ name, cron, version }: FoundVersion): string | undefined => {
  const { current } = cron.state;
  return current?.name === name ? current.digest : (pinnedDigest(version) ?? verifiedDigest(version));
};

/** Reason of a check: what has the name of a version is something else. */
export const notImported = 'NotImported';

export interface Candidate {
  readonly found: FoundVersion;
  readonly digest: string;
  /** What shows that the cron did not import it. */
  readonly impostor: string | undefined;
}

/** Versions with their bytes, the newest first: new ones arrived after all that status lists. */
export const candidatesOf = ({ state }: PolicyResource, crons: readonly PolicyCron[]): readonly Candidate[] => {
  const order = state.versions.map(({ name: known }) => known);
  const rank = (version: string): number => (order.includes(version) ? order.indexOf(version) : order.length);
  return crons
    .flatMap(({ cron, versions }) => [...versions].map(([name, version]): FoundVersion => ({ name, cron, version })))
    .filter(({ name, cron, version }) => hasArrived(cron, name, version))
    .map((found): Candidate => {
      // Of a registry image only the cron knows the digest, and only of its newest version: status keeps it.
      const known = state.versions.find(({ name }) => name === found.name)?.digest;
      const digest = known ?? digestOf(found) ?? 'unknown';
      return { found, digest, impostor: impostorIn(found.cron, found.version, digest) };
    })
    .toSorted((a, b) => rank(b.found.name) - rank(a.found.name) || byArrival(b.found, a.found));
};

/** What a cron offers now came last, whatever was noted of those before. */
const timeOf = ({ name, cron, version }: FoundVersion): number => {
  if (cron.state.offered === name) return Number.POSITIVE_INFINITY;
  const time = Date.parse(notedUse(version) ?? '');
  return Number.isNaN(time) ? 0 : time;
};

const byArrival = (a: FoundVersion, b: FoundVersion): number => {
  const [one, other] = [timeOf(a), timeOf(b)];
  return one === other ? a.name.localeCompare(b.name) : one < other ? -1 : 1;
};

/** Those known before, in their order, and those that are new. `time`: RFC 3339. */
export const arrivals = (policy: PolicyResource, observed: ObservedPolicy, time: string): readonly VersionStatus[] => {
  const found = foundIn(observed);
  const known = policy.state.versions.map((status): VersionStatus => {
    const now = found.find(({ name }) => name === status.name);
    const digest = status.digest ?? (now && digestOf(now));
    return { ...status, ...(digest === undefined ? {} : { digest }) };
  });
  const isKnown = new Set(known.map(({ name }) => name));
  const added = found
    .filter(({ name, cron, version }) => !isKnown.has(name) && hasArrived(cron, name, version))
    .toSorted(byArrival)
    .map((one): VersionStatus => {
      const digest = digestOf(one);
      const { name, cron } = one;
      return {
        name,
        cron: cron.ref.name,
        arrived: time,
        state: 'Waiting',
        ...(digest === undefined ? {} : { digest }),
      };
    });
  return withoutOldest(policy, observed, [...known, ...added]);
};

/** Of those that are gone, unless somebody still means them. */
const withoutOldest = (
  { state, object: { spec } }: PolicyResource,
  observed: ObservedPolicy,
  versions: readonly VersionStatus[],
): readonly VersionStatus[] => {
  const meant = new Set([
    ...state.channels.map(({ version }) => version),
    ...Object.values(spec.pins ?? {}).map(({ version }) => version),
    ...(spec.bad ?? []).map(({ version }) => version),
  ]);
  const isGone = ({ name }: VersionStatus): boolean => !meant.has(name) && usableVersion(observed, name) === undefined;
  const surplus = Math.max(0, versions.length - mostVersions);
  const going = new Set(versions.filter(isGone).slice(0, surplus));
  return versions.filter((version) => !going.has(version));
};

/** As decisions see them. */
export const toRollout = (known: readonly VersionStatus[], observed: ObservedPolicy): readonly RolloutVersion[] =>
  known.map(({ name, digest, held = [] }) => ({
    name,
    digest,
    isUsable: usableVersion(observed, name) !== undefined,
    verdicts: verdictsOf(observed.checks.get(name) ?? []),
    held: new Map(held.map(({ channel, seconds }) => [channel, seconds])),
  }));

const states = { Passed: 'passed', Failed: 'failed', Pending: 'pending' } as const;

const verdictsOf = (checks: readonly CheckStatus[]): readonly Verdict[] =>
  checks.map(({ name, state, reason, message }) => ({
    check: name,
    is: states[state],
    message: `${reason}: ${message}`,
  }));
