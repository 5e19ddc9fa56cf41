// What the code declares, gathered in one place for the builders: served kinds, and what the backends make and read.
import type { ChildAccess } from '#infra/generate/rbac.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { type ResourceType, apiVersionOf } from '#shared/api/object.ts';
import { servedBackends } from '#shared/backends/registry.ts';

export const objects: readonly ResourceType[] = servedKinds.map((kind) => kind.type);

const keyOf = (type: ResourceType): string => `${apiVersionOf(type)} ${type.kind}`;

/** Child kinds of all backends; a kind that several make has the verbs of each. */
export const children: readonly ChildAccess[] = [
  ...Map.groupBy(
    servedBackends.flatMap(({ sidecars }) => sidecars),
    ({ type }) => keyOf(type),
  ).values(),
].flatMap((alike) =>
  alike.slice(0, 1).map(({ type }) => ({ type, verbs: [...new Set(alike.flatMap(({ verbs }) => verbs))] })),
);

/** Kinds that backends look up and do not follow. */
export const reads: readonly ResourceType[] = [
  ...new Map(servedBackends.flatMap((backend) => backend.reads).map((type) => [keyOf(type), type])).values(),
];
