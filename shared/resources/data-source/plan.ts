// Whether a DataSource can be used, in the original's reasons, and the labels it takes over. Pure.
import { type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { travellingLabels } from '#shared/api/cdi/names.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { deprecationIn, sentenceOf } from '#shared/golden/rollout/deprecation.ts';
import { type Action, patch } from '#shared/populate/actions.ts';
import { populationOf } from '#shared/populate/population.ts';
import type { ObservedDataSource, Followed } from '#shared/resources/data-source/observed.ts';
import type { DataSourceState, DataSourceResource } from '#shared/resources/data-source/resource.ts';
import type { PlannedStep } from '#shared/resources/reconciler.ts';

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

type FollowedVolume = Extract<Followed, { to: 'volume' }>;

const judgeVolume = ({ key, volume, dataVolume }: FollowedVolume): Verdict => {
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

const judge = (observed: ObservedDataSource): Verdict => {
  switch (observed.to) {
    case 'volume':
      return judgeVolume(observed);
    case 'snapshot':
      return judgeSnapshot(observed);
    case 'nothing':
      return { reason: 'NoSource', message: 'No source PVC set' };
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

export const plan = (resource: DataSourceResource, observed: ObservedDataSource): PlannedStep<DataSourceState> => {
  const { reason, message, source, target } = judge(observed);
  const phase = source === undefined ? 'NotReady' : 'Ready';
  const mark = deprecationIn(resource.object);
  const deprecation = mark && {
    state: mark.state,
    message: `${mark.version ?? 'this channel'} is ${sentenceOf(mark)}`,
  };
  return { actions: takeLabels(resource, target), state: { phase, reason, message, source, deprecation } };
};
