// A DataSource as the reconciler sees it.
import type { DeprecationStatus } from '#shared/api/bullion/lifecycle.ts';
import { type DataSource, dataSourceKind, type DataSourceSource } from '#shared/api/cdi/data-source.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type PersistentVolumeClaim, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VolumeSnapshot, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { AskedSource } from '#shared/resources/access-rule.ts';
import { readResource } from '#shared/resources/dialect.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';

// What a DataSource stands for, as far as it can be followed. Reads, and decides nothing.

/** `key` names what was looked for. */
export type Followed =
  | { readonly to: 'nothing' }
  | {
      readonly to: 'volume';
      readonly key: Required<ObjectKey>;
      readonly volume: PersistentVolumeClaim | undefined;
      readonly dataVolume: DataVolume | undefined;
    }
  | { readonly to: 'snapshot'; readonly key: Required<ObjectKey>; readonly snapshot: VolumeSnapshot | undefined };

export type ObservedDataSource =
  | Followed
  | { readonly to: 'other-namespace' }
  | { readonly to: 'itself' }
  | { readonly to: 'pointer' }
  | { readonly to: 'missing'; readonly name: string };

/** One hop, in the same namespace. */
export const check = async (
  kube: KubeClient,
  { object, namespace }: DataSourceResource,
): Promise<ObservedDataSource> => {
  const pointer = object.spec.source.dataSource;
  if (pointer === undefined) return follow(kube, object.spec.source, namespace);
  if ((pointer.namespace ?? namespace) !== namespace) return { to: 'other-namespace' };
  if (pointer.name === object.metadata.name) return { to: 'itself' };
  const target: DataSource | undefined = await kube.get(dataSourceKind.type, { namespace, name: pointer.name });
  if (target === undefined) return { to: 'missing', name: pointer.name };
  return target.spec.source.dataSource === undefined ? follow(kube, target.spec.source, namespace) : { to: 'pointer' };
};

const follow = async (kube: KubeClient, { pvc, snapshot }: DataSourceSource, own: string): Promise<Followed> => {
  if (pvc !== undefined) {
    const key = { namespace: pvc.namespace ?? own, name: pvc.name };
    const [volume, dataVolume] = await Promise.all([kube.get(persistentVolumeClaims, key), kube.get(dataVolumes, key)]);
    return { to: 'volume', key, volume, dataVolume };
  }
  if (snapshot === undefined) return { to: 'nothing' };
  const key = { namespace: snapshot.namespace ?? own, name: snapshot.name };
  return { to: 'snapshot', key, snapshot: await kube.get(volumeSnapshots, key) };
};

export interface DataSourceState extends ReconciledState {
  readonly phase: 'Ready' | 'NotReady';
  /** What the name stands for in the end, while it can be used. */
  readonly source?: DataSourceSource | undefined;
  /** Why disks should not be made from it any more. */
  readonly deprecation?: Pick<DeprecationStatus, 'state' | 'message'> | undefined;
}

export interface DataSourceResource extends Resource<DataSourceState> {
  readonly object: DataSource;
  readonly namespace: string;
  /** A cron keeps it, so that the cron's children tell of changes. */
  readonly isManaged: boolean;
}

const deprecationOf = (conditions: DataSourceConditions): DataSourceState['deprecation'] => {
  const found = conditions?.find(({ type, status }) => type === 'Deprecated' && status === 'True');
  if (found === undefined) return undefined;
  return { state: found.reason === 'Obsolete' ? 'Obsolete' : 'Deprecated', message: found.message ?? '' };
};

type DataSourceConditions = NonNullable<DataSource['status']>['conditions'];

const readState = ({ status }: DataSource): DataSourceState => {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return {
    phase: ready?.status === 'True' ? 'Ready' : 'NotReady',
    reason: ready?.reason ?? 'Pending',
    message: ready?.message ?? 'waiting to be processed',
    source: status?.source,
    deprecation: deprecationOf(status?.conditions),
  };
};

export const readDataSource = (object: DataSource): DataSourceResource => ({
  ...readResource(object),
  state: readState(object),
  object,
  namespace: object.metadata.namespace ?? '',
  isManaged: (object.metadata.labels?.[cdiLabels.cron] ?? '') !== '',
});

/** Only those who may clone a claim or snapshot of another namespace learn anything about it and its labels. */
export const sourcesLookedAt = ({ metadata, spec }: DataSource): readonly AskedSource[] => {
  const own = metadata.namespace ?? '';
  const { pvc, snapshot } = spec.source;
  const named = [
    { use: 'clone-claim', field: 'spec.source.pvc', of: pvc },
    { use: 'clone-snapshot', field: 'spec.source.snapshot', of: snapshot },
  ] as const;
  return named.flatMap(({ of, ...asked }) =>
    of === undefined || (of.namespace ?? own) === own
      ? []
      : [{ ...asked, name: of.name, namespace: of.namespace ?? own }],
  );
};
