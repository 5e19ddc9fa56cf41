// How GoldenImagePolicies are reconciled. One line in registry.ts.
import {
  type GoldenImagePolicy,
  type GoldenImagePolicyStatus,
  goldenImagePolicyKind,
} from '#shared/api/bullion/golden-image-policy.ts';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { setConditions } from '#shared/api/conditions.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { type VirtualMachineInstance, virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import { type KubeObject, type ObjectRef, ownerOf, refOf, isOfType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import { refusalOfFaults, plainReconciler } from '#shared/resources/reconciler.ts';
import { isDeprecationUpToDate, stricter } from '#shared/golden/rollout/deprecation.ts';
import { policyOf, ruleOf, selects } from '#shared/golden/rollout/policies.ts';
import { isUpToDate } from '#shared/resources/data-import-cron/cron.ts';
import { check } from '#shared/resources/golden-image-policy/observed.ts';
import { plan } from '#shared/resources/golden-image-policy/plan.ts';
import {
  type ObservedPolicy,
  type PolicyResource,
  type PolicyState,
  readPolicy,
} from '#shared/resources/golden-image-policy/policy.ts';
import { isLookedAt, isReady } from '#shared/resources/golden-image-policy/verdict.ts';
import { follow, jobMatters } from '#shared/populate/watched-child.ts';
import type { Planner, Reconciler } from '#shared/resources/reconciler.ts';

