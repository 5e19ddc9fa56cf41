// admissionregistration.k8s.io: only the fields we read or write.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly {
    readonly name: string;
    readonly clientConfig: { readonly caBundle?: string; readonly url?: string };
  }[];
}

const ofKind = (kind: string, plural: string): ResourceType<WebhookConfiguration> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
});

export const validatingWebhookConfigurations = ofKind(
  'ValidatingWebhookConfiguration',
  'validatingwebhookconfigurations',
);
export const mutatingWebhookConfigurations = ofKind('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations');
