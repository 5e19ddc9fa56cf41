// A claim of the storage class of an image is a copy of that image: whoever makes one must be allowed to see it (protected/image-class-allowed).
import { grantFor } from '#shared/access/sources.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { type PersistentVolumeClaim, storageClasses } from '#shared/api/foreign/core.ts';
import { ownerOf } from '#shared/api/owner.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

const field = 'spec.storageClassName';

export const mayUseClass = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { spec } = request.object as PersistentVolumeClaim;
  const name = spec.storageClassName ?? '';
  const storageClass = name === '' ? undefined : await kube.get(storageClasses, { name });
  const image = storageClass === undefined ? undefined : ownerOf(storageClass);
  if (image === undefined) return allowed;
  const grant = await grantFor(kube, request.userInfo, { use: 'use-image', ...image });
  const message = `user ${request.userInfo.username} is not allowed to use the image of this class: it takes the right to get it`;
  return grant === undefined ? refused('Forbidden', [{ field, message }]) : allowed;
};
