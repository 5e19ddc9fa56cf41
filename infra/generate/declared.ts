// What the code declares, gathered in one place for the builders: served kinds, and what is made and read for them.
import type { ChildAccess } from '#infra/generate/rbac.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { jobs } from '#shared/api/foreign/core.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { type Registration, backends } from '#shared/backends/registry.ts';
import { reconcilers } from '#shared/resources/registry.ts';

export const objects: readonly ResourceType[] = servedKinds.map((kind) => kind.type);

const keyOf = (type: ResourceType): string => `${apiVersionOf(type)} ${type.kind}`;

/** Child kinds of all served kinds; a kind that several make has the verbs of each. */
export const children: readonly ChildAccess[] = [
  ...Map.groupBy(
    reconcilers.flatMap((reconciler) => reconciler.watchedChildren(backends)),
    ({ type }) => keyOf(type),
  ).values(),
].flatMap((alike) =>
  alike.slice(0, 1).map(({ type }) => ({ type, verbs: [...new Set(alike.flatMap(({ verbs }) => verbs))] })),
);

/** Kinds whose objects own Jobs, and so whatever these work on. */
export const jobOwners: readonly ResourceType[] = reconcilers
  .filter((reconciler) => reconciler.watchedChildren(backends).some(({ type }) => type.plural === jobs.plural))
  .map(({ kind }) => kind.type);

/** Kinds whose objects what is golden may belong to: crons own their versions by label. */
export const goldenOwners: readonly ResourceType[] = [...jobOwners, dataImportCronKind.type];

/** Kinds that are made and not followed. */
export const made: readonly ChildAccess[] = reconcilers.flatMap(({ makes = [] }) => makes);

/** Kinds whose presence tells whether a backend can work. */
export const needed: readonly ResourceType[] = Object.values<Registration>(backends).flatMap((registration) =>
  registration.served && registration.backend.needs !== undefined ? [registration.backend.needs.type] : [],
);

/** Kinds that are looked up and do not follow. */
export const reads: readonly ResourceType[] = [
  ...new Map(
    reconcilers.flatMap((reconciler) => reconciler.reads(backends)).map((type) => [keyOf(type), type]),
  ).values(),
];
