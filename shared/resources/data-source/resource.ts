// A DataSource as the reconciler sees it.
import type { DataSource, DataSourceSource } from '#shared/api/cdi/data-source.ts';
import type { DeprecationStatus } from '#shared/api/bullion/lifecycle.ts';
import type { AskedSource } from '#shared/resources/access-rule.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import type { ReconciledState, Resource } from '#shared/resources/reconciler.ts';
import { readResource } from '#shared/resources/dialect.ts';

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

/** What is told of a claim or snapshot of another namespace, and which labels it has, is for those who may clone it. */
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
