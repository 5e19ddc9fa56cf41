// The object of an installed CDI, which its operator creates or reads. Only its existence matters.
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export const cdis: ResourceType<KubeObject> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'CDI',
  plural: 'cdis',
  namespaced: false,
};
