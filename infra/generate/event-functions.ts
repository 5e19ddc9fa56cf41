// The functions that are invoked by events: their subscriptions and permissions. Triggers, Services, RBAC and the README tables are generated
// from this.
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
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
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
 * - `objects`: add and update of every served kind, `children`: any change of children of backends.
 * - `templates`: any change of objects with templates of golden images, `machines`: add and update of virtual machines, by reference.
 * - `kinds`: add and update of these kinds, by reference if their source sends no more.
 * - `types`: CloudEvent types, exact, or prefixes if they end in a dot.
 */
export type EventMatch =
  | { readonly of: 'objects' | 'children' | 'templates' | 'machines' }
  | { readonly of: 'kinds'; readonly kinds: readonly ResourceType[] }
  | { readonly of: 'types'; readonly types: readonly string[] };

/** Delivery: `must` is retried for minutes and then becomes a dead letter; `may` is not, because the next event has the same information. */
export type DeliveryClass = 'must' | 'may';

export type ApiVerb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface EventFunction {
  readonly name: string;
  readonly summary: string;
  readonly subscriptions: readonly Subscription[];
  /** Concurrent requests per instance. */
  readonly concurrency: number;
  /** Whether it polls sources, and needs their credentials. */
  readonly polls: boolean;
  /** Whether it reads from object stores, with credentials that it names itself. */
  readonly asksStores?: true;
  /** Whether it creates crons and DataSources from templates. */
  readonly carriesOutTemplates: boolean;
  /** Whether it publishes cluster-wide settings for clients. */
  readonly tells?: true;
  /** Verbs on virtual machines, if it creates their disks: it sets a finalizer until the disks to delete with them are gone. */
  readonly machines?: readonly ('get' | 'list' | 'patch')[];
  /** All its permissions, if it reconciles no images. */
  readonly access?: readonly {
    readonly type: ResourceType;
    readonly verbs: readonly ApiVerb[];
    readonly subresource?: string;
    /** Only in our own namespace. */
    readonly isOwn?: true;
  }[];
}

/**
 * Kinds of Harvester and Longhorn that request a backup; a cluster may not have them. Their events contain only the name of the object: a
 * backup of a machine contains the data of its Secrets, which must not reach a broker or a dead letter, and may exceed the size limit.
 */
export const backupHolders: readonly ResourceType[] = [virtualMachineBackups, backupBackingImages];

const keptKinds: readonly ResourceType[] = [harvesterImageKind.type, hyperCloudImageKind.type];

/**
 * Of functions that wait for the API server most of the time: a process that handles a hundred events at once needs 149 MiB of its 256, six more than with
 * ten (`npm run bench -- burst`). Knative starts another pod at seven tenths of it.
 */
const burst = 100;

export const eventFunctions: readonly EventFunction[] = [
  {
    name: 'initialize',
    summary: 'Reconciles an image that was created or changed.',
    concurrency: burst,
    polls: true,
    carriesOutTemplates: true,
    machines: ['get', 'list', 'patch'],
    subscriptions: [
      {
        name: 'templates',
        summary: 'templates of golden images changed in HyperConverged or SSP',
        events: { of: 'templates' },
        delivery: 'may',
      },
      {
        name: 'machines',
        summary: 'a virtual machine that names disks was created, changed or deleted',
        events: { of: 'machines' },
        delivery: 'must',
      },
      {
        name: 'objects',
        summary: 'a served object was created or changed',
        events: { of: 'objects' },
        delivery: 'must',
      },
      {
        name: 'polls',
        summary: 'the source of a cron was polled',
        events: { of: 'types', types: ['dev.bullion.source.'] },
        delivery: 'may',
      },
    ],
  },
  {
    name: 'sidecar-sync',
    summary: 'Reconciles the image a changed child belongs to, and records transfer progress in its status.',
    concurrency: burst,
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
    summary:
      'Each minute reconciles what is not settled, and enforces deadlines; from time to time looks at everything.',
    concurrency: 1,
    polls: true,
    carriesOutTemplates: true,
    tells: true,
    machines: ['get', 'list', 'patch'],
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
    asksStores: true,
    access: [
      { type: hyperCloudImageKind.type, verbs: ['get', 'list', 'create', 'patch', 'delete'] },
      { type: dataSourceKind.type, verbs: ['get', 'list', 'create', 'patch', 'delete'] },
      { type: secrets, verbs: ['get'] },
      { type: kubeEvents, verbs: ['create'] },
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
        summary: 'an image made from one became ready or failed',
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
    summary:
      'Keeps images in the backup target, records their deletion there, and restores images that the cluster does not have.',
    concurrency: 10,
    polls: true,
    access: [
      ...keptKinds.map((type) => ({ type, verbs: ['get', 'list', 'create', 'patch'] as const })),
      ...keptKinds.map((type) => ({ type, verbs: ['update'] as const, subresource: 'status' })),
      ...keptKinds.map((type) => ({ type, verbs: ['update'] as const, subresource: 'finalizers' })),
      { type: jobs, verbs: ['get', 'create', 'patch', 'delete'] },
      { type: pods, verbs: ['list'] },
      { type: persistentVolumeClaims, verbs: ['get'] },
      { type: storageClasses, verbs: ['get'] },
      { type: namespaces, verbs: ['get', 'create'] },
      { type: secrets, verbs: ['get', 'create'] },
      { type: configMaps, verbs: ['get', 'create', 'update'], isOwn: true },
      { type: backingImages, verbs: ['get'] },
      ...backupHolders.map((type) => ({ type, verbs: ['get', 'list'] as const })),
      { type: harvesterSettings, verbs: ['get'] },
      { type: kubeEvents, verbs: ['create'] },
    ],
    subscriptions: [
      {
        name: 'objects',
        summary:
          'an image, or an object that decides whether it is backed up, was created or changed; a backup Job ended',
        events: { of: 'kinds', kinds: [...keptKinds, jobs, ...backupHolders] },
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
