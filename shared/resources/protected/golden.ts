// Golden volumes, snapshots and classes are neither deleted nor unmarked under the image they hold. Told by the owner's UID, never by a
// name, and what marks them is no user's to change.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { annotations, labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Owner, ownerOf } from '#shared/api/owner.ts';
import { isFilledVolume } from '#shared/resources/protected/filled.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { drivenOfGroupKind } from '#shared/resources/registry.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** Whether the image is there and is to stay. An image of the same name and another UID is another one. */
export const isInUse = async (owner: Owner, kube: KubeClient): Promise<boolean> => {
  const driven = drivenOfGroupKind(owner.groupKind);
  if (driven === undefined) return false;
  const image = await kube.get(driven.kind.type, { namespace: owner.namespace, name: owner.name });
  return image !== undefined && image.metadata.uid === owner.uid && image.metadata.deletionTimestamp === undefined;
};

export const whatOf = ({ kind, namespace, name }: AdmissionRequest): string =>
  `${kind.kind} ${[namespace, name].filter(Boolean).join('/')}`;

/** Who asks is in the webhook's conditions: controllers of the cluster and functions of ours are not looked at. */
export const keepGolden = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const object = request.oldObject;
  if (object === undefined || !isFilledVolume(object)) return allowed;
  const owner = ownerOf(object);
  if (owner === undefined || !(await isInUse(owner, kube))) return allowed;
  const image = `${owner.groupKind} ${owner.namespace}/${owner.name}`;
  return refused('Forbidden', [], `${whatOf(request)} holds the golden image ${image}: delete that image instead`);
};

/** What tells a golden object, and whose it is. */
export const goldenMarks = {
  labels: [labels.ownerUid, labels.ownerKind, labels.role],
  annotations: [
    annotations.ownerName,
    annotations.ownerNamespace,
    annotations.populated,
    harvesterAnnotations.goldenImage,
    harvesterAnnotations.imageId,
  ],
} as const;

const changedMarks = (before: KubeObject, after: KubeObject): readonly string[] =>
  (['labels', 'annotations'] as const).flatMap((map) =>
    goldenMarks[map]
      .filter((key) => before.metadata[map]?.[key] !== after.metadata[map]?.[key])
      .map((key) => `metadata.${map}[${key}]`),
  );

export const keepMarks = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { object, oldObject } = request;
  if (object === undefined || oldObject === undefined || object.metadata.deletionTimestamp !== undefined)
    return allowed;
  const fields = changedMarks(oldObject, object);
  // Marks that come are as telling as marks that go: a claim must not be made to look golden either.
  const owner = ownerOf(oldObject) ?? ownerOf(object);
  if (fields.length === 0 || owner === undefined || !(await isInUse(owner, kube))) return allowed;
  return refused(
    'Forbidden',
    fields.map((field) => ({
      field,
      message: `marks what holds the image ${owner.namespace}/${owner.name}: leave it`,
    })),
  );
};
