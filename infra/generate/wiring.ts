// What each function is woken by and may do: the one declaration that Triggers, Services, RBAC and the README tables are made from.
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
 * - `types`: CloudEvent types, exact, or by prefix where they end in a dot.
 */
export type EventMatch =
  | { readonly of: 'objects' | 'children' }
  | { readonly of: 'types'; readonly types: readonly string[] };

/** How hard delivery tries: `must` until minutes have passed and then as a dead letter; `may` where the next event says it all again. */
export type DeliveryClass = 'must' | 'may';

export interface AccessRule {
  readonly type: ResourceType;
  readonly subresource?: 'status' | 'finalizers';
  readonly verbs: readonly Verb[];
}
export type Verb = 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';

export interface EventFunction {
  readonly name: string;
  readonly summary: string;
  readonly subscriptions: readonly Subscription[];
  /** Requests one instance works on at a time. */
  readonly concurrency: number;
  /** Beside what every driver of images may do. */
  readonly access: readonly AccessRule[];
}

export const eventFunctions: readonly EventFunction[] = [
  {
    name: 'initialize',
    summary: 'Drives an image that was created or changed.',
    concurrency: 10,
    subscriptions: [
      {
        name: 'objects',
        summary: 'a served object was created or changed',
        events: { of: 'objects' },
        delivery: 'must',
      },
    ],
    access: [],
  },
  {
    name: 'sidecar-sync',
    summary: 'Drives the image a changed child belongs to, and folds transfer progress into its status.',
    concurrency: 10,
    subscriptions: [
      { name: 'children', summary: 'a child of an image changed', events: { of: 'children' }, delivery: 'must' },
      {
        name: 'transfers',
        summary: 'a transfer reported progress',
        events: { of: 'types', types: ['dev.bullion.transfer.'] },
        delivery: 'may',
      },
    ],
    access: [],
  },
  {
    name: 'cron-tick',
    summary: 'Each minute drives every image that is not settled, and enforces deadlines.',
    concurrency: 1,
    subscriptions: [
      {
        name: 'ping',
        summary: 'a minute has passed',
        events: { of: 'types', types: ['dev.knative.sources.ping'] },
        delivery: 'may',
      },
    ],
    access: [],
  },
];

/** Where events go that nobody could handle: the function that shows them to people. */
export const deadLetterFunction = { name: 'cron-tick', path: '/dead-letters' } as const;
