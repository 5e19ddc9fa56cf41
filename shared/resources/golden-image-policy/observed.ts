// What the next step of a policy depends on. Reads, and decides nothing.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { policyOf, selects } from '#shared/golden/rollout/policies.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { listOf, readVersions } from '#shared/resources/data-import-cron/observed.ts';
import type { ObservedPolicy, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { checkVersions } from '#shared/resources/golden-image-policy/verify.ts';
import type { Probes } from '#shared/resources/reconciler.ts';
import { Conflict } from '#shared/runtime/errors.ts';

/**
 * DataSources come first, and then the policy once more: where that has changed since it was read, Conflict. So whoever acts on an older policy has an
 * older DataSource as well, whose patch is refused: two passes at once cannot undo each other.
 */
export const check = async (kube: KubeClient, policy: PolicyResource, probes: Probes = {}): Promise<ObservedPolicy> => {
  const { namespace, object } = policy;
  const sources = await readSources(kube, policy);
  const allCrons = await listOf(kube, dataImportCronKind.type, { namespace });
  const policies = await listOf(kube, goldenImagePolicyKind.type, { namespace });
  mustBeSame(object, policies);
  const selected = allCrons.filter((cron) => selects(object, cron));
  const owners = selected.map((cron) => ({ cron, owner: policyOf(cron, policies)?.metadata.name ?? '' }));
  const crons = await Promise.all(
    owners
      .filter(({ owner }) => owner === object.metadata.name)
      .map(async ({ cron: found }) => {
        const cron = readCron(found);
        return { cron, versions: await readVersions(kube, cron) };
      }),
  );
  return {
    sources,
    crons,
    taken: owners
      .filter(({ owner }) => owner !== object.metadata.name)
      .map(({ cron, owner }) => ({ cron: cron.metadata.name, policy: owner })),
    allCrons,
    policies: new Set(policies.map(({ metadata }) => metadata.name)),
    checks: await checkVersions(policy, crons, probes),
  };
};

const mustBeSame = ({ metadata }: GoldenImagePolicy, found: readonly GoldenImagePolicy[]): void => {
  const now = found.find((one) => one.metadata.name === metadata.name);
  if (now?.metadata.resourceVersion === metadata.resourceVersion) return;
  throw new Conflict(`GoldenImagePolicy ${metadata.name} changed while it was looked at`);
};

const readSources = async (
  kube: KubeClient,
  { namespace, object }: PolicyResource,
): Promise<ReadonlyMap<string, DataSource>> => {
  const names = object.spec.channels.map(({ dataSource }) => dataSource);
  const found = await Promise.all(names.map((name) => kube.get(dataSourceKind.type, { namespace, name })));
  return new Map(found.flatMap((source) => (source === undefined ? [] : [[source.metadata.name, source]])));
};
