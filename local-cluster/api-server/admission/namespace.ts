// The NamespaceLifecycle admission plugin: objects are created only in namespaces that exist and are not being deleted.
import type { Call } from '../handlers/call.ts';
import { type ApiError, ApiError as StatusError, forbidden, notFound } from '../status/status.ts';
import type { ApiObject } from '../objects/object.ts';

const namespaces = { group: '', plural: 'namespaces' };
const immortal = ['default', 'kube-system', 'kube-public'];

const terminating = (call: Call, name: string): ApiError => {
  const { namespace } = call.path;
  const { status } = forbidden(
    call.resource,
    name,
    `unable to create new content in namespace ${namespace} because it is being terminated`,
  );
  const cause = {
    reason: 'NamespaceTerminating',
    message: `namespace ${namespace} is being terminated`,
    field: 'metadata.namespace',
  };
  return new StatusError({ ...status, details: { ...status.details, causes: [cause as never] } });
};

/** Throws a 404 or 403 when no object may be created there. */
export const checkNamespace = (call: Call, name: string): void => {
  if (!call.resource.namespaced || call.path.namespace === '') return;
  const entry = call.api.store.get({ collection: 'namespaces', namespace: '', name: call.path.namespace });
  if (entry === undefined) throw notFound(namespaces, call.path.namespace);
  if (entry.object().metadata.deletionTimestamp !== undefined) throw terminating(call, name);
};

/** Throws a 403 for the deletion of a namespace that the cluster requires. */
export const checkProtected = (call: Call): void => {
  const { resource, path } = call;
  if (resource.collection === 'namespaces' && path.subresource === '' && immortal.includes(path.name)) {
    throw forbidden(resource, path.name, 'this namespace may not be deleted');
  }
};

/**
 * Reports to the audit what the plugin OwnerReferencesPermissionEnforcement requires: whoever sets an owner reference that blocks the
 * deletion of its owner must be allowed to update the owner's finalizers, if a cluster (such as OpenShift) enables that plugin.
 */
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
