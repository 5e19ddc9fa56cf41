// An image that a version of a virtual machine template was made with stays while that version is there (protected/image-of-template).
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { templateVersions } from '#shared/api/foreign/harvester.ts';
import type { HarvesterImage } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** More owners than one are rare, and more than these are nobody's. */
const mostOwners = 8;

const hasClass = (image: KubeObject | undefined): boolean =>
  ((image as HarvesterImage | undefined)?.status?.storageClassName ?? '') !== '';

export const keepImageOfTemplate = async (
  { oldObject, namespace = '' }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  // Nothing can have been made from it.
  if (!hasClass(oldObject)) return allowed;
  const owners = (oldObject?.metadata.ownerReferences ?? []).filter(({ kind }) => kind === templateVersions.kind);
  const found = await Promise.all(
    owners.slice(0, mostOwners).map(async ({ name, uid }) => {
      const version = await kube.get(templateVersions, { namespace, name });
      return version?.metadata.uid === uid && version.metadata.deletionTimestamp === undefined ? [name] : [];
    }),
  );
  const users = found.flat();
  if (users.length === 0) return allowed;
  const message = `the image is used by ${templateVersions.kind} ${users.join(', ')}: delete that first`;
  return refused('Forbidden', [], message);
};
