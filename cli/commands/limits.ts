// `bullion limits`: what a namespace may have of images and volumes, where it may fetch them from, and what it has.
import { type Call, type ClusterCommand, exitCodes } from '#cli/command.ts';
import { outputOf, outputOption, screenOf, tableOf } from '#cli/output.ts';
import { namespaces } from '#shared/api/foreign/core.ts';
import type { AllowedPlace, DeniedPlace, SignedPlace } from '#shared/api/bullion/tenant-limit.ts';
import { type NamespaceLimit, readAllLimits, readNamespaceLimits } from '#shared/catalogue/limits.ts';
import { readOr } from '#shared/catalogue/objects.ts';
import { NotFound } from '#shared/runtime/errors.ts';

const resources = ['images', 'volumes', 'storage'] as const;

/** One row for each amount that is limited. */
const rowsOf = ({ name, quota = {}, used }: NamespaceLimit): readonly (readonly string[])[] => {
  const scopes = [
    { of: '', amounts: quota, there: used },
    ...(quota.storageClasses ?? []).map((one) => ({
      of: one.name,
      amounts: one,
      there: used.storageClasses?.find((other) => other.name === one.name),
    })),
  ];
  return scopes.flatMap(({ of, amounts, there }) =>
    resources.flatMap((resource) => {
      const most = amounts[resource];
      return most === undefined ? [] : [[name, resource, of, String(there?.[resource] ?? 0), String(most)]];
    }),
  );
};

const placeOf = ({ host, registry, bucket, store, ...rest }: AllowedPlace | DeniedPlace | SignedPlace): string => {
  const ofBucket = `bucket ${bucket ?? ''}${store === undefined ? '' : ` of ${store}`}`;
  const addresses = 'addresses' in rest ? rest.addresses : undefined;
  return host ?? registry ?? addresses ?? ofBucket;
};

const isEverywhere = ({ host, registry, bucket }: SignedPlace): boolean => (host ?? registry ?? bucket) === undefined;

const because = (message: string | undefined): string => (message === undefined ? '' : `: ${message}`);

const sourceSentences = ({ name, sources = {} }: NamespaceLimit): readonly string[] => [
  ...(sources.allow === undefined
    ? []
    : [`${name} allows sources ${sources.allow.map(placeOf).join(', ') || '(none)'}${because(sources.message)}`]),
  ...(sources.deny ?? []).map((place) => `${name} denies ${placeOf(place)}${because(place.message)}`),
  ...(sources.signed ?? []).map(
    (place) => `${name} asks for a signature on ${isEverywhere(place) ? 'every source' : placeOf(place)}`,
  ),
  ...(sources.uploads === 'Deny' ? [`${name} denies uploads`] : []),
];

/** Everything that is not an amount, in sentences. */
const sentencesOf = (limit: NamespaceLimit): readonly string[] => {
  const { name, storageClasses, message } = limit;
  const classes = storageClasses?.allow.join(', ') || '(none)';
  return [
    ...(storageClasses === undefined
      ? []
      : [`${name} allows storage classes ${classes}${because(storageClasses.message)}`]),
    ...sourceSentences(limit),
    ...(message === undefined ? [] : [`${name}: ${message}`]),
  ];
};

/** A namespace that does not exist has no limits either, so a typo would look like one without limits. Users who may not read namespaces get no such error. */
const requireNamespace = async (kube: Call['kube'], name: string): Promise<void> => {
  const read = await readOr(async () => [await kube.get(namespaces, { name })]);
  if (read.is === 'read' && read.items[0] === undefined) throw new NotFound(`there is no namespace ${name}`);
};

const run = async ({ kube, namespace, values, terminal }: Call) => {
  const isEverywhere = values['all-namespaces'] === true;
  const limits: readonly (NamespaceLimit & { readonly namespace?: string })[] = isEverywhere
    ? await readAllLimits(kube)
    : ((await readNamespaceLimits(kube, namespace)) ?? []);
  if (outputOf(values) === 'json') {
    terminal.out(`${JSON.stringify(limits, undefined, 2)}\n`);
    return exitCodes.done;
  }
  if (limits.length === 0) {
    if (!isEverywhere) await requireNamespace(kube, namespace);
    const where = isEverywhere ? 'any namespace' : `namespace ${namespace}`;
    terminal.err(`No limits apply to ${where}, or they were not counted yet: each sweep of cron-tick does that.\n`);
    return exitCodes.done;
  }
  const heading = [...(isEverywhere ? ['NAMESPACE'] : []), 'LIMIT', 'WHAT', 'CLASS', 'USED', 'OF'];
  const rows = limits.flatMap((limit) =>
    rowsOf(limit).map((row) => [...(isEverywhere ? [limit.namespace] : []), ...row]),
  );
  if (rows.length > 0) terminal.out(tableOf(heading, rows, screenOf({ values, terminal })));
  // A limit says the same in each of its namespaces.
  const sentences = new Set(limits.flatMap(sentencesOf));
  terminal.out([...sentences].map((sentence) => `${sentence}\n`).join(''));
  return exitCodes.done;
};

export const limitsCommand: ClusterCommand = {
  name: 'limits',
  arguments: '',
  summary: 'Shows what the namespace may have of images and volumes, and what it has.',
  more: 'What the TenantLimits of the cluster say of this namespace. Each sweep of cron-tick counts it.\n\n  bullion limits -n vms\n  bullion limits -A',
  options: {
    'all-namespaces': { type: 'boolean', short: 'A', help: 'of every namespace' },
    output: { ...outputOption.output, oneOf: ['json'] },
  },
  run,
};
