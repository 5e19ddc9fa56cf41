// Reference counting of what is kept for others of a fetched disk (resources/volume/retained-copy.ts): it is owned by all who have their bytes from it, and goes
// with the last of them. Pure; called by whoever is cloned from it.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeObject, ObjectRef, OwnerReference, ResourceType } from '#shared/api/object.ts';
import { type Action, patch } from '#shared/backends/actions.ts';
import type { ReadyOrigin } from '#shared/backends/origin.ts';

/** One owner of several: none of them controls it. */
export const holderOf = ({ apiVersion, kind, name, uid }: ObjectRef): OwnerReference => ({
  apiVersion,
  kind,
  name,
  uid,
  controller: false,
  blockOwnerDeletion: false,
});

/** `name`: that of the content; everything else is held by those it belongs to. */
export const holdKept = (ref: ObjectRef, name: string, { restored, claim }: ReadyOrigin): readonly Action[] => {
  if (restored?.metadata.name === name) return hold(volumeSnapshots, restored, ref);
  return claim?.metadata.name === name ? hold(persistentVolumeClaims, claim, ref) : [];
};

const hold = <T extends KubeObject>(type: ResourceType<T>, kept: T, ref: ObjectRef): readonly Action[] => {
  const { ownerReferences = [] } = kept.metadata;
  if (ownerReferences.some(({ uid }) => uid === ref.uid)) return [];
  return [patch(type, kept, { metadata: { ownerReferences: [...ownerReferences, holderOf(ref)] } })];
};
