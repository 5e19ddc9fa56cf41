// A claim is not deleted while an image is being made from it (protected/exported-claim). It is marked when that begins (`shared/backends/exporting.ts`).
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { isTrue } from '#shared/api/conditions.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { ObjectMeta } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { whatOf } from '#shared/resources/protected/golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** Whether that image is still being made, and from this claim. An image of the same name and another UID is another one. */
const isBeingMade = (image: HarvesterImage | undefined, uid: string, claim: ObjectMeta | undefined): boolean => {
  if (image?.metadata.uid !== uid || image.metadata.deletionTimestamp !== undefined) return false;
  const { pvcName, pvcNamespace } = image.spec;
  if (pvcName !== claim?.name || pvcNamespace !== claim?.namespace) return false;
  const conditions = image.status?.conditions;
  return !isTrue(conditions, 'Imported') && !isTrue(conditions, 'RetryLimitExceeded');
};

export const keepExported = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { metadata } = request.oldObject ?? {};
  const uid = metadata?.labels?.[labels.exporting];
  const [namespace = '', name = ''] = (metadata?.annotations?.[annotations.exporting] ?? '').split('/');
  if (uid === undefined || name === '') return allowed;
  if (!isBeingMade(await kube.get(harvesterImageKind.type, { namespace, name }), uid, metadata)) return allowed;
  const message = `${whatOf(request)} is being exported to the image ${namespace}/${name}: wait for its end, or delete that image first`;
  return refused('Forbidden', [], message);
};
