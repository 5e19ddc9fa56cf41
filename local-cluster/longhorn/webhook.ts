// Longhorn's validating webhook: one path, and its configuration for the API server.
import { Hono } from 'hono';
import { type PersistentVolume, persistentVolumes } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const path = '/longhorn/validate';

interface Review {
  readonly apiVersion: string;
  readonly kind: string;
  readonly request: {
    readonly uid: string;
    readonly operation: string;
    readonly object?: BackingImage | null;
    readonly oldObject?: BackingImage | null;
  };
}

const faultsOf = async (
  { operation, object, oldObject }: Review['request'],
  kube: KubeClient,
): Promise<readonly string[]> => {
  if (operation === 'CREATE' && object) return creationFaults(object, kube);
  return operation === 'DELETE' && oldObject ? deletionFaults(oldObject, kube) : [];
};

export const createLonghornWebhook = (kube: KubeClient): Hono => {
  const app = new Hono();
  app.post(path, async (context) => {
    const { apiVersion, kind, request } = await context.req.json<Review>();
    const faults = await faultsOf(request, kube);
    const refusal = { code: 422, reason: 'Invalid', message: faults.join('; ') };
    const allowed = faults.length === 0;
    return context.json({
      apiVersion,
      kind,
      response: { uid: request.uid, allowed, ...(allowed ? {} : { status: refusal }) },
    });
  });
  return app;
};

/** `url` and `caBundle` (PEM) of the server that `createLonghornWebhook` is part of. */
export const longhornWebhookConfiguration = (url: string, ca: string): KubeObject => {
  const configuration: KubeObject & { readonly webhooks: readonly object[] } = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'longhorn-webhook-validator' },
    webhooks: [
      {
        name: 'validator.longhorn.io',
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        failurePolicy: 'Fail',
        timeoutSeconds: 10,
        clientConfig: { url: new URL(path, url).href, caBundle: Buffer.from(ca).toString('base64') },
        rules: [
          {
            apiGroups: [backingImages.group],
            apiVersions: [backingImages.version],
            resources: [backingImages.plural],
            operations: ['CREATE', 'DELETE'],
            scope: 'Namespaced',
          },
        ],
      },
    ],
  };
  return configuration;
};

// The rules of Longhorn's own webhook. Pure except for the look-up of users of a backing image; served to the API server by webhook.ts.

/** Longest name of a backing image. */
const maxNameLength = 40;

const nameFaults = ({ metadata }: BackingImage): readonly string[] =>
  metadata.name.length > maxNameLength || !/^[a-z0-9][a-z0-9_.-]+$/.test(metadata.name)
    ? [`invalid name ${metadata.name}`]
    : [];

const checksumFaults = ({ spec: { checksum = '' } }: BackingImage): readonly string[] =>
  checksum === '' || /^[a-f0-9]{128}$/.test(checksum) ? [] : [`invalid checksum ${checksum}`];

const needed = {
  download: ['url'],
  'export-from-volume': ['volume-name'],
  clone: ['backing-image'],
  restore: ['backup-url'],
  upload: [],
} as const;

const parameterFaults = ({ spec }: BackingImage): readonly string[] =>
  needed[spec.sourceType ?? 'upload']
    .filter((key) => (spec.sourceParameters?.[key] ?? '') === '')
    .map((key) => `invalid parameter ${key} for source type ${spec.sourceType ?? ''}`);

const exportTypes = ['raw', 'qcow2'];

type Parameters = Readonly<Record<string, string>>;

/** A missing volume is detected only later, when it is read. */
const exportFaults = async (parameters: Parameters, kube: KubeClient): Promise<readonly string[]> => {
  const { 'export-type': exportType = 'raw', 'volume-name': name = '' } = parameters;
  if (!exportTypes.includes(exportType)) return [`unsupported export type ${exportType}`];
  for await (const volume of kube.listAll(persistentVolumes)) {
    if (volume.spec.csi?.volumeHandle !== name) continue;
    if (volume.spec.csi.volumeAttributes?.['dataEngine'] === 'v2')
      return [`volume ${name} of data engine v2 cannot be exported`];
    if (volume.status?.phase === 'Failed') return [`volume ${name} is faulted`];
  }
  return [];
};

const cloneFaults = async (parameters: Parameters, kube: KubeClient): Promise<readonly string[]> => {
  const name = parameters['backing-image'] ?? '';
  const source = await kube.get(backingImages, { namespace: longhornNamespace, name });
  if (source === undefined) return [`failed to get source backing image ${name}`];
  return source.spec.dataEngine === 'v2' ? [`backing image ${name} of data engine v2 cannot be cloned`] : [];
};

const engineFaults = async ({ spec }: BackingImage, kube: KubeClient): Promise<readonly string[]> => {
  const { sourceType, sourceParameters = {}, dataEngine } = spec;
  if (dataEngine === 'v2') return ['backing images of data engine v2 are not supported'];
  if (sourceType === 'export-from-volume') return exportFaults(sourceParameters, kube);
  return sourceType === 'clone' ? cloneFaults(sourceParameters, kube) : [];
};

export const creationFaults = async (image: BackingImage, kube: KubeClient): Promise<readonly string[]> => [
  ...nameFaults(image),
  ...checksumFaults(image),
  ...parameterFaults(image),
  ...(await engineFaults(image, kube)),
];

/** On a volume made from a backing image: the name of that. */
const backingImageAttribute = 'backingImage';

const stands = (volume: PersistentVolume, name: string): boolean =>
  volume.spec.csi?.volumeAttributes?.[backingImageAttribute] === name;

export const deletionFaults = async ({ metadata }: BackingImage, kube: KubeClient): Promise<readonly string[]> => {
  for await (const volume of kube.listAll(persistentVolumes)) {
    if (stands(volume, metadata.name)) {
      return [`cannot delete backing image ${metadata.name} since there are replicas using it`];
    }
  }
  return [];
};
