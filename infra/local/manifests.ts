// The manifests of `infra/` for the local cluster: those applied unchanged, and the webhooks with the address of this process.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { readManifests } from '#local-cluster/broker/manifest.ts';
import type { CustomResourceDefinition } from '#local-cluster/controllers/snapshots/crds.ts';
import { harvesterSettings, virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import { hyperConvergeds, ssps, sspVersions } from '#shared/api/foreign/boot-sources.ts';
import type { ConfigMap } from '#shared/api/foreign/core.ts';
import { optionalSources } from '#shared/api/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

// HyperConverged, SSP, and the kinds of Harvester for backups, so that their manifests can be applied without their operators. The schemas
// accept any content.

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;

/** Serves a kind with any content, in its own version and in older ones. */
export const buildOpenCrd = (
  { group, version, kind, plural, namespaced }: ResourceType,
  fields: object = { spec: open, status: open },
  older: readonly string[] = [],
): CustomResourceDefinition => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: namespaced ? 'Namespaced' : 'Cluster',
    names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
    versions: [version, ...older].map((name) => ({
      name,
      served: true,
      storage: name === version,
      schema: { openAPIV3Schema: { type: 'object', properties: fields } },
      subresources: { status: {} },
    })),
  },
});

export const operatorCrds: readonly CustomResourceDefinition[] = [
  buildOpenCrd(hyperConvergeds),
  buildOpenCrd(ssps, undefined, sspVersions.slice(1)),
  buildOpenCrd(virtualMachineBackups),
  buildOpenCrd(harvesterSettings, {
    value: { type: 'string' },
    default: { type: 'string' },
  }),
];

/** Root of the repository. */
export const repositoryDir = join(import.meta.dirname, '../..');
/** Namespace of the product. */
export const systemNamespace = 'bullion-system';
const infraDir = join(repositoryDir, 'infra');

const inFolder = async (name: string): Promise<readonly KubeObject[]> =>
  (await readManifests(join(infraDir, name))) as readonly KubeObject[];

export const readCrds = (): Promise<readonly KubeObject[]> => inFolder('crds');

/** Broker, Triggers and sources: read here, since there is no Knative. Those of optional kinds start when the kinds are added. */
export const readEventing = async (): Promise<readonly KubeObject[]> => {
  const objects = await inFolder('knative');
  const list = objects.find(({ metadata }) => metadata?.name === optionalSources) as ConfigMap | undefined;
  return [...objects, ...Object.values(list?.data ?? {}).map((text) => JSON.parse(text) as KubeObject)];
};

/** Namespace and roles, including those of the exporter, which is optional in a cluster. */
export const readAccess = async (): Promise<readonly KubeObject[]> => {
  const namespace = parseAllDocuments(await readFile(join(infraDir, 'base', 'namespace.yaml'), 'utf8'));
  const monitoring = parseAllDocuments(await readFile(join(infraDir, 'components/monitoring/rbac.yaml'), 'utf8'));
  return [
    ...[...namespace, ...monitoring].map((document) => document.toJS() as KubeObject),
    ...(await inFolder('rbac')),
  ];
};

/** Service of the aggregated API for uploads. */
export const uploadApiService = 'upload-api';

interface ApiService extends KubeObject {
  readonly spec: { readonly service?: object };
}

/** The APIServices, with a Service that refers to this process. */
export const readApiServices = async (port: number, caPem: string): Promise<readonly KubeObject[]> => {
  const caBundle = Buffer.from(caPem).toString('base64');
  const objects = (await inFolder('apis')).filter((object): object is ApiService => object.kind === 'APIService');
  const service = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: uploadApiService, namespace: systemNamespace },
    spec: { type: 'ExternalName', externalName: '127.0.0.1' },
  };
  const pointed = objects.map((object) => ({
    ...object,
    spec: { ...object.spec, caBundle, service: { name: uploadApiService, namespace: systemNamespace, port } },
  }));
  return [service, ...pointed];
};

interface WebhookConfiguration extends KubeObject {
  readonly webhooks: readonly { readonly clientConfig: { readonly service?: { readonly path?: string } } }[];
}

export const readWebhookConfigurations = async (): Promise<readonly WebhookConfiguration[]> =>
  (await inFolder('webhooks')).filter(isWebhookConfiguration);

/** The webhook configurations, with this process instead of the admission service. */
export const readWebhooks = async (url: string, caPem: string): Promise<readonly KubeObject[]> => {
  const caBundle = Buffer.from(caPem).toString('base64');
  return (await readWebhookConfigurations()).map((object) => ({
    ...object,
    webhooks: object.webhooks.map((webhook) => ({
      ...webhook,
      clientConfig: { url: `${url}${webhook.clientConfig.service?.path ?? ''}`, caBundle },
    })),
  }));
};

const isWebhookConfiguration = (object: KubeObject): object is WebhookConfiguration =>
  object.kind === 'MutatingWebhookConfiguration' || object.kind === 'ValidatingWebhookConfiguration';
