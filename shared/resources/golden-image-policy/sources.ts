// The DataSources of a policy's channels: whose they are, and what they point to. Pure.
import { cdiLabels, cronLabels } from '#shared/api/cdi/names.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import type { DataSource } from '#shared/api/cdi/data-source.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { childMetadata, type OwnerReference } from '#shared/api/object.ts';
import type { Action } from '#shared/populate/actions.ts';
import type { CronResource, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { hasSnapshot, hasVolume } from '#shared/resources/data-import-cron/version.ts';
import {
  type PointedMeta,
  type SourceFormat,
  isKept,
  point,
  policyNameOf,
  sourceOfVersion,
  versionOfSource,
} from '#shared/resources/data-source/point.ts';
import type { ObservedPolicy, PolicyResource } from '#shared/resources/golden-image-policy/policy.ts';
import { notImported, usableVersion } from '#shared/resources/golden-image-policy/versions.ts';
import type { VersionStatus } from '#shared/api/bullion/golden-image-policy.ts';

/** Why a DataSource is not this policy's to write, and what to do; `undefined`: it is. */
export const ownerTrouble = (
  { ref }: PolicyResource,
  { sources, crons, allCrons, policies }: ObservedPolicy,
  name: string,
): string | undefined => {
  const source = sources.get(name);
  if (source === undefined) return undefined;
  const policy = policyNameOf(source);
  if (policy === ref.name) return undefined;
  const handOver = `label it ${labels.policy}=${ref.name} to have it follow this policy`;
  // One that is gone has left it to whoever comes.
  if (policy !== undefined)
    return policies.has(policy)
      ? `DataSource ${name} is a channel of GoldenImagePolicy ${policy}: ${handOver}`
      : undefined;
  const label = source.metadata.labels?.[cdiLabels.cron];
  if (label !== undefined && crons.some(({ cron }) => cron.ref.name === label)) return undefined;
  const manager = allCrons.find(({ metadata, spec }) => metadata.name === label && spec.managedDataSource === name);
  if (manager !== undefined)
    return `DataSource ${name} is managed by DataImportCron ${label}, which is not one of this policy's: select that cron, or ${handOver}`;
  return isKept(ref, source) ? `DataSource ${name} belongs to another owner and is in use: ${handOver}` : undefined;
};

interface Known {
  readonly known: readonly VersionStatus[];
  readonly blocked: ReadonlyMap<string, unknown>;
}

/** By channel: what DataSources point to that the policy has not had before, where that is a version it knows. */
export const adoptedBy = (
  { object: { spec }, state }: PolicyResource,
  { sources }: ObservedPolicy,
  { known, blocked }: Known,
): ReadonlyMap<string, string> =>
  new Map(
    spec.channels.flatMap(({ name, dataSource }) => {
      const isHeld = state.channels.some((one) => one.name === name && one.version !== undefined);
      const version = versionOfSource(sources.get(dataSource));
      const isKnown = known.some((one) => one.name === version);
      return isHeld || blocked.has(name) || version === undefined || !isKnown ? [] : [[name, version]];
    }),
  );

/** The form of a version: as its cron has it now, or the one that is left. */
export const formatOf = ({ state }: CronResource, name: string, version: ObservedVersion): SourceFormat => {
  if (state.offered === name && state.format === 'pvc' && hasVolume(version)) return 'pvc';
  return hasSnapshot(version) ? 'snapshot' : 'pvc';
};

/** It outlives the policy, and the crons: nobody owns it who could take it along. */
const ownersOf = (source: DataSource | undefined): readonly OwnerReference[] | undefined =>
  source?.metadata.ownerReferences?.filter(({ kind }) => kind !== dataImportCronKind.type.kind);

const metadataOf = (
  { ref }: PolicyResource,
  cron: CronResource,
  {
    name,
    source,
    mark,
  }: { readonly name: string; readonly source: DataSource | undefined; readonly mark: string | undefined },
): PointedMeta => {
  const { ownerReferences: _, ...metadata } = childMetadata(ref, 'data-source', name);
  const owners = ownersOf(source);
  return {
    ...metadata,
    labels: {
      ...cronLabels(cron.object.metadata.labels),
      ...metadata.labels,
      [cdiLabels.cron]: cron.ref.name,
      [labels.policy]: ref.name,
    },
    annotations: { ...metadata.annotations, [annotations.deprecation]: mark },
    ...(owners === undefined ? {} : { ownerReferences: owners }),
  };
};

/**
 * Nothing while its bytes are not there: a name that leads to another version is better than one that leads nowhere. That leads nowhere is better than
 * to what somebody put in the place of a verified version.
 */
export const pointChannel = (
  policy: PolicyResource,
  observed: ObservedPolicy,
  {
    dataSource: name,
    version,
    mark,
  }: { readonly dataSource: string; readonly version: string; readonly mark: string | undefined },
): readonly Action[] => {
  const found = usableVersion(observed, version);
  if (found === undefined) return [];
  const source = observed.sources.get(name);
  const isImpostor = observed.checks.get(version)?.some(({ reason }) => reason === notImported) === true;
  const format = formatOf(found.cron, version, found.version);
  const wanted = isImpostor ? {} : sourceOfVersion(policy.namespace, version, format);
  return point(source, wanted, metadataOf(policy, found.cron, { name, source, mark }));
};
