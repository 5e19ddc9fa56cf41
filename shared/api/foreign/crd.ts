// CustomResourceDefinitions: only the fields we read.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export interface CustomResourceDefinition extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

export const crds: ResourceType<CustomResourceDefinition> = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
};
