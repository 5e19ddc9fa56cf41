// What a DataSource stands for now, as the source of a volume. Called by the plans of volumes.
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { findCondition } from '#shared/api/conditions.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { MayUse } from '#shared/access/grant.ts';
import { type Origin, readClaimOrigin, readSnapshotOrigin, waitFor } from '#shared/backends/origin.ts';

export const readDataSourceOrigin = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  mayUse: MayUse,
): Promise<Origin> => {
  const what = `DataSource ${key.namespace}/${key.name}`;
  const object = await kube.get(dataSourceKind.type, key);
  if (object === undefined) return waitFor('SourceNotFound', `${what} does not exist`);
  const { pvc, snapshot } = object.status?.source ?? {};
  if (pvc !== undefined) return readClaimOrigin(kube, { namespace: key.namespace, ...pvc }, { what, mayUse });
  if (snapshot !== undefined)
    return readSnapshotOrigin(kube, { namespace: key.namespace, ...snapshot }, { what, mayUse });
  const { message = 'nobody has looked at it yet' } = findCondition(object.status?.conditions, 'Ready') ?? {};
  return waitFor('SourceNotReady', `${what} is not ready: ${message}`);
};
