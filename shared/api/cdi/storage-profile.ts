// cdi.kubevirt.io StorageProfile: what a storage class is good for. Only the fields golden images are made by; read, not served.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';

export interface StorageProfile extends KubeObject {
  readonly spec?: { readonly dataImportCronSourceFormat?: string; readonly snapshotClass?: string };
  readonly status?: { readonly dataImportCronSourceFormat?: string; readonly snapshotClass?: string };
}

export const storageProfiles: ResourceType<StorageProfile> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'StorageProfile',
  plural: 'storageprofiles',
  namespaced: false,
};
