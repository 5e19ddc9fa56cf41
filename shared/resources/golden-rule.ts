// Golden volumes and snapshots are not deleted under the image they hold. Told by the owner's UID, never by a name; `validate` calls it.
import { clusterControllers, annotations, labels, ownAccountPrefix } from '#shared/api/names.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Owner, ownerOf } from '#shared/api/owner.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { drivenOfGroupKind } from '#shared/resources/registry.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

const isTrusted = (username: string): boolean =>
  (clusterControllers as readonly string[]).includes(username) || username.startsWith(ownAccountPrefix);

/** A volume that is still being filled holds nothing yet, and is made again when it goes. */
const isGolden = (object: KubeObject): boolean =>
  object.metadata.labels?.[labels.role] === 'volume'
    ? object.metadata.annotations?.[annotations.populated] !== undefined
    : (object as { readonly status?: { readonly readyToUse?: boolean } }).status?.readyToUse === true;

/** Whether the image is there and is to stay. An image of the same name and another UID is another one. */
const isInUse = async (owner: Owner, kube: KubeClient): Promise<boolean> => {
  const driven = drivenOfGroupKind(owner.groupKind);
  if (driven === undefined) return false;
  const image = await kube.get(driven.kind.type, { namespace: owner.namespace, name: owner.name });
  return image !== undefined && image.metadata.uid === owner.uid && image.metadata.deletionTimestamp === undefined;
};

/** Answers the deletion of an object that carries our labels. Throws AppErrors of the client. */
export const reviewGoldenDelete = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const object = request.oldObject;
  if (object === undefined || isTrusted(request.userInfo.username) || !isGolden(object)) return allowed;
  const owner = ownerOf(object);
  if (owner === undefined || !(await isInUse(owner, kube))) return allowed;
  const what = `${request.kind.kind} ${request.namespace ?? ''}/${request.name ?? ''}`;
  const image = `${owner.groupKind} ${owner.namespace}/${owner.name}`;
  return refused('Forbidden', [], `${what} holds the golden image ${image}: delete that image instead`);
};
