// What each function is woken by and may do: the one declaration that Triggers, Services, RBAC and the README tables are made from.
import { hyperConvergeds, ssps } from '#shared/api/foreign/boot-sources.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { backupBackingImages, harvesterSettings, virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import {
  configMaps,
  jobs,
  kubeEvents,
  namespaces,
  persistentVolumeClaims,
  pods,
  secrets,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { templateVersions } from '#shared/api/foreign/harvester.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { ResourceType } from '#shared/api/object.ts';

/** Events a function subscribes to. Each becomes one Trigger. */
export interface Subscription {
  /** Suffix of the Trigger's name, after the function's. */
  readonly name: string;
  /** For README tables. */
  readonly summary: string;
  readonly events: EventMatch;
  readonly delivery: DeliveryClass;
}

/**
 * - `objects`: add and update of every served kind, `children`: any change of what backends make.
 * - `templates`: any change of the objects whose templates golden images are made from.
 * - `kinds`: add and update of these kinds.
 * - `types`: CloudEvent types, exact, or by prefix where they end in a dot.
 */
export type EventMatch =
  | { readonly of: 'objects' | 'children' | 'templates' }
  | { readonly of: 'kinds'; readonly kinds: readonly ResourceType[] }
  | { readonly of: 'types'; readonly types: readonly string[] };

/** How hard delivery tries: `must` until minutes have passed and then as a dead letter; `may` where the next event says it all again. */
export type DeliveryClass = 'must' | 'may';

export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface EventFunction {
  readonly name: string;
  readonly summary: string;
  readonly subscriptions: readonly Subscription[];
  /** Requests one instance works on at a time. */
  readonly concurrency: number;
  /** Whether it asks sources, and needs what it takes to log in. */
  readonly polls: boolean;
  /** Whether it makes crons and DataSources of templates. */
  readonly carriesOutTemplates: boolean;
  /** All it may do, where it drives no images. */
  readonly access?: readonly {
    readonly type: ResourceType;
    readonly verbs: readonly Verb[];
    readonly subresource?: string;
    /** In our own namespace alone. */
    readonly isOwn?: true;
  }[];
}

/** For functions that say their access themselves. */
const erased = (type: unknown): ResourceType => type as ResourceType;

/** Kinds of Harvester and Longhorn that say what is to be kept in a backup target; a cluster may lack them. */
export const backupHolders: readonly ResourceType[] = [virtualMachineBackups, backupBackingImages].map(erased);

const keptKinds: readonly ResourceType[] = [harvesterImageKind.type, hyperCloudImageKind.type].map(erased);

export const eventFunctions: readonly EventFunction[] = [
  {
    name: 'initialize',
    summary: 'Drives an image that was created or changed.',
    concurrency: 10,
    polls: true,
    carriesOutTemplates: true,
    subscriptions: [
      {
        name: 'templates',
        summary: 'templates of golden images changed in HyperConverged or SSP',
        events: { of: 'templates' },
        delivery: 'may',
      },
      {
        name: 'objects',
        summary: 'a served object was created or changed',
        events: { of: 'objects' },
        delivery: 'must',
      },
      {
        name: 'polls',
        summary: 'the source of a cron was asked',
        events: { of: 'types', types: ['dev.bullion.source.'] },
        delivery: 'may',
      },
    ],
  },
  {
    name: 'sidecar-sync',
    summary: 'Drives the image a changed child belongs to, and folds transfer progress into its status.',
    concurrency: 10,
    polls: false,
    carriesOutTemplates: false,
    subscriptions: [
      { name: 'children', summary: 'a child of an image changed', events: { of: 'children' }, delivery: 'must' },
      {
        name: 'transfers',
        summary: 'a transfer reported progress',
        events: { of: 'types', types: ['dev.bullion.transfer.'] },
        delivery: 'may',
      },
    ],
  },
  {
    name: 'cron-tick',
    summary: 'Each minute drives every image that is not settled, and enforces deadlines.',
    concurrency: 1,
    polls: true,
    carriesOutTemplates: true,
    subscriptions: [
      {
        name: 'ping',
        summary: 'a minute has passed',
        events: { of: 'types', types: ['dev.knative.sources.ping'] },
        delivery: 'may',
      },
    ],
  },
  {
    name: 'import-object',
    carriesOutTemplates: false,
    summary: 'Keeps an image for each object under a configured prefix of an object store.',
    concurrency: 10,
    polls: false,
    access: [
      { type: erased(hyperCloudImageKind.type), verbs: ['get', 'list', 'create', 'delete'] },
      { type: erased(dataSourceKind.type), verbs: ['get', 'list', 'create', 'patch', 'delete'] },
      { type: erased(secrets), verbs: ['get'] },
      { type: erased(kubeEvents), verbs: ['create'] },
    ],
    subscriptions: [
      {
        name: 'objects',
        summary: 'an object of a store was changed',
        events: { of: 'types', types: ['dev.bullion.object.', 'com.amazonaws.'] },
        delivery: 'must',
      },
      {
        name: 'images',
        summary: 'an image made from one came to an end',
        events: { of: 'types', types: ['dev.bullion.image.'] },
        delivery: 'may',
      },
      {
        name: 'ping',
        summary: 'a minute has passed',
        events: { of: 'types', types: ['dev.knative.sources.ping'] },
        delivery: 'may',
      },
    ],
  },
  {
    name: 'backup-metadata',
    carriesOutTemplates: false,
    summary: 'Keeps images in the backup target, notes their deletion there, and restores what the cluster lacks.',
    concurrency: 10,
    polls: true,
    access: [
      ...keptKinds.map((type) => ({ type, verbs: ['get', 'list', 'create', 'patch'] as const })),
      ...keptKinds.map((type) => ({ type, verbs: ['update'] as const, subresource: 'status' })),
      ...keptKinds.map((type) => ({ type, verbs: ['update'] as const, subresource: 'finalizers' })),
      { type: erased(jobs), verbs: ['get', 'create', 'delete'] },
      { type: erased(pods), verbs: ['list'] },
      { type: erased(persistentVolumeClaims), verbs: ['get'] },
      { type: erased(storageClasses), verbs: ['get'] },
      { type: erased(namespaces), verbs: ['get', 'create'] },
      { type: erased(secrets), verbs: ['get'] },
      { type: erased(configMaps), verbs: ['get', 'create', 'update'], isOwn: true },
      { type: erased(backingImages), verbs: ['get'] },
      ...backupHolders.map((type) => ({ type, verbs: ['list'] as const })),
      { type: erased(harvesterSettings), verbs: ['get'] },
      { type: erased(kubeEvents), verbs: ['create'] },
    ],
    subscriptions: [
      {
        name: 'objects',
        summary: 'an image was created or changed, or what says that it is to be kept; a backup Job ended',
        events: { of: 'kinds', kinds: [...keptKinds, erased(jobs), ...backupHolders] },
        delivery: 'must',
      },
      {
        name: 'ping',
        summary: 'a minute has passed',
        events: { of: 'types', types: ['dev.knative.sources.ping'] },
        delivery: 'may',
      },
    ],
  },
];

