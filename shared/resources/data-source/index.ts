// How DataSources are reconciled. One line in registry.ts.
import { setCdiConditions } from '#shared/api/conditions.ts';
import {
  type DataSource,
  dataSourceKind,
  type DataSourceSource,
  type DataSourceStatus,
} from '#shared/api/cdi/data-source.ts';
import { dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels, travellingLabels } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { labels, labels as ownLabels } from '#shared/api/names.ts';
import { groupKindOf, type KubeObject, type ObjectRef, refOf, isOfType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { plainReconciler, type Refusal } from '#shared/resources/reconciler.ts';
import { deprecationIn, sentenceOf } from '#shared/golden/rollout/deprecation.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import { populationOf } from '#shared/populate/population.ts';
import {
  check,
  type DataSourceResource,
  type DataSourceState,
  type Followed,
  type ObservedDataSource,
  readDataSource,
} from './resource.ts';
import type { PlannedStep, Planner, Reconciler } from '#shared/resources/reconciler.ts';

// Whether a DataSource can be used, in the original's reasons, and the labels it takes over. Pure.

interface Verdict {
  readonly reason: string;
  readonly message: string;
  /** Only when it can be used. */
  readonly source?: DataSourceSource;
  /** What it stands for, if that is there. */
  readonly target?: KubeObject | undefined;
}

const ready = (source: DataSourceSource, target: KubeObject): Verdict => ({
  reason: 'Ready',
  message: 'DataSource is ready to be consumed',
  source,
  target,
});

const judgeVolume = ({ key, volume, dataVolume }: Extract<Followed, { to: 'volume' }>): Verdict => {
  const phase = dataVolume === undefined ? 'Succeeded' : dataVolume.status?.phase || 'Pending';
  if (phase !== 'Succeeded') {
    return { reason: phase, message: `Import DataVolume phase ${phase}`, target: dataVolume };
  }
  if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) {
    return { reason: 'NotFound', message: 'PVC not found' };
  }
  const problem = problemOf(volume);
  if (problem === undefined) return ready({ pvc: key }, volume);
  const [reason, words] = problem;
  return { reason, message: `PVC ${key.namespace}/${key.name} ${words}`, target: volume };
};

/** A claim that nothing was put into yet is no source of disks. */
const problemOf = (volume: PersistentVolumeClaim): readonly [string, string] | undefined => {
  const phase = volume.status?.phase ?? 'Pending';
  if (phase !== 'Bound') return [`PVC${phase}`, `is ${phase}: it holds nothing that can be used`];
  const isOurs = volume.metadata.labels?.[labels.ownerUid] !== undefined;
  return isOurs && populationOf(volume) === undefined ? ['NotPopulated', 'is still being filled'] : undefined;
};

const judgeSnapshot = ({ key, snapshot }: Extract<Followed, { to: 'snapshot' }>): Verdict => {
  if (snapshot === undefined) return { reason: 'NotFound', message: 'Snapshot not found' };
  if (snapshot.status?.readyToUse === true) return ready({ snapshot: key }, snapshot);
  return { reason: 'SnapshotNotReady', message: 'Snapshot phase is not ready', target: snapshot };
};

/** Its cron says what keeps the first version from being imported; a policy of the cron may have DataSources of its own. */
const emptyMessage = ({ object: { metadata } }: DataSourceResource): string => {
  const cron = metadata.labels?.[cdiLabels.cron] ?? '';
  const where =
    cron === ''
      ? ''
      : `: bullion why dataimportcron/${cron} -n ${metadata.namespace} says why; with a GoldenImagePolicy, only the DataSources of its channels are set`;
  return `No source PVC set${where}`;
};

const judge = (resource: DataSourceResource, observed: ObservedDataSource): Verdict => {
  switch (observed.to) {
    case 'volume':
      return judgeVolume(observed);
    case 'snapshot':
      return judgeSnapshot(observed);
    case 'nothing':
      return { reason: 'NoSource', message: emptyMessage(resource) };
    case 'missing':
      return { reason: 'NotFound', message: `DataSource ${observed.name} not found` };
    case 'other-namespace':
      return {
        reason: 'CrossNamespaceReference',
        message: 'DataSource cannot reference a DataSource in another namespace',
      };
    case 'itself':
      return { reason: 'SelfReference', message: 'DataSource cannot self-reference' };
    case 'pointer':
      return { reason: 'MaxReferenceDepthReached', message: 'DataSource reference chain exceeds maximum depth of 1' };
  }
};

/** Labels that say how to run what is in the volume, where they are not there yet. */
const takeLabels = ({ object }: DataSourceResource, target: KubeObject | undefined): readonly Action[] => {
  const wanted = travellingLabels(target?.metadata.labels);
  const isMissing = Object.entries(wanted).some(([key, value]) => object.metadata.labels?.[key] !== value);
  return isMissing ? [patch(dataSourceKind.type, object, { metadata: { labels: wanted } })] : [];
};

const plan = (resource: DataSourceResource, observed: ObservedDataSource): PlannedStep<DataSourceState> => {
  const { reason, message, source, target } = judge(resource, observed);
  const phase = source === undefined ? 'NotReady' : 'Ready';
  const mark = deprecationIn(resource.object);
  const deprecation = mark && {
    state: mark.state,
    message: `${mark.version ?? 'this channel'} is ${sentenceOf(mark)}`,
  };
  return { actions: takeLabels(resource, target), state: { phase, reason, message, source, deprecation } };
};

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

const unusable = (_resource: DataSourceResource, refusal: Refusal): DataSourceState => ({
  phase: 'NotReady',
  ...refusal,
});

export const dataSourceReconciler: Reconciler<DataSource, DataSourceResource> = {
  ...plainReconciler('Ready', unusable),
  kind: dataSourceKind,
  watchedChildren: () => [],
  reads: () => [persistentVolumeClaims, dataVolumes, volumeSnapshots],
  read: readDataSource,
  toStatus,
  refusalOf: () => undefined,
  plannerOf: () => planner,
  // Nobody reports when a claim of the user's own comes or goes, or a volume of another namespace: the tick looks.
  isSettled: ({ state, isManaged, deleting, object }) =>
    !deleting && isManaged && state.phase === 'Ready' && deprecationIn(object)?.state === state.deprecation?.state,
  links: {
    waitsFor: [],
    sourceOf: () => undefined,
    offersOf: ({ ref }) => [{ groupKind: groupKindOf(ref), namespace: ref.namespace ?? '', name: ref.name }],
  },
};

// Which DataSources a change elsewhere concerns: the managed one of a cron's version, and those that point to another or to a DataVolume.

/** DataSources to look at again because `changed` came, changed or went. */
export const dataSourcesConcernedBy = async (kube: KubeClient, changed: KubeObject): Promise<readonly ObjectRef[]> => {
  const { namespace, name, labels } = changed.metadata;
  const isSource = isOfType(changed, dataSourceKind.type);
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
  const isVolume = isOfType(changed, dataVolumes);
  if (!isVolume || labels[cdiLabels.cron] !== undefined || labels[ownLabels.ownerUid] !== undefined) return [];
  const concerned: DataSource[] = [];
  for await (const source of kube.listAll(dataSourceKind.type, { namespace })) {
    const { pvc } = source.spec.source;
    if (pvc?.name === name && (pvc.namespace ?? namespace) === namespace) concerned.push(source);
  }
  return concerned.map(refOf);
};
