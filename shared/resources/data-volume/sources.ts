// Sources of a DataVolume in other namespaces, for the permission check of its author.
import type { UsedSource } from '#shared/access/grant.ts';
import { anyName } from '#shared/access/grant.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { AskedSource, SourcesOf } from '#shared/resources/access-rule.ts';

const inNamespace = (
  own: string,
  { namespace = own, name }: { readonly namespace?: string | undefined; readonly name: string },
) => ({ namespace, name });

/** An existing filled claim is adopted: nothing is cloned. */
const isFilled = ({ metadata }: DataVolume): boolean =>
  metadata.annotations?.[`${cdiGroup}/storage.prePopulated`] === metadata.name;

export const dataVolumeSources: SourcesOf<DataVolume> = async (object, kube) => {
  if (isFilled(object)) return [];
  const { source = {}, sourceRef } = object.spec;
  const own = object.metadata.namespace ?? 'default';
  const written: readonly AskedSource[] = [
    ...(source.pvc === undefined ? [] : [{ use: 'clone-claim' as const, field: 'spec.source.pvc', ...source.pvc }]),
    ...(source.snapshot === undefined
      ? []
      : [{ use: 'clone-snapshot' as const, field: 'spec.source.snapshot', ...source.snapshot }]),
  ];
  const referred = sourceRef === undefined ? [] : await behind(kube, inNamespace(own, sourceRef));
  return [...written, ...referred].filter(({ namespace }) => namespace !== own);
};

/** A DataSource may change between a claim and a snapshot when the format of its images changes. */
const behind = async (kube: KubeClient, key: { readonly namespace: string; readonly name: string }) => {
  const found = await resolve(kube, key);
  const now = found ?? { use: 'clone-claim' as const, namespace: key.namespace, name: anyName };
  const later = now.use === 'clone-claim' ? ('clone-snapshot' as const) : ('clone-claim' as const);
  const asked = { field: 'spec.sourceRef', shown: 'its target' };
  return [
    { ...now, ...asked },
    { use: later, namespace: now.namespace, name: anyName, ...asked, optional: true },
  ];
};

/** The target of a DataSource; `undefined`: none yet. A reference to another DataSource is followed once, as in its own plan. */
const resolve = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
): Promise<UsedSource | undefined> => {
  const first = await sourceOf(kube, key);
  const pointer = first?.dataSource;
  const { pvc, snapshot } =
    (pointer === undefined ? first : await sourceOf(kube, inNamespace(key.namespace, pointer))) ?? {};
  if (pvc !== undefined) return { use: 'clone-claim', ...inNamespace(key.namespace, pvc) };
  if (snapshot !== undefined) return { use: 'clone-snapshot', ...inNamespace(key.namespace, snapshot) };
  return undefined;
};

const sourceOf = async (kube: KubeClient, key: ObjectKey): Promise<DataSource['spec']['source'] | undefined> => {
  const found = await kube.get(dataSourceKind.type, key);
  return found?.status?.source ?? found?.spec.source;
};
