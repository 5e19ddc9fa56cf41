// How DataSources are reconciled. One line in registry.ts.
import { setCdiConditions } from '#shared/api/cdi/conditions.ts';
import { type DataSource, type DataSourceStatus, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { type KubeObject, type ObjectRef, apiVersionOf, refOf } from '#shared/api/object.ts';
import { groupKindOf } from '#shared/api/owner.ts';
import { plan } from '#shared/resources/data-source/plan.ts';
import { type ObservedDataSource, check } from '#shared/resources/data-source/observed.ts';
import {
  type DataSourceState,
  type DataSourceResource,
  readDataSource,
} from '#shared/resources/data-source/resource.ts';
import type { Reconciler, Planner } from '#shared/resources/reconciler.ts';
import { messageOf } from '#shared/runtime/errors.ts';
import { done, waiting } from '#shared/runtime/outcome.ts';
import { deprecationIn } from '#shared/golden/rollout/deprecation.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { labels as ownLabels } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const planner: Planner<DataSourceResource, ObservedDataSource> = {
  check,
  plan,
  remove: ({ state }) => ({ actions: [], state, removed: true }),
};

const toStatus = (
  { status }: DataSource,
  { generation }: DataSourceResource,
  state: DataSourceState,
  now: string,
): DataSourceStatus => {
  const { source, reason, message, deprecation } = state;
  const ready = { type: 'Ready', status: source === undefined ? 'False' : 'True', reason, message } as const;
  const before = (status?.conditions ?? []).filter(({ type }) => type !== 'Deprecated' || deprecation !== undefined);
  return {
    observedGeneration: generation,
    ...(source === undefined ? {} : { source }),
    conditions: setCdiConditions(
      before,
      [
        ready,
        ...(deprecation === undefined
          ? []
          : [{ type: 'Deprecated', status: 'True', reason: deprecation.state, message: deprecation.message } as const]),
      ],
      now,
    ),
  };
};

const unusable = (reason: string, message: string): DataSourceState => ({ phase: 'NotReady', reason, message });

export const dataSourceReconciler: Reconciler<DataSource, DataSourceResource> = {
  kind: dataSourceKind,
  watchedChildren: () => [],
  reads: () => [persistentVolumeClaims, dataVolumes, volumeSnapshots],
  read: readDataSource,
  toStatus,
  refusalOf: () => undefined,
  plannerOf: () => planner,
  finalizerOf: () => undefined,
  // Nobody reports when a claim of the user's own comes or goes, or a volume of another namespace: the tick looks.
  isSettled: ({ state, isManaged, deleting, object }) =>
    !deleting && isManaged && state.phase === 'Ready' && deprecationIn(object)?.state === state.deprecation?.state,
  isRetryDue: () => false,
  outcomeOf: ({ phase, message }) => (phase === 'Ready' ? done : waiting(message)),
  notesOf: () => [],
  announcementOf: () => undefined,
  revived: ({ state }) => state,
  failed: (_subject, { reason, message }) => unusable(reason, message),
  refused: (_subject, error) => unusable(`Api${error.code}`, `refused: ${messageOf(error)}`),
  fold: () => undefined,
  links: {
    waitsFor: [],
    sourceOf: () => undefined,
    offersOf: ({ ref }) => [{ groupKind: groupKindOf(ref), namespace: ref.namespace ?? '', name: ref.name }],
  },
};

// Which DataSources a change elsewhere concerns: the managed one of a cron's version, and those that point to another or to a DataVolume.

const isDataSource = ({ apiVersion, kind }: KubeObject): boolean =>
  kind === dataSourceKind.type.kind && apiVersion === apiVersionOf(dataSourceKind.type);

/** DataSources to look at again because `changed` came, changed or went. */
export const dataSourcesConcernedBy = async (kube: KubeClient, changed: KubeObject): Promise<readonly ObjectRef[]> => {
  const { namespace, name, labels } = changed.metadata;
  const isSource = isDataSource(changed);
  const cron = labels?.[cdiLabels.cron] ?? '';
  if (!isSource && cron === '') return [];
  const labelSelector = isSource ? {} : { labelSelector: `${cdiLabels.cron}=${cron}` };
  const concerned: DataSource[] = [];
  for await (const source of kube.listAll(dataSourceKind.type, { namespace, ...labelSelector })) {
    if (!isSource || source.spec.source.dataSource?.name === name) concerned.push(source);
  }
  return concerned.map(refOf);
};

/** Those of its namespace that stand for a DataVolume which has come to rest. Versions of crons are found by their label; those of images are nobody's. */
export const dataSourcesOf = async (kube: KubeClient, changed: KubeObject): Promise<readonly ObjectRef[]> => {
  const { namespace, name, labels = {} } = changed.metadata;
  const isVolume = changed.kind === dataVolumes.kind && changed.apiVersion === apiVersionOf(dataVolumes);
  if (!isVolume || labels[cdiLabels.cron] !== undefined || labels[ownLabels.ownerUid] !== undefined) return [];
  const concerned: DataSource[] = [];
  for await (const source of kube.listAll(dataSourceKind.type, { namespace })) {
    const { pvc } = source.spec.source;
    if (pvc?.name === name && (pvc.namespace ?? namespace) === namespace) concerned.push(source);
  }
  return concerned.map(refOf);
};
