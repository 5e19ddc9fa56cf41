// cdi.kubevirt.io StorageProfile: the capabilities of a storage class, and settings of an administrator. One per class, with its name.
import { z } from 'zod';
import { CdiCondition } from '#shared/api/conditions.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import { ObjectName, Int64, type ServedKind } from '#shared/api/kind.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

const ClaimPropertySet = z.object({
  accessModes: z
    .array(z.enum(['ReadWriteOnce', 'ReadWriteMany', 'ReadOnlyMany', 'ReadWriteOncePod']))
    .max(4)
    .describe('any of them'),
  volumeMode: z.enum(['Block', 'Filesystem']),
});

const profileShape = {
  cloneStrategy: z
    .string()
    .optional()
    .describe('how volumes of the class are cloned: copy, snapshot or csi-clone; other values are ignored'),
  claimPropertySets: z
    .array(ClaimPropertySet)
    .max(8)
    .optional()
    .describe('modes of volumes, in order of preference, for DataVolumes that leave them out'),
  dataImportCronSourceFormat: z
    .string()
    .optional()
    .describe('form of golden images: snapshot or pvc; other values are ignored'),
  snapshotClass: ObjectName.optional().describe('class of the snapshots that clones are made from'),
} as const;

const StorageProfileSpec = z
  .object(profileShape)
  .describe('what an administrator overrides of what is known of the driver');
export type StorageProfileSpec = z.infer<typeof StorageProfileSpec>;

const StorageProfileStatus = z.object({
  observedGeneration: Int64.optional().describe('the generation of spec this status was decided for'),
  storageClass: z.string().optional(),
  provisioner: z.string().optional(),
  ...profileShape,
  conditions: z.array(CdiCondition).optional(),
});
export type StorageProfileStatus = z.infer<typeof StorageProfileStatus>;

export interface StorageProfile extends KubeObject {
  readonly spec?: StorageProfileSpec;
  readonly status?: StorageProfileStatus;
}

export const storageProfiles: ResourceType<StorageProfile> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'StorageProfile',
  plural: 'storageprofiles',
  namespaced: false,
};

export const storageProfileKind: ServedKind<StorageProfile> = {
  type: storageProfiles,
  singular: 'storageprofile',
  shortNames: [],
  categories: [],
  description: 'What volumes of a storage class can do. There is one for each class, with its name.',
  spec: StorageProfileSpec,
  status: StorageProfileStatus,
  columns: [
    { name: 'Clone', type: 'string', jsonPath: '.status.cloneStrategy' },
    { name: 'Snapshots', type: 'string', jsonPath: '.status.snapshotClass' },
    { name: 'Format', type: 'string', jsonPath: '.status.dataImportCronSourceFormat' },
    { name: 'Provisioner', type: 'string', jsonPath: '.status.provisioner' },
    { name: 'Recognized', type: 'string', jsonPath: '.status.conditions[?(@.type=="Recognized")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
  ],
};
