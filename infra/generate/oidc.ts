// Authentication of senders if Knative Eventing has `authentication-oidc` enabled. Called by kustomize.ts for the component `oidc`.
import { eventTypes } from '#events/catalogue.ts';
import { broker } from '#infra/generate/knative.ts';
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { deadLetterFunction } from '#infra/generate/wiring.ts';
import { systemNamespace } from '#shared/api/names.ts';

/** Knative's format of the audience of an addressable: `<group>/<kind>/<namespace>/<name>`, in lower case. */
export const audienceOf = (name: string): string => `serving.knative.dev/service/${systemNamespace}/${name}`;

const account = (name: string): string => `system:serviceaccount:${systemNamespace}:${name}`;

/**
 * Accounts that may call a function: those Knative creates for its Triggers, and for the dead letter function those of the Subscriptions behind
 * the Triggers, whose names start with the Broker's and end in an ID.
 */
export const subjectsOf = (name: string): readonly string[] => [
  ...eventFunctions
    .filter((fn) => fn.name === name)
    .flatMap((fn) =>
      fn.subscriptions.map((one) => account(`${fn.name}-${one.name}-oidc-eventing.knative.dev-trigger`)),
    ),
  ...(name === deadLetterFunction.name ? [account(`${broker.name}-*`)] : []),
];

/** Audience for events of Jobs. */
export const brokerAudience = `eventing.knative.dev/broker/${systemNamespace}/${broker.name}`;

/**
 * Jobs run in the namespaces of images, with accounts that are not known in advance: every account of the cluster may send progress events, and
 * no others. The receiver verifies that a pod of the Job signed it.
 */
export const buildTransferPolicy = (): GeneratedManifest => ({
  apiVersion: 'eventing.knative.dev/v1alpha1',
  kind: 'EventPolicy',
  metadata: { name: 'transfers', namespace: systemNamespace, labels: partOf('events') },
  spec: {
    to: [{ ref: { apiVersion: broker.apiVersion, kind: broker.kind, name: broker.name } }],
    from: [{ sub: 'system:serviceaccount:*' }],
    filters: [{ exact: { type: eventTypes.transferProgressed } }],
  },
});

/** A sender to the Broker. */
export interface SourceRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/**
 * The Broker accepts only events of our own sources and functions. Optional sources cannot be referred to before they exist: Knative derives
 * their account names from them, with a digest if they are too long.
 */
export const buildEventPolicy = (sources: readonly SourceRef[], optional: readonly string[]): GeneratedManifest => ({
  apiVersion: 'eventing.knative.dev/v1alpha1',
  kind: 'EventPolicy',
  metadata: { name: broker.name, namespace: systemNamespace, labels: partOf('events') },
  spec: {
    to: [{ ref: { apiVersion: broker.apiVersion, kind: broker.kind, name: broker.name } }],
    from: [
      ...sources.map(({ apiVersion, kind, name }) => ({
        ref: { apiVersion, kind, name, namespace: systemNamespace },
      })),
      ...optional.map((name) => ({ sub: account(`${name}*`) })),
    ],
  },
});
