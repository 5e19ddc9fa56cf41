// What the code declares, gathered in one place for the builders: served kinds, and the children of every backend.
import type { ChildAccess } from '#infra/generate/rbac.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { ResourceType } from '#shared/api/object.ts';
import { servedBackends } from '#shared/backends/registry.ts';

export const objects: readonly ResourceType[] = servedKinds.map((kind) => kind.type);

export const children: readonly ChildAccess[] = servedBackends.flatMap(({ sidecars }) => sidecars);
