// CustomResourceDefinitions, as far as they are looked for.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export const crds: ResourceType<KubeObject> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};
