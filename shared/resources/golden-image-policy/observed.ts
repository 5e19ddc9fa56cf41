// What the next step of a policy depends on. Reads, and decides nothing.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import { checkRole, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { childrenOf, isOwnedBy } from '#shared/api/owner.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { policyOf, selects } from '#shared/golden/rollout/policies.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { listOf, readVersions } from '#shared/resources/data-import-cron/observed.ts';
import type { ObservedPolicy, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { checkVersions } from '#shared/resources/golden-image-policy/verify.ts';
import type { Probes } from '#shared/resources/reconciler.ts';
import { Conflict, isNotFound } from '#shared/runtime/errors.ts';

/**
 * DataSources and versions come first, and then the policy once more: where that has changed since it was read, Conflict. So whoever acts on an older
 * policy has older ones of those as well, whose patches are refused: two passes at once cannot undo each other.
 */
export const check = async (kube: KubeClient, policy: PolicyResource, probes: Probes = {}): Promise<ObservedPolicy> => {
  const { namespace, object } = policy;
  const sources = await readSources(kube, policy);
  const proofs = await readProofs(kube, policy);
  const allCrons = await listOf(kube, dataImportCronKind.type, { namespace });
  const selected = await Promise.all(
    allCrons
      .filter((cron) => selects(object, cron))
      .map(async (found) => {
        const cron = readCron(found);
        return { cron, versions: await readVersions(kube, cron) };
      }),
  );
  const policies = await listOf(kube, goldenImagePolicyKind.type, { namespace });
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
  const clones = (await listOf(kube, dataVolumes, options)).filter(isOf);
  if (clones.length === 0 && boot === undefined && checks === undefined) return nothingRuns;
  const [found, workers, machines, claims] = await Promise.all([
    listOf(kube, jobs, options),
    listOf(kube, pods, options),
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
const readMachines = async (kube: KubeClient, options: ListOptions): Promise<ObservedPolicy['proofs']['machines']> => {
  try {
    return (await kube.list(virtualMachineInstances, options)).items;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
};

const readSources = async (
  kube: KubeClient,
  { namespace, object }: PolicyResource,
): Promise<ReadonlyMap<string, DataSource>> => {
  const names = object.spec.channels.map(({ dataSource }) => dataSource);
  const found = await Promise.all(names.map((name) => kube.get(dataSourceKind.type, { namespace, name })));
  return new Map(found.flatMap((source) => (source === undefined ? [] : [[source.metadata.name, source]])));
};
