// The objects of Eventing, from what the code declares: for the files under infra/knative, and for infra/single, which runs without Knative.
import { children, objects } from '#infra/generate/declared.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import {
  type EventSources,
  buildApiServerSources,
  buildBroker,
  buildOptionalSources,
  buildPingSource,
  buildTrigger,
} from '#infra/generate/knative.ts';
import type { GeneratedManifest } from '#infra/generate/manifest.ts';

export const sources: EventSources = { objects, children: children.map(({ type }) => type) };

export const buildTriggers = (): readonly GeneratedManifest[] =>
  eventFunctions.flatMap((fn) => fn.subscriptions.map((subscription) => buildTrigger(fn, subscription, sources)));

/** All of them, including sources of kinds that a cluster may not have. */
export const buildEventing = (): readonly GeneratedManifest[] => [
  buildBroker(),
  ...buildTriggers(),
  ...buildApiServerSources(sources),
  ...buildOptionalSources(sources),
  buildPingSource(),
];
