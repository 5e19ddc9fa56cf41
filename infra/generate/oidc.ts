// Who may send to whom once Knative Eventing has `authentication-oidc` enabled. Called by kustomize.ts for the component `oidc`.
import { eventTypes } from '#events/catalogue.ts';
import { broker } from '#infra/generate/knative.ts';
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { deadLetterFunction } from '#infra/generate/wiring.ts';
import { systemNamespace } from '#shared/api/names.ts';

/** As Knative writes the audience of an addressable: `<group>/<kind>/<namespace>/<name>`, lower case. */
export const audienceOf = (name: string): string => `serving.knative.dev/service/${systemNamespace}/${name}`;

const account = (name: string): string => `system:serviceaccount:${systemNamespace}:${name}`;

/**
 * Accounts that may call a function: those Knative makes for its Triggers, and for the function that takes dead letters those of the
 * Subscriptions behind the Triggers, whose names begin with the Broker's and end in an id.
 */
export const subjectsOf = (name: string): readonly string[] => [
  ...eventFunctions
    .filter((fn) => fn.name === name)
    .flatMap((fn) =>
      fn.subscriptions.map((one) => account(`${fn.name}-${one.name}-oidc-eventing.knative.dev-trigger`)),
    ),
  ...(name === deadLetterFunction.name ? [account(`${broker.name}-*`)] : []),
];

/** Where events of Jobs go. */
export const brokerAudience = `eventing.knative.dev/broker/${systemNamespace}/${broker.name}`;

/**
 * Jobs run in the namespaces of images, under accounts we do not know: whoever has an account of the cluster may tell of progress, and of nothing
 * else. Whoever folds it into a status checks that a pod of the Job signed it.
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

/** Something that sends to the Broker. */
export interface SourceRef {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/**
 * The Broker takes events of our own sources and functions, and of nobody else. Those that a cluster may lack cannot be referred to before they are there:
 * Knative names their accounts after them, with a digest behind where that is too long.
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
