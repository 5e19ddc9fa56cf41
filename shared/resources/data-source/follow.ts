// Which DataSources a change elsewhere concerns: the managed one of a cron's version, and those that point to another. Called by handle.ts.
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type KubeObject, type ObjectRef, apiVersionOf, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

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
