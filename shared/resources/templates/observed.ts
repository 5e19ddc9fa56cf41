// Reads the objects with templates, and the objects made from them. Kinds without a CRD have no objects.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { type HyperConverged, type Ssp, hyperConvergeds, ssps, sspVersions } from '#shared/api/foreign/boot-sources.ts';
import { nodes, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type KubeObject, type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { tolerate } from '#shared/clients/kube/tolerant.ts';
import { type TemplateRequest, type ObservedTemplates, cronKey } from '#shared/resources/templates/ask.ts';
import { markSelector } from '#shared/resources/templates/marks.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

/** `undefined`: the cluster does not have the kind. */
const readAll = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  options: ListOptions = {},
): Promise<readonly T[] | undefined> => tolerate(Array.fromAsync(kube.listAll(type, options)), isNotFound);

export const holdsTemplates = ({ apiVersion, kind }: Pick<KubeObject, 'apiVersion' | 'kind'>): boolean =>
  (hyperConvergeds.kind === kind && apiVersionOf(hyperConvergeds) === apiVersion) ||
  (ssps.kind === kind && sspVersions.some((version) => apiVersionOf({ ...ssps, version }) === apiVersion));

/** In the newest version that the cluster serves. */
const readSsps = async (kube: KubeClient): Promise<readonly Ssp[] | undefined> => {
  for (const version of sspVersions) {
    const found = await readAll(kube, { ...ssps, version });
    if (found !== undefined) return found;
  }
  return undefined;
};

export interface TemplateHolders {
  readonly ssps: readonly Ssp[];
  readonly hyperConvergeds: readonly HyperConverged[];
}

/** `undefined`: the cluster has neither kind, and there is nothing to do. */
export const readHolders = async (kube: KubeClient): Promise<TemplateHolders | undefined> => {
  const [own, hyper] = await Promise.all([readSsps(kube), readAll(kube, hyperConvergeds)]);
  if (own === undefined && hyper === undefined) return undefined;
  const isThere = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;
  return { ssps: (own ?? []).filter(isThere), hyperConvergeds: (hyper ?? []).filter(isThere) };
};

/** Architectures of the nodes, without duplicates. */
export const readNodeArchitectures = async (kube: KubeClient): Promise<readonly string[]> => {
  const found = (await readAll(kube, nodes)) ?? [];
  const names = found.map(
    ({ status, metadata }) => status?.nodeInfo?.architecture ?? metadata.labels?.['kubernetes.io/arch'],
  );
  return [...new Set(names.filter((name) => name !== undefined))].sort();
};

export const readObservedTemplates = async (
  kube: KubeClient,
  namespace: string,
  asks: readonly TemplateRequest[],
): Promise<ObservedTemplates> => {
  const [sources = [], volumes = [], made = []] = await Promise.all([
    readAll(kube, dataSourceKind.type, { namespace }),
    readAll(kube, persistentVolumeClaims, { namespace }),
    readAll(kube, dataImportCronKind.type, { labelSelector: markSelector }),
  ]);
  const crons = new Map(made.map((cron) => [keyOfCron(cron), cron]));
  const missing = asks.flatMap(({ wanted }) => (wanted?.crons ?? []).filter((cron) => !crons.has(cronKey(cron))));
  const strangers = await Promise.all(
    missing.map(({ namespace: at, name }) => kube.get(dataImportCronKind.type, { namespace: at, name })),
  );
  for (const cron of strangers) if (cron !== undefined) crons.set(keyOfCron(cron), cron);
  return {
    namespace,
    sources: new Map(sources.map((source: DataSource) => [source.metadata.name, source])),
    volumes: new Set(volumes.map(({ metadata }) => metadata.name)),
    crons,
  };
};

const keyOfCron = ({ metadata }: DataImportCron): string =>
  cronKey({ namespace: metadata.namespace ?? '', name: metadata.name });
