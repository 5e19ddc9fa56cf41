// What admission says of a policy, beside what its channels must be (channels.ts): what it collides with, and whether versions are there.
import { type GoldenImagePolicy, goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { selects } from '#shared/golden/rollout/policies.ts';
import { channelFaults } from '#shared/resources/golden-image-policy/channels.ts';
import type { PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import type { RequestRule } from '#shared/resources/rule.ts';
import { type Fault } from '#shared/runtime/errors.ts';

type Rule = RequestRule<GoldenImagePolicy, PolicyResource>;
type Request = Parameters<Rule['check']>[0];

const hasGoodChannels = ({ object }: Request): readonly Fault[] => channelFaults(object);

/** Of a kind. */
const limit = 500;

export const policiesOf = (kube: KubeClient, namespace: string | undefined): Promise<readonly GoldenImagePolicy[]> =>
  listIfServed(kube, goldenImagePolicyKind.type, { namespace, limit });

const others = async ({ object: { metadata }, kube }: Request): Promise<readonly GoldenImagePolicy[]> =>
  (await policiesOf(kube, metadata.namespace)).filter((other) => other.metadata.name !== metadata.name);

/** Names count also where there is no such cron yet. */
const hasCronsOfItsOwn = async (request: Request): Promise<readonly Fault[]> => {
  const { object, kube } = request;
  const policies = await others(request);
  if (policies.length === 0) return [];
  const named = (object.spec.dataImportCrons.names ?? []).map((name) => ({ metadata: { name } }) as KubeObject);
  const crons = [
    ...(await listIfServed(kube, dataImportCronKind.type, { namespace: object.metadata.namespace, limit })),
    ...named,
  ];
  for (const cron of crons.filter((one) => selects(object, one))) {
    const other = policies.find((policy) => selects(policy, cron));
    if (other !== undefined) {
      const message = `DataImportCron ${cron.metadata.name} is GoldenImagePolicy ${other.metadata.name}'s already, and one cron has one policy: select another one, or change that policy first`;
      return [{ field: 'spec.dataImportCrons', message }];
    }
  }
  return [];
};

const hasDataSourcesOfItsOwn = async (request: Request): Promise<readonly Fault[]> => {
  const policies = await others(request);
  return request.object.spec.channels.flatMap(({ dataSource }, index) => {
    const other = policies.find(({ spec }) => spec.channels.some((channel) => channel.dataSource === dataSource));
    if (other === undefined) return [];
    const message = `${dataSource} is a channel of GoldenImagePolicy ${other.metadata.name} already: write another DataSource`;
    return [{ field: `spec.channels[${index}].dataSource`, message }];
  });
};

interface Named {
  readonly field: string;
  readonly version: string;
  /** It may be something that never arrived. */
  readonly digest?: string | undefined;
}

const namedIn = ({ spec }: GoldenImagePolicy): readonly Named[] => [
  ...Object.entries(spec.pins ?? {}).map(([name, { version }]) => ({ field: `spec.pins.${name}.version`, version })),
  ...(spec.bad ?? []).map(({ version, digest }, index) => ({ field: `spec.bad[${index}].version`, version, digest })),
  ...(spec.approvals ?? []).map(({ version }, index) => ({ field: `spec.approvals[${index}].version`, version })),
  ...(spec.deprecated ?? []).flatMap(({ version }, index) =>
    version === undefined ? [] : [{ field: `spec.deprecated[${index}].version`, version }],
  ),
];

/**
 * A name that was mistyped would do nothing, and nobody would notice. What is named in a new policy, and what was named before, may be of another
 * time.
 */
const namesKnownVersions = ({ before }: Request, object: GoldenImagePolicy): readonly Fault[] => {
  if (before === undefined) return [];
  const known = before.status?.versions ?? [];
  const old = new Set(namedIn(before).map(({ version }) => version));
  return namedIn(object)
    .filter(({ version, digest }) => digest === undefined && !old.has(version))
    .filter(({ version }) => !known.some(({ name }) => name === version))
    .map(({ field, version }) => ({
      field,
      message: `there is no version ${version}: ${known.length === 0 ? 'none has arrived yet' : `there is ${known.map(({ name }) => name).join(', ')}`}`,
    }));
};

/** What can be used of it is checked at admission; what changes later, its status says. Marks are looked at with the channels. */
const pinsWhatIsThere = ({ before, object }: Request): readonly Fault[] =>
  Object.entries(object.spec.pins ?? {})
    .filter(([name, { version }]) => before?.spec.pins?.[name]?.version !== version)
    .flatMap(([name, { version }]) => {
      const known = before?.status?.versions?.find((one) => one.name === version);
      if (known === undefined || known.state === 'Verified' || known.state === 'Bad') return [];
      const message = `${version} cannot be used: ${known.message ?? `it is ${known.state}`}; pin another version`;
      return [{ field: `spec.pins.${name}.version`, message }];
    });

const always = (rule: Pick<Rule, 'reason' | 'check'> & { readonly id: string }): readonly Rule[] => [
  { ...rule, on: 'CREATE' },
  { ...rule, on: 'UPDATE' },
];

export const goldenImagePolicyRules: readonly Rule[] = [
  ...always({ id: 'channels', reason: 'Invalid', check: hasGoodChannels }),
  ...always({ id: 'one-policy-of-a-cron', reason: 'Conflict', check: hasCronsOfItsOwn }),
  ...always({ id: 'one-policy-of-a-data-source', reason: 'Conflict', check: hasDataSourcesOfItsOwn }),
  {
    id: 'known-versions',
    on: 'UPDATE',
    reason: 'Invalid',
    check: (request) => namesKnownVersions(request, request.object),
  },
  { id: 'usable-pins', on: 'UPDATE', reason: 'Invalid', check: pinsWhatIsThere },
];
