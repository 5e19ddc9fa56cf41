// Queries of golden image flows: crons of one namespace, and their progress.
import { type DataImportCron, type DataImportCronSpec, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { KubeObject, ObjectKey, ObjectMeta, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

import { until as untilObject } from '#test/support/until.ts';

export const conditionOf = (object: DataImportCron | DataSource | undefined, type: string) =>
  object?.status?.conditions?.find((condition) => condition.type === type);
export const isUpToDate = (cron: DataImportCron | undefined): boolean =>
  conditionOf(cron, 'UpToDate')?.status === 'True';
export const versionOf = (name: string, digest: string): string => `${name}-${digest.slice(7, 19)}`;

/** Ready, with a volume or a snapshot of this name. */
export const pointsTo =
  (version: string, form: 'pvc' | 'snapshot' = 'pvc') =>
  (source: DataSource | undefined): boolean =>
    source?.spec.source[form]?.name === version &&
    conditionOf(source, 'Ready')?.status === 'True' &&
    source.status?.source?.[form]?.name === version;

export interface GoldenFlow {
  /** A cron with the common fields of released crons; its DataSource has its name. */
  readonly aCron: (
    name: string,
    spec: Partial<DataImportCronSpec>,
    metadata?: Partial<ObjectMeta>,
  ) => Promise<DataImportCron>;
  readonly get: <T extends KubeObject>(type: ResourceType<T>, name: string) => Promise<T | undefined>;
  /** The object once it matches. Fails with its last state after four minutes. */
  readonly until: <T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    isSo: (object: T | undefined) => boolean,
  ) => Promise<T>;
  /** The same for a cluster-scoped object. */
  readonly untilCluster: <T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    isSo: (object: T | undefined) => boolean,
  ) => Promise<T>;
  readonly annotate: (name: string, annotations: Readonly<Record<string, string | null>>) => Promise<unknown>;
  /** Requests a poll like users: by a time in the past. */
  readonly pollNow: (name: string) => Promise<unknown>;
  readonly remove: (type: ResourceType, name: string) => Promise<unknown>;
}

/** Crons are reconciled by events; a tick per second over all unsettled objects would take most of one CPU. */
export const seldom = { tickSeconds: 5 } as const;

export const createGoldenFlow = (kube: KubeClient, namespace: string): GoldenFlow => {
  const get: GoldenFlow['get'] = (type, name) => kube.get(type, { namespace, name });
  const annotate: GoldenFlow['annotate'] = (name, annotations) =>
    kube.mergePatch(dataImportCronKind.type, { namespace, name }, { metadata: { annotations } });
  const untilSo = async <T extends KubeObject>(
    type: ResourceType<T>,
    key: ObjectKey,
    isSo: (object: T | undefined) => boolean,
  ): Promise<T> => (await untilObject(kube, type, key, isSo)) as T;
  return {
    get,
    annotate,
    aCron: (name, spec, metadata = {}) =>
      kube.create(dataImportCronKind.type, {
        apiVersion: 'cdi.kubevirt.io/v1beta1',
        kind: 'DataImportCron',
        metadata: { ...metadata, namespace, name },
        spec: { schedule: '0 */12 * * *', managedDataSource: name, ...spec },
      }),
    until: (type, name, isSo) => untilSo(type, { namespace, name }, isSo),
    untilCluster: (type, name, isSo) => untilSo(type, { name }, isSo),
    pollNow: (name) => annotate(name, { [cdiAnnotations.nextCronTime]: '2026-01-01T00:00:00Z' }),
    remove: (type, name) => kube.delete(type, { namespace, name }),
  };
};
/** A cron's DataSource once it refers to this version. */
export const untilOffered = (flow: GoldenFlow, name: string, version: string): Promise<DataSource> =>
  flow.until(dataSourceKind.type, name, pointsTo(version));
