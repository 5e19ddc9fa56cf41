// The managed data source: made, adopted, pointed to the version in use, put right when somebody changed it. Pure.
import { isDeepStrictEqual } from 'node:util';
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import type { ObjectMeta, OwnerReference } from '#shared/api/object.ts';
import { type Action, create, patch, type PlanContext } from '#shared/populate/actions.ts';
import type {
  CronState,
  CronResource,
  ObservedCron,
  ObservedVersion,
} from '#shared/resources/data-import-cron/cron.ts';
import { managedMetadata } from '#shared/resources/data-import-cron/template.ts';
import { type CronVerdict, conclude } from '#shared/resources/data-import-cron/verdict.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

/** Somebody else's data source that works is not taken over: they may put the label on it when they want that. */
export const isKept = ({ ref }: CronResource, source: DataSource): boolean => {
  const label = source.metadata.labels?.[cdiLabels.cron];
  const isReady = source.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  return label === undefined && isReady && source.metadata.labels?.['bullion.dev/owner-uid'] !== ref.uid;
};

/** Until there is a version, one that is adopted keeps what it points to. */
const wantedSource = (
  { namespace }: CronResource,
  { offered, format }: CronState,
  before: DataSourceSource | undefined,
): DataSourceSource => {
  if (offered === undefined) return before ?? {};
  const named = { namespace, name: offered };
  return format === 'snapshot' ? { snapshot: named } : { pvc: named };
};

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

const holds = (
  all: Readonly<Record<string, string>> | undefined,
  some: Readonly<Record<string, string>> | undefined,
): boolean => Object.entries(some ?? {}).every(([key, value]) => all?.[key] === value);

const isRight = (source: DataSource, wanted: DataSourceSource, metadata: ObjectMeta): boolean =>
  isDeepStrictEqual(source.spec.source, wanted) &&
  holds(source.metadata.labels, metadata.labels) &&
  holds(source.metadata.annotations, metadata.annotations) &&
  isDeepStrictEqual(source.metadata.ownerReferences ?? [], metadata.ownerReferences ?? []);

/** Each field named, so that a merge patch takes away what is not wanted. */
const toPatch = ({ pvc, snapshot, dataSource }: DataSourceSource) => ({
  pvc: pvc ?? null,
  snapshot: snapshot ?? null,
  dataSource: dataSource ?? null,
});

/** The actions that make the data source say what `state` says. */
export const offer = (
  cron: CronResource,
  { dataSource: source }: ObservedCron,
  state: CronState,
): readonly Action[] => {
  const wanted = wantedSource(cron, state, source?.spec.source);
  const metadata = metadataOf(cron, source);
  if (source === undefined) {
    const { apiVersion } = cron.ref;
    return [create(dataSourceKind.type, { apiVersion, kind: 'DataSource', metadata, spec: { source: wanted } })];
  }
  if (source.metadata.deletionTimestamp !== undefined || isKept(cron, source) || isRight(source, wanted, metadata))
    return [];
  const { labels, annotations, ownerReferences } = metadata;
  const change = { metadata: { labels, annotations, ownerReferences }, spec: { source: toPatch(wanted) } };
  return [patch(dataSourceKind.type, source, change)];
};

// What the steps of this folder share: one version on its way, and what is said and offered meanwhile. Pure.

export type CronStep = PlannedStep<CronState>;

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
  if (verdict.trouble !== undefined || dataSource === undefined || !isKept(cron, dataSource)) return verdict;
  const message = `DataSource ${cron.dataSource} is somebody else's and in use: label it cdi.kubevirt.io/dataImportCron=${cron.ref.name} to have it follow this cron`;
  return { ...verdict, trouble: { reason: 'DataSourceUnmanaged', message } };
};