/** Where events go that nobody could handle: the function that shows them to people. */
export const deadLetterFunction = { name: 'cron-tick', path: '/dead-letters' } as const;

/** One entry of a webhook configuration. */
export interface Webhook {
  readonly name: string;
  readonly summary: string;
  /** Which requests it is about: `webhook-scopes.ts` says it in the API server's words. */
  readonly on: 'objects' | 'golden' | 'marks' | 'templates' | 'classes' | 'claims' | 'machines';
  readonly operations: readonly ('CREATE' | 'UPDATE' | 'DELETE')[];
}

export interface AdmissionFunction {
  readonly name: 'validate' | 'mutate';
  readonly summary: string;
  /** Port of its container in the pod both share. */
  readonly port: number;
  readonly webhooks: readonly Webhook[];
}

export const admissionFunctions: readonly AdmissionFunction[] = [
  {
    name: 'mutate',
    summary: 'Fills in what an image leaves open.',
    port: 8444,
    webhooks: [{ name: 'images', summary: 'defaults of images', on: 'objects', operations: ['CREATE', 'UPDATE'] }],
  },
  {
    name: 'validate',
    summary: 'Refuses images that could never work, and deletions that would break one.',
    port: 8443,
    webhooks: [
      { name: 'images', summary: 'rules of images', on: 'objects', operations: ['CREATE', 'UPDATE'] },
      {
        name: 'golden',
        summary: 'golden volumes, snapshots and classes are not deleted under an image',
        on: 'golden',
        operations: ['DELETE'],
      },
      { name: 'marks', summary: 'nor unmarked', on: 'marks', operations: ['UPDATE'] },
      { name: 'templates', summary: 'nor images under a template', on: 'templates', operations: ['DELETE'] },
      { name: 'classes', summary: 'nor storage classes under images', on: 'classes', operations: ['DELETE'] },
      {
        name: 'claims',
        summary: 'disks of images are for who may see the image',
        on: 'claims',
        operations: ['CREATE'],
      },
      {
        name: 'machines',
        summary: 'machines mount no golden volume',
        on: 'machines',
        operations: ['CREATE', 'UPDATE'],
      },
    ],
  },
];

/** Moves bytes for people over HTTP. As a Knative Service it takes files; over TLS, behind the API server, it issues tokens for that. */
export const transferFunction = {
  name: 'transfer',
  summary: 'Takes files that people send, hands out images and volumes as files, and issues the tokens for that.',
  /** Service of the aggregated API. */
  apiService: 'upload-api',
  /** Kinds it reads to find what a file is for. */
  reads: [dataVolumeKind.type, harvesterImageKind.type, persistentVolumeClaims],
} as const;

/** What the rules of admission look up beside the served kinds. */
export const admissionLookups = [
  storageClasses,
  persistentVolumeClaims,
  templateVersions,
] as readonly unknown[] as readonly ResourceType[];

/** What polls need to log in to a source, by name and never listed. */
export const pollLookups: readonly ResourceType[] = [secrets, configMaps];

/** Kinds of operators that a cluster may lack: each has a source of its own, so that an absent one holds up nothing. */
export const templateHolders: readonly ResourceType[] = [hyperConvergeds, ssps].map(
  (type) => type as unknown as ResourceType,
);

/** What is started as a Job, by whom it is told. */
export const jobFunctions = [
  {
    name: 'transfer-job',
    summary: 'Moves the bytes of one image: fetches, checks, converts, writes.',
    startedBy: 'a backend, one Job per attempt',
  },
] as const;
