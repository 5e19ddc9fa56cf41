// Kinds of harvesterhci.io that are read but not served.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

export const templateVersions: ResourceType<KubeObject> = {
  group: 'harvesterhci.io',
  version: 'v1beta1',
  kind: 'VirtualMachineTemplateVersion',
  plural: 'virtualmachinetemplateversions',
  namespaced: true,
};
