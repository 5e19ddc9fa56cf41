// A DataSource that somebody of ours keeps pointed to a version: made, adopted, put right when somebody changed it. Pure; for crons and policies.
import { isDeepStrictEqual } from 'node:util';
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { labels as ownLabels } from '#shared/api/names.ts';
import { type ObjectMeta, type ObjectRef, apiVersionOf } from '#shared/api/object.ts';
import { type Action, create, patch } from '#shared/populate/actions.ts';

/** What a version is kept as. */
export type SourceFormat = 'pvc' | 'snapshot';

export const sourceOfVersion = (namespace: string, name: string, format: SourceFormat | undefined): DataSourceSource =>
  format === 'snapshot' ? { snapshot: { namespace, name } } : { pvc: { namespace, name } };

/** Name of the version that it points to, if that is one. */
export const versionOfSource = (source: DataSource | undefined): string | undefined =>
  source?.spec.source.pvc?.name ?? source?.spec.source.snapshot?.name;

/** The policy that it was a channel of, also one that is gone. */
export const policyNameOf = (source: DataSource | undefined): string | undefined =>
  source?.metadata.labels?.[ownLabels.policy];

/** Somebody else's data source that works is not taken over: they may put the label on it when they want that. */
export const isKept = ({ uid }: Pick<ObjectRef, 'uid'>, { metadata, status }: DataSource): boolean => {
  const isReady = status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True') ?? false;
  return metadata.labels?.[cdiLabels.cron] === undefined && isReady && metadata.labels?.[ownLabels.ownerUid] !== uid;
};

const holds = (
  all: Readonly<Record<string, string>> | undefined,
  some: Readonly<Record<string, string | undefined>> | undefined,
): boolean => Object.entries(some ?? {}).every(([key, value]) => all?.[key] === value);

/** What a DataSource is to have; an annotation that is `undefined` is to go. */
export type PointedMeta = Omit<ObjectMeta, 'annotations'> & {
  readonly annotations?: Readonly<Record<string, string | undefined>>;
};

const isRight = (source: DataSource, wanted: DataSourceSource, metadata: PointedMeta): boolean =>
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

/** The one action that makes it so, void if it has changed since it was read; nothing where it is so. */
export const point = (
  source: DataSource | undefined,
  wanted: DataSourceSource,
  { annotations = {}, ...rest }: PointedMeta,
): readonly Action[] => {
  const metadata = { ...rest, annotations };
  const { type } = dataSourceKind;
  if (source === undefined) {
    const there = Object.entries(annotations).filter((one): one is [string, string] => one[1] !== undefined);
    const made = { ...rest, annotations: Object.fromEntries(there) };
    return [
      create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata: made, spec: { source: wanted } }),
    ];
  }
  if (source.metadata.deletionTimestamp !== undefined || isRight(source, wanted, metadata)) return [];
  const { labels, ownerReferences } = rest;
  const notes = Object.fromEntries(Object.entries(annotations).map(([key, value]) => [key, value ?? null]));
  const change = { metadata: { labels, annotations: notes, ownerReferences }, spec: { source: toPatch(wanted) } };
  return [patch(type, source, change)];
};