/** DataSources stay where they are, and nothing else is made. */
const planner: Planner<PolicyResource, ObservedPolicy> = {
  check,
  plan,
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

/** What columns show of the last channel. */
const lastOf = ({ channels, versions }: PolicyState): Partial<GoldenImagePolicyStatus> => {
  const last = channels.at(-1);
  if (last === undefined) return {};
  const offered = versions.find(({ name }) => name === last.version);
  const lifecycle = stricter(last.deprecation, offered?.deprecation)?.state;
  return {
    channel: last.name,
    ...(last.version === undefined ? {} : { version: last.version }),
    ...(lifecycle === undefined ? {} : { lifecycle }),
  };
};

const toStatus = (
  { status = {} }: GoldenImagePolicy,
  { generation }: PolicyResource,
  state: PolicyState,
  now: string,
): GoldenImagePolicyStatus => {
  const { reason, message, phase, observedAt, channels, versions, history, pendingRemovals, pendingEvents } = state;
  const ready = { type: 'Ready', status: isReady(state) ? 'True' : 'False', reason, message } as const;
  return {
    observedGeneration: generation,
    phase,
    ...(observedAt === undefined ? {} : { observedAt }),
    ...lastOf(state),
    ...(status.disks === undefined ? {} : { disks: status.disks }),
    ...(versions.length === 0 ? {} : { newest: versions.at(-1)?.name }),
    channels: [...channels],
    versions: [...versions],
    history: [...history],
    ...(pendingRemovals === 0 ? {} : { pendingRemovals }),
    ...(pendingEvents === 0 ? {} : { pendingEvents }),
    conditions: [...setConditions(status.conditions ?? [], [ready], now)],
  } as GoldenImagePolicyStatus;
};

/** DataSources are to follow what was decided, events are to be sent, or what ended is to be removed. */
const isMoving = ({ state: { phase, pendingEvents, pendingRemovals } }: PolicyResource): boolean =>
  phase === 'Moving' || pendingEvents + pendingRemovals > 0;

const hasMachineMoved = ({ status }: VirtualMachineInstance): boolean =>
  status?.phase !== undefined && status.phase !== 'Pending';

export const goldenImagePolicyReconciler: Reconciler<GoldenImagePolicy, PolicyResource> = {
  ...plainReconciler('Ready', ({ state }, refusal) => ({ ...state, phase: 'Attention', ...refusal })),
  kind: goldenImagePolicyKind,
  watchedChildren: () => [
    { type: dataSourceKind.type, verbs: ['create', 'patch'], ownerOf, matters: () => true },
    // Of throw-away clones and what runs on them. The tick looks at those that do not start, and at time-outs.
    follow(dataVolumes, ['create', 'delete'], ({ status }) => /^(Succeeded|Failed)$/.test(status?.phase ?? '')),
    follow(jobs, ['create', 'delete'], jobMatters),
    follow(virtualMachineInstances, ['create', 'delete'], hasMachineMoved),
  ],
  reads: () => [dataVolumes, persistentVolumeClaims, volumeSnapshots, pods, virtualMachineInstances],
  read: readPolicy,
  toStatus,
  refusalOf: refusalOfFaults,
  plannerOf: () => planner,
  isSettled: (policy, now) =>
    !policy.deleting &&
    (now === undefined || isDeprecationUpToDate(policy.object, now)) &&
    policy.state.observedGeneration === policy.generation &&
    !isMoving(policy) &&
    !isLookedAt(policy.state),
  isRetryDue: isMoving,
  notesOf: (_before, after) => after.notes ?? [],
};

// Which policies a change of a cron concerns: it does not know of them.

/** The version that a cron is done with is none that the policy has taken note of, or the cron is on its way. */
const isNews = ({ status }: GoldenImagePolicy, cron: DataImportCron): boolean => {
  const offered = cron.status?.lastImportedPVC?.name;
  if (offered === undefined) return false;
  const known = status?.versions?.find(({ name }) => name === offered);
  return known === undefined || known.state === 'Gone' || !isUpToDate(cron);
};

/** Policies to look at again because a cron changed. */
export const policiesConcernedBy = async (kube: KubeClient, changed: KubeObject): Promise<readonly ObjectRef[]> => {
  if (!isOfType(changed, dataImportCronKind.type)) return [];
  const { namespace } = changed.metadata;
  const policies = await allIfServed(kube, goldenImagePolicyKind.type, { namespace });
  return policies.filter((one) => selects(one, changed) && isNews(one, changed)).map(refOf);
};

// Which crons a change of a policy concerns: what it keeps of their versions, in place of importsToKeep.

/** The cron was last judged by something else, or a version may have come of age since. `now`: milliseconds since the epoch. */
const isToBeJudged = ({ status }: DataImportCron, policy: GoldenImagePolicy | undefined, now: number): boolean => {
  const { retention } = status ?? {};
  if (policy === undefined) return retention !== undefined;
  return retention?.rule !== ruleOf(policy) || Date.parse(retention.next ?? '') <= now;
};

/** Crons to look at again because their policy changed. */
export const cronsConcernedBy = async (
  kube: KubeClient,
  changed: KubeObject,
  now: number,
): Promise<readonly ObjectRef[]> => {
  if (!isOfType(changed, goldenImagePolicyKind.type)) return [];
  const { namespace } = changed.metadata;
  const crons = await allIfServed(kube, dataImportCronKind.type, { namespace });
  const concerned = crons.filter((cron) => selects(changed, cron) || cron.status?.retention !== undefined);
  if (concerned.length === 0) return [];
  const policies = await allIfServed(kube, goldenImagePolicyKind.type, { namespace });
  return concerned.filter((cron) => isToBeJudged(cron, policyOf(cron, policies), now)).map(refOf);
};

export interface OverlookedVersions {
  /** Takes note of an object that a listing came across. */
  readonly visit: (object: KubeObject) => void;
  /** Policies that a version has come for, or that have clones of versions, whose events were lost. */
  readonly policies: () => readonly ObjectRef[];
  /** Crons whose policy keeps other versions than it did, or whose versions have come of age. `now`: milliseconds since the epoch. */
  readonly crons: (now: number) => readonly ObjectRef[];
}

export const createOverlookedVersions = (): OverlookedVersions => {
  const crons: DataImportCron[] = [];
  const policies: GoldenImagePolicy[] = [];
  const owners = new Set<string>();
  const concerns = (policy: GoldenImagePolicy, cron: DataImportCron): boolean =>
    policy.metadata.namespace === cron.metadata.namespace &&
    selects(policy, cron) &&
    isUpToDate(cron) &&
    isNews(policy, cron);
  return {
    visit: (object) => {
      if (isOfType(object, dataImportCronKind.type)) crons.push(object);
      else if (isOfType(object, goldenImagePolicyKind.type)) policies.push(object);
      else if (object.metadata.labels?.[labels.role] === checkRole) owners.add(ownerOf(object)?.uid ?? '');
    },
    policies: () =>
      policies
        .filter((policy) => owners.has(policy.metadata.uid ?? '') || crons.some((cron) => concerns(policy, cron)))
        .map(refOf),
    crons: (now) =>
      crons
        .filter((cron) => {
          const around = policies.filter(({ metadata }) => metadata.namespace === cron.metadata.namespace);
          return isToBeJudged(cron, policyOf(cron, around), now);
        })
        .map(refOf),
  };
};
