// What the next step of a policy depends on. Reads, and decides nothing.
import {
  type CheckStatus,
  type GoldenImagePolicy,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import { childrenOf, isOwnedBy, type KubeObject } from '#shared/api/object.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { tolerate, allIfServed } from '#shared/clients/kube/tolerant.ts';
import { policyOf, selects } from '#shared/golden/rollout/policies.ts';
import type { SignatureOutcome } from '#shared/golden/signature/outcome.ts';
import { isoTime } from '#shared/populate/state.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { readVersions } from '#shared/resources/data-import-cron/observed.ts';
import type { ObservedPolicy, PolicyCron, PolicyResource } from './policy.ts';
import { fingerprintOf, isDue } from '#shared/resources/golden-image-policy/proof/run.ts';
import { type Candidate, candidatesOf, notImported } from './versions.ts';
import type { Probes } from '#shared/resources/reconciler.ts';
import { Conflict, isNotFound } from '#shared/runtime/errors.ts';

// The checks of spec.verify on versions that are to enter a channel: run while a policy is observed, recorded in its status, repeated until passed.

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
const checkVersions = async (
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

/**
 * DataSources and versions come first, and then the policy once more: where that has changed since it was read, Conflict. So whoever acts on an older
 * policy has older ones of those as well, whose patches are refused: two passes at once cannot undo each other.
 */
export const check = async (kube: KubeClient, policy: PolicyResource, probes: Probes = {}): Promise<ObservedPolicy> => {
  const { namespace, object } = policy;
  const sources = await readSources(kube, policy);
  const proofs = await readProofs(kube, policy);
  const allCrons = await allIfServed(kube, dataImportCronKind.type, { namespace });
  const selected = await Promise.all(
    allCrons
      .filter((cron) => selects(object, cron))
      .map(async (found) => {
        const cron = readCron(found);
        return { cron, versions: await readVersions(kube, cron) };
      }),
  );
  const policies = await allIfServed(kube, goldenImagePolicyKind.type, { namespace });
  mustBeSame(object, policies);
  const owners = selected.map((one) => ({ ...one, owner: policyOf(one.cron.object, policies)?.metadata.name ?? '' }));
  const crons = owners.filter(({ owner }) => owner === object.metadata.name);
  return {
    sources,
    crons,
    taken: owners
      .filter(({ owner }) => owner !== object.metadata.name)
      .map(({ cron, owner }) => ({ cron: cron.ref.name, policy: owner })),
    allCrons,
    policies: new Set(policies.map(({ metadata }) => metadata.name)),
    checks: await checkVersions(policy, crons, probes),
    proofs,
  };
};

const mustBeSame = ({ metadata }: GoldenImagePolicy, found: readonly GoldenImagePolicy[]): void => {
  const now = found.find((one) => one.metadata.name === metadata.name);
  if (now?.metadata.resourceVersion === metadata.resourceVersion) return;
  throw new Conflict(`GoldenImagePolicy ${metadata.name} changed while it was read`);
};

/** Throw-away clones of versions, and what runs on them. */
const readProofs = async (kube: KubeClient, policy: PolicyResource): Promise<ObservedPolicy['proofs']> => {
  const { namespace, ref, object } = policy;
  const options = { namespace, labelSelector: `${childrenOf(ref.uid)},${labels.role}=${checkRole}` };
  const isOf = (child: KubeObject): boolean => isOwnedBy(child, ref.uid);
  const { boot, checks } = object.spec.verify ?? {};
  const clones = (await allIfServed(kube, dataVolumes, options)).filter(isOf);
  if (clones.length === 0 && boot === undefined && checks === undefined) return nothingRuns;
  const [found, workers, machines, claims] = await Promise.all([
    allIfServed(kube, jobs, options),
    allIfServed(kube, pods, options),
    // Those of a boot that nobody asks for any more go with their clones.
    boot === undefined ? [] : readMachines(kube, options),
    Promise.all(clones.map(({ metadata }) => kube.get(persistentVolumeClaims, { namespace, name: metadata.name }))),
  ]);
  return {
    clones,
    claims: new Map(claims.flatMap((claim) => (claim === undefined ? [] : [[claim.metadata.name, claim]]))),
    jobs: found,
    pods: workers,
    machines,
  };
};

const nothingRuns: ObservedPolicy['proofs'] = { clones: [], claims: new Map(), jobs: [], pods: [], machines: [] };

/** `undefined`: the cluster does not have the kind. */
const readMachines = async (kube: KubeClient, options: ListOptions): Promise<ObservedPolicy['proofs']['machines']> =>
  (await tolerate(kube.list(virtualMachineInstances, options), isNotFound))?.items;

const readSources = async (
  kube: KubeClient,
  { namespace, object }: PolicyResource,
): Promise<ReadonlyMap<string, DataSource>> => {
  const names = object.spec.channels.map(({ dataSource }) => dataSource);
  const found = await Promise.all(names.map((name) => kube.get(dataSourceKind.type, { namespace, name })));
  return new Map(found.flatMap((source) => (source === undefined ? [] : [[source.metadata.name, source]])));
};
