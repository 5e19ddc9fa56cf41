// All other functions and their properties for the manifests: admission, transfer, Jobs. Functions that are invoked by events:
// event-functions.ts.
import { hyperConvergeds, ssps } from '#shared/api/foreign/boot-sources.ts';
import {
  configMaps,
  namespaces,
  persistentVolumeClaims,
  persistentVolumes,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { templateVersions } from '#shared/api/foreign/backup.ts';
import { backingImageDataSources, backingImages } from '#shared/api/foreign/longhorn.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { volumeSnapshotClasses, volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { ResourceType } from '#shared/api/object.ts';

/** Destination of dead letters: the function that records them as Kubernetes Events. */
export const deadLetterFunction = { name: 'cron-tick', path: '/dead-letters' } as const;

/** One entry of a webhook configuration. */
export interface Webhook {
  readonly name: string;
  readonly summary: string;
  /** The matched requests, defined in `webhook-scopes.ts`. */
  readonly on:
    | 'objects'
    | 'golden'
    | 'marks'
    | 'templates'
    | 'classes'
    | 'claims'
    | 'sources'
    | 'machines'
    | 'disks'
    | 'keys'
    | 'locks'
    | 'class-rules'
    | 'profiles';
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
}

export interface AdmissionFunction {
  readonly name: 'validate' | 'mutate';
  readonly summary: string;
  /** Port of its container in the shared pod. */
  readonly port: number;
  readonly webhooks: readonly Webhook[];
}

export const admissionFunctions: readonly AdmissionFunction[] = [
  {
    name: 'mutate',
    summary: 'Fills in the defaults of an image.',
    port: 8444,
    webhooks: [
      { name: 'images', summary: 'defaults of images', on: 'objects', operations: ['CREATE', 'UPDATE'] },
      {
        name: 'marks',
        summary: 'labels that only Bullion may set, which are removed',
        on: 'marks',
        operations: ['CREATE'],
      },
      {
        name: 'profiles',
        summary: 'modes and sizes of claims that request it',
        on: 'profiles',
        operations: ['CREATE'],
      },
    ],
  },
  {
    name: 'validate',
    summary: 'Refuses images that could never work, and deletions that would break an image.',
    port: 8443,
    webhooks: [
      { name: 'images', summary: 'rules of images', on: 'objects', operations: ['CREATE', 'UPDATE'] },
      {
        name: 'golden',
        summary: 'deletions of golden volumes, snapshots and classes of an image',
        on: 'golden',
        operations: ['DELETE'],
      },
      {
        name: 'marks',
        summary: 'changes of their labels, and of labels that only Bullion may set',
        on: 'marks',
        operations: ['CREATE', 'UPDATE'],
      },
      {
        name: 'templates',
        summary: 'deletions of images that a template uses',
        on: 'templates',
        operations: ['DELETE'],
      },
      {
        name: 'classes',
        summary: 'deletions of storage classes that images use',
        on: 'classes',
        operations: ['DELETE'],
      },
      {
        name: 'claims',
        summary: 'disks, which need permission to read their image',
        on: 'claims',
        operations: ['CREATE'],
      },
      {
        name: 'sources',
        summary: 'disks from obsolete versions, which need an annotation',
        on: 'sources',
        operations: ['CREATE'],
      },
      {
        name: 'machines',
        summary: 'virtual machines that mount a golden volume',
        on: 'machines',
        operations: ['CREATE', 'UPDATE'],
      },
      {
        name: 'disks',
        summary: 'deletions of disks that a virtual machine uses',
        on: 'disks',
        operations: ['DELETE'],
      },
      {
        name: 'keys',
        summary: 'deletions and changes of keys of encrypted volumes',
        on: 'keys',
        operations: ['UPDATE', 'DELETE'],
      },
      { name: 'locks', summary: 'deletions of locked objects', on: 'locks', operations: ['DELETE'] },
      {
        name: 'class-rules',
        summary: 'rules of storage classes',
        on: 'class-rules',
        operations: ['CREATE', 'UPDATE'],
      },
    ],
  },
];

/**
 * Transfers bytes for users over HTTP. As a Knative Service it receives and serves files; over TLS, behind the API server, it issues the tokens
 * for that.
 */
export const transferFunction = {
  name: 'transfer',
  summary: 'Receives uploads, serves images and volumes as downloads, and issues the tokens for both.',
  /** Service of the aggregated API. */
  apiService: 'upload-api',
  /** Kinds it reads to find the target of a file. */
  reads: [dataVolumeKind.type, harvesterImageKind.type, persistentVolumeClaims, backingImages, backingImageDataSources],
} as const;

/** Exposes metrics of the cluster. Always running if installed, because it is scraped. */
export const metricsFunction = {
  name: 'metrics',
  summary: 'Reports to Prometheus what the cluster holds, recomputed from the objects at each scrape.',
} as const;

/** The catalogue in the browser. Its account has no rights: it shows the API server the token of who looks. */
export const consoleFunction = {
  name: 'console',
  summary: 'Shows images, volumes and golden images in the browser, with the rights of the user who is logged in.',
} as const;

/** Kinds that admission rules read besides the owners of protected objects, with their verbs. */
export const admissionLookups: readonly { readonly type: ResourceType; readonly verbs: readonly ('get' | 'list')[] }[] =
  [
    // Images by their storage class, and by their display name.
    { type: harvesterImageKind.type, verbs: ['list'] },
    { type: hyperCloudImageKind.type, verbs: ['list'] },
    // Golden images that are offered are looked up in their namespace.
    { type: dataSourceKind.type, verbs: ['get', 'list'] },
    // Which policy has a cron already.
    ...[dataImportCronKind.type, goldenImagePolicyKind.type].map((type) => ({
      type,
      verbs: ['list' as const],
    })),
    // Limits of tenants, and what is counted for them.
    ...[tenantLimitKind.type, dataVolumeKind.type, virtualMachinePvcKind.type, virtualMachineVolumeKind.type].map(
      (type) => ({ type, verbs: ['list' as const] }),
    ),
    { type: storageProfileKind.type, verbs: ['get'] },
    { type: cdiConfigs, verbs: ['get'] },
    { type: storageClasses, verbs: ['get', 'list'] },
    { type: persistentVolumeClaims, verbs: ['get', 'list'] },
    // Objects of a namespace that is being deleted are not protected.
    { type: namespaces, verbs: ['get'] },
    // Volumes by their encryption Secret.
    { type: persistentVolumes, verbs: ['list'] },
    { type: templateVersions, verbs: ['get'] },
    { type: virtualMachines, verbs: ['get', 'list'] },
    { type: volumeSnapshotClasses, verbs: ['get'] },
    // Whether a version is deprecated.
    { type: volumeSnapshots, verbs: ['get'] },
  ];

/** Credentials for polls, read by name and never listed. */
export const pollLookups: readonly ResourceType[] = [secrets, configMaps];

/** Kinds of operators that a cluster may not have: each has its own source, so that a missing kind blocks no other. */
export const templateHolders: readonly ResourceType[] = [hyperConvergeds, ssps];

/** Machines with requested disks; a cluster may not have the kind. By reference: their cloud-init may contain passwords. */
export const diskUsers: readonly ResourceType[] = [virtualMachines];

/** Functions that run as Jobs, and who starts them. */
export const jobFunctions = [
  {
    name: 'transfer-job',
    summary: 'Moves the bytes of one image: fetches, checks, converts, writes.',
    startedBy: 'a backend: one Job for each volume, one pod for each attempt',
  },
  {
    name: 'boot-job',
    summary: 'Boots a version of a golden image by QEMU, and reports whether it has started.',
    startedBy: 'a GoldenImagePolicy that requires a boot',
  },
] as const;

/** Names of our images: one for the functions that serve, and one for each Job. */
export const imageNames = ['functions', ...jobFunctions.map(({ name }) => name)] as const;
