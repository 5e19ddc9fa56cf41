// Declarations of the code, collected for the builders: served kinds, and the kinds that are created and read for them.
import { eventFunctions } from './event-functions.ts';
import {
  buildApiServerSources,
  buildBroker,
  buildOptionalSources,
  buildPingSource,
  buildTrigger,
  type EventSources,
} from './knative.ts';
import type { GeneratedManifest } from './manifest.ts';
import type { ChildAccess } from './rbac.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { apiVersionOf, type ResourceType } from '#shared/api/object.ts';
import { backends, type Registration } from '#shared/backends/registry.ts';
import { reconcilers } from '#shared/resources/registry.ts';

export const objects: readonly ResourceType[] = servedKinds.map((kind) => kind.type);

const keyOf = (type: ResourceType): string => `${apiVersionOf(type)} ${type.kind}`;

/** Kinds of children of all served kinds; if several create a kind, its verbs are merged. */
export const children: readonly ChildAccess[] = [
  ...Map.groupBy(
    reconcilers.flatMap((reconciler) => reconciler.watchedChildren(backends)),
    ({ type }) => keyOf(type),
  ).values(),
].flatMap((alike) =>
  alike.slice(0, 1).map(({ type }) => ({ type, verbs: [...new Set(alike.flatMap(({ verbs }) => verbs))] })),
);

/** Kinds whose objects own Jobs, and thereby the objects of these Jobs. */
export const jobOwners: readonly ResourceType[] = reconcilers
  .filter((reconciler) => reconciler.watchedChildren(backends).some(({ type }) => type.plural === jobs.plural))
  .map(({ kind }) => kind.type);

/** Kinds whose objects may own golden images: crons own their versions by label. */
export const goldenOwners: readonly ResourceType[] = [...jobOwners, dataImportCronKind.type];

/** Kinds that are created but not watched. */
export const made: readonly ChildAccess[] = reconcilers.flatMap(({ makes = [] }) => makes);

/** Kinds whose presence determines whether a backend is available. */
export const needed: readonly ResourceType[] = Object.values<Registration>(backends).flatMap((registration) =>
  registration.served && registration.backend.needs !== undefined ? [registration.backend.needs.type] : [],
);

/** Kinds that are read but not watched. */
export const reads: readonly ResourceType[] = [
  ...new Map(
    reconcilers.flatMap((reconciler) => reconciler.reads(backends)).map((type) => [keyOf(type), type]),
  ).values(),
];

// The objects of Eventing, from what the code declares: for the files under infra/knative, and for infra/single, which runs without Knative.

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
