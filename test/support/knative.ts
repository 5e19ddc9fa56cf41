// Objects that Knative's own processes need in a cluster without Knative.
import { configMaps, namespaces } from '#shared/api/foreign/core.ts';
import { crds } from '#shared/api/foreign/kubernetes.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';

const knativeType = (group: string, version: string, kind: string): ResourceType => ({
  group: `${group}.knative.dev`,
  version,
  kind,
  plural: kind === 'EventPolicy' ? 'eventpolicies' : `${kind.toLowerCase()}s`,
  namespaced: true,
});
export const triggers = knativeType('eventing', 'v1', 'Trigger');
export const pingSources = knativeType('sources', 'v1', 'PingSource');

/** A kind without validation, enough for Knative's informers. */
export const looseCrd = ({ group, version, kind, plural }: ResourceType): KubeObject & { spec: object } => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
});

/** Their kinds, their namespace, and the ConfigMaps they read. */
export const prepareKnative = async (kube: KubeClient): Promise<void> => {
  const kinds = [
    triggers,
    pingSources,
    knativeType('eventing', 'v1', 'Broker'),
    knativeType('messaging', 'v1', 'Subscription'),
    knativeType('eventing', 'v1alpha1', 'EventPolicy'),
    knativeType('eventing', 'v1beta3', 'EventType'),
  ];
  for (const kind of kinds) await kube.create(crds, looseCrd(kind));
  const namespace = 'knative-eventing';
  await kube.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  for (const name of ['config-features', 'config-logging', 'config-observability', 'config-leader-election']) {
    await kube.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace }, data: {} });
  }
};
