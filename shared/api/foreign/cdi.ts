// The object that stands for a CDI which is installed: its operator makes it, or is told by it. Only that it is there matters.
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export const cdis: ResourceType<KubeObject> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'CDI',
  plural: 'cdis',
  namespaced: false,
};
