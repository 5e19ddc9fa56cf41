// harvesterhci.io VirtualMachineImage.
import { z } from 'zod';
import { BackupStatus, imageStatusShape } from '#shared/api/image-status.ts';
import { NamespaceName, ObjectName, fixedField, fixedOnceSet, type ServedKind, withRules } from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

/** Names of storage backends as users write them. `shared/backends/registry.ts` has a row for each. */
export const backendNames = ['backingimage', 'cdi', 'csi'] as const;
export type BackendName = (typeof backendNames)[number];

export const HarvesterImageSpec = z
  .object({
    backend: z
      .enum(backendNames)
      .default('backingimage')
      .describe('how the image is stored')
      .meta(withRules({ rule: 'self == oldSelf', message: 'backend cannot be changed: create a new image instead' })),
    description: z.string().optional().describe('free text'),
    displayName: z.string().min(1).max(1024).describe('free text, unique in its namespace'),
    sourceType: z
      .enum(['download', 'upload', 'export-from-volume', 'restore', 'clone'])
      .describe('where the image comes from'),
    url: z.string().optional().describe('needed by download and restore'),
    checksum: z
      .string()
      .optional()
      .describe('over the file as published: bare SHA-512 hex, or <algorithm>:<hex> with md5, sha1, sha256 or sha512'),
    pvcName: ObjectName.optional().describe('claim that export-from-volume reads'),
    pvcNamespace: NamespaceName.optional().describe('where that claim is'),
    storageClassParameters: z
      .record(z.string(), z.string())
      .optional()
      .describe('of the storage class that the backingimage backend makes'),
    retry: z.int().min(0).max(10).default(3).describe('failed attempts tolerated: attempts are one more'),
    securityParameters: z
      .object({
        cryptoOperation: z.enum(['encrypt', 'decrypt']).optional().describe('default: a plain copy'),
        sourceImageName: ObjectName,
        sourceImageNamespace: NamespaceName,
      })
      .optional()
      .describe('needed by clone: the image to copy, encrypt or decrypt'),
    backup: z.boolean().optional().describe('keep the image in the backup target of the cluster'),
    targetStorageClassName: ObjectName.optional().describe('default: the default class of the cluster'),
  })
  .meta(
    withRules(
      ...['displayName', 'sourceType', 'url', 'checksum', 'pvcName', 'pvcNamespace', 'securityParameters'].map(
        fixedField,
      ),
      fixedOnceSet('targetStorageClassName'),
    ),
  );
/** As written by users: fields with a default are optional. */
export type HarvesterImageSpec = z.input<typeof HarvesterImageSpec>;

export const HarvesterImageStatus = z.object({
  phase: z.string().optional().describe('what happens now'),
  appliedUrl: z.string().optional().describe('the URL the image was last started from'),
  targetStorageClassName: z.string().optional().describe('storage class that the golden data volume is kept in'),
  backupTarget: z
    .object({
      endpoint: z.string().optional(),
      bucketName: z.string().optional(),
      bucketRegion: z.string().optional(),
    })
    .optional()
    .describe('backup target that holds this image'),
  backup: BackupStatus.optional(),
  ...imageStatusShape,
});
export type HarvesterImageStatus = z.infer<typeof HarvesterImageStatus>;

export interface HarvesterImage extends KubeObject {
  readonly spec: HarvesterImageSpec;
  readonly status?: HarvesterImageStatus;
}

/** Labels and annotations of Harvester's images. */
export const harvesterLabels = {
  displayName: 'harvesterhci.io/imageDisplayName',
  /** On a virtual machine: it was imported as a whole. */
  imported: 'migration.harvesterhci.io/imported',
} as const;
export const harvesterAnnotations = {
  storageClassName: 'harvesterhci.io/storageClassName',
  /** On objects that store or use an image: `<namespace>/<name>` of it. */
  imageId: 'harvesterhci.io/imageId',
  /** On a claim: it holds an image. */
  goldenImage: 'harvesterhci.io/goldenImage',
  /** On an image, `True`: the installer of an upgrade, which every node downloads. */
  upgradeImage: 'harvesterhci.io/os-upgrade-image',
  /** On a virtual machine: the claims to create for it (JSON). */
  claimTemplates: 'harvesterhci.io/volumeClaimTemplates',
  /** On a virtual machine: names of claims that are deleted with it, separated by commas. */
  removedClaims: 'harvesterhci.io/removedPersistentVolumeClaims',
  /** On a storage class: it must not be deleted. */
  reservedClass: 'harvesterhci.io/is-reserved-storageclass',
  /** On a claim: its owners (JSON), such as a virtual machine. */
  ownedBy: 'harvesterhci.io/owned-by',
} as const;

export const harvesterImageKind: ServedKind<HarvesterImage> = {
  type: {
    group: 'harvesterhci.io',
    version: 'v1beta1',
    kind: 'VirtualMachineImage',
    plural: 'virtualmachineimages',
    namespaced: true,
  },
  singular: 'virtualmachineimage',
  shortNames: ['vmimage', 'vmimages'],
  categories: [],
  description: 'A golden image: a disk fetched from a source and kept by a storage backend.',
  spec: HarvesterImageSpec,
  status: HarvesterImageStatus,
  columns: [
    { name: 'Backend', type: 'string', jsonPath: '.spec.backend' },
    { name: 'Display-Name', type: 'string', jsonPath: '.spec.displayName' },
    { name: 'Size', type: 'integer', jsonPath: '.status.size' },
    { name: 'VirtualSize', type: 'integer', jsonPath: '.status.virtualSize' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'Progress', type: 'integer', jsonPath: '.status.progress' },
    { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
  ],
};
