// The managed data source: made, adopted, pointed to the version in use, put right when somebody changed it. Pure.
import type { DataSource, DataSourceSource } from '#shared/api/cdi/data-source.ts';
import { labels } from '#shared/api/names.ts';
import type { ObjectMeta, OwnerReference } from '#shared/api/object.ts';
import type { Action, PlanContext } from '#shared/populate/actions.ts';
import type {
  CronState,
  CronResource,
  ObservedCron,
  ObservedVersion,
} from '#shared/resources/data-import-cron/cron.ts';
import { managedMetadata } from '#shared/resources/data-import-cron/template.ts';
import { type CronVerdict, conclude } from '#shared/resources/data-import-cron/verdict.ts';
import { isKept, point, policyNameOf, sourceOfVersion } from '#shared/resources/data-source/point.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

/** Until there is a version, one that is adopted keeps what it points to. */
const wantedSource = (
  { namespace }: CronResource,
  { offered, format }: CronState,
  before: DataSourceSource | undefined,
): DataSourceSource => (offered === undefined ? (before ?? {}) : sourceOfVersion(namespace, offered, format));

/** Its creator controls it, whoever adopts it does not; it is collected when all of them are gone. Only where it goes with its cron at all. */
const ownersOf = (cron: CronResource, before: readonly OwnerReference[] | undefined): readonly OwnerReference[] => {
  const isOwn = (reference: OwnerReference): boolean => reference.uid === cron.ref.uid;
  if (cron.retains) return (before ?? []).filter((reference) => !isOwn(reference));
  // In its old place: whoever else owns it must not find the list changed.
  if (before?.some(isOwn) === true) return before;
  const { apiVersion, kind, name, uid } = cron.ref;
  const own = { apiVersion, kind, name, uid, controller: before === undefined, blockOwnerDeletion: false };
  return [...(before ?? []), own];
};

const metadataOf = (cron: CronResource, before: DataSource | undefined): ObjectMeta => {
  const metadata = managedMetadata(cron, 'data-source', cron.dataSource);
  const owners = ownersOf(cron, before === undefined ? undefined : (before.metadata.ownerReferences ?? []));
  return owners.length === 0 && before?.metadata.ownerReferences === undefined
    ? metadata
    : { ...metadata, ownerReferences: owners };
};

/** A policy decides what its channels point to; where it is gone, they stay as they are until somebody says otherwise. */
const isOfPolicy = ({ policy, dataSource }: ObservedCron): boolean =>
  policy !== undefined || policyNameOf(dataSource) !== undefined;

/** The actions that make the data source say what `state` says. */
export const offer = (cron: CronResource, observed: ObservedCron, state: CronState): readonly Action[] => {
  const { dataSource: source } = observed;
  if (isOfPolicy(observed) || (source !== undefined && isKept(cron.ref, source))) return [];
  return point(source, wantedSource(cron, state, source?.spec.source), metadataOf(cron, source));
};

// What the steps of this folder share: one version on its way, and what is reported and offered meanwhile. Pure.

export type CronStep = PlannedStep<CronState> & {
  /** Milliseconds since the epoch: when versions are judged again. */
  readonly next?: number | undefined;
};

/** One version on its way. */
export interface Work {
  readonly cron: CronResource;
  readonly observed: ObservedCron;
  readonly state: CronState;
  readonly name: string;
  readonly version: ObservedVersion;
  readonly context: PlanContext;
}

/** The version in use stays so, whatever becomes of the next one. */
export const goOn = ({ cron, observed, state }: Work, actions: readonly Action[], verdict: CronVerdict): CronStep => ({
  actions: [...actions, ...offer(cron, observed, state)],
  state: conclude(cron, state, adviseKept(cron, observed, verdict)),
});

const adviseKept = (cron: CronResource, { dataSource }: ObservedCron, verdict: CronVerdict): CronVerdict => {
  if (verdict.trouble !== undefined || dataSource === undefined) return verdict;
  const policy = policyNameOf(dataSource);
  if (policy !== undefined) {
    const message = `DataSource ${cron.dataSource} stays where GoldenImagePolicy ${policy} left it, which does not have this cron any more: remove its label ${labels.policy} to have it follow this cron`;
    return { ...verdict, trouble: { reason: 'DataSourceLeft', message } };
  }
  if (!isKept(cron.ref, dataSource)) return verdict;
  const message = `DataSource ${cron.dataSource} belongs to another owner and is in use: label it cdi.kubevirt.io/dataImportCron=${cron.ref.name} to have it follow this cron`;
  return { ...verdict, trouble: { reason: 'DataSourceUnmanaged', message } };
};
