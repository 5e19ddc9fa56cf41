// What would come of a GoldenImagePolicy: what its signature rule says of the newest versions, and which versions its retention would give up.
import type { GoldenImagePolicy } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { allIfServed } from '#shared/clients/kube/tolerant.ts';
import type { Observe } from '#shared/golden/poll/observe.ts';
import { selects } from '#shared/golden/rollout/policies.ts';
import type { VerifySignature } from '#shared/golden/signature/outcome.ts';
import { prunableVersions } from '#shared/resources/data-import-cron/collect.ts';
import { type CronResource, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { readKept, readPolicy, readVersions } from '#shared/resources/data-import-cron/observed.ts';
import { toSpan } from '#shared/runtime/age.ts';

export interface PolicyTools {
  /** The cluster as it would be with the policy in it. */
  readonly kube: KubeClient;
  readonly observe: Observe;
  readonly verify: VerifySignature;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

type Row = readonly [string, string];

const signatureOf = async (
  { observe, verify }: PolicyTools,
  { metadata, spec }: GoldenImagePolicy,
  { source, ref }: CronResource,
): Promise<readonly Row[]> => {
  const rule = spec.verify?.signature;
  const { namespace = '' } = metadata;
  if (rule === undefined || source === undefined) return [];
  const observed = await observe({ source, namespace, known: {} });
  if (observed.is !== 'found')
    return [['signature', `${ref.name}: its source is not reached from here: ${observed.message}`]];
  const { digest, memory } = observed;
  const outcome = await verify({ source, namespace, rule, digest, sourceDigest: memory.sourceDigest });
  const attested = outcome.is === 'verified' ? (outcome.attestations ?? []) : [];
  return [
    ['signature', `${ref.name}: ${outcome.is === 'verified' ? 'Verified' : outcome.reason}: ${outcome.message}`],
    ...attested.map(({ predicateType, by }): Row => ['attested', `${ref.name}: ${predicateType} by ${by}`]),
  ];
};

const retentionOf = async ({ kube, now }: PolicyTools, cron: CronResource): Promise<readonly Row[]> => {
  const versions = await readVersions(kube, cron);
  const policy = await readPolicy(kube, cron);
  if (policy?.retention === undefined) return [];
  const grace = policy.retention.undeleteFor;
  const kept = await readKept(kube, cron, { versions, policy, isDue: true });
  return prunableVersions(cron, { versions, policy, ...kept }, now).flatMap(({ name, keptBy }): readonly Row[] =>
    keptBy === undefined
      ? [['deletes', `version ${name}, which nothing keeps${grace === undefined ? '' : `, after ${toSpan(grace)}`}`]]
      : [],
  );
};

export const policyRows = async (tools: PolicyTools, policy: GoldenImagePolicy): Promise<readonly Row[]> => {
  const crons = await allIfServed(tools.kube, dataImportCronKind.type, { namespace: policy.metadata.namespace ?? '' });
  const own = crons.filter((cron) => selects(policy, cron)).map(readCron);
  const rows = await Promise.all(
    own.map(async (cron) => [...(await signatureOf(tools, policy, cron)), ...(await retentionOf(tools, cron))]),
  );
  return rows.flat();
};
