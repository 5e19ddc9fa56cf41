// Longhorn's validating webhook: one path, and its configuration for the API server.
import { Hono } from 'hono';
import { type BackingImage, backingImages } from '#shared/api/foreign/longhorn.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { creationFaults, deletionFaults } from '#local-cluster/longhorn/limits.ts';

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
