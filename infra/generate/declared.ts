// What the code declares, gathered in one place for the builders: served kinds, and the children of every backend.
import type { ChildAccess } from '#infra/generate/rbac.ts';
import { jobs, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { ResourceType } from '#shared/api/object.ts';

export const objects: readonly ResourceType[] = servedKinds.map((kind) => kind.type);

export const children: readonly ChildAccess[] = [persistentVolumeClaims, jobs, volumeSnapshots].map((type) => ({
  type: type as unknown as ResourceType,
  verbs: ['create', 'patch', 'delete'],
}));
