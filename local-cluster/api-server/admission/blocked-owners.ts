// What the plugin OwnerReferencesPermissionEnforcement asks for, told to the audit: who writes an owner reference that blocks the deletion of its
// owner must be allowed to update the owner's finalizers, where a cluster (such as OpenShift) has that plugin on.
import type { Call } from '../handlers/call.ts';
import type { ApiObject } from '../objects/object.ts';

export const auditBlockedOwners = ({ api, user, path }: Call, object: ApiObject): void => {
  if (api.audit === undefined) return;
  for (const reference of object.metadata.ownerReferences ?? []) {
    if (reference.blockOwnerDeletion !== true) continue;
    const [version = '', group = ''] = reference.apiVersion.split('/').toReversed();
    const plural = api.registry.byKind(group, version, reference.kind)?.plural;
    if (plural === undefined) continue;
    const { namespace } = path;
    api.audit(user, {
      verb: 'update',
      group,
      version,
      plural,
      subresource: 'finalizers',
      namespace,
      name: reference.name,
    });
  }
};
