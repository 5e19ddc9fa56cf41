// A virtual machine that writes to a golden volume corrupts every disk made from it (protected/golden-volume-unmounted), and a machine made
// from an image requires permission to read that image (protected/machine-image-allowed).
import { grantFor } from '#shared/access/sources.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { claimNamesOf, volumesOf } from '#shared/api/foreign/kubevirt.ts';
import { claimTemplatesOf, imageIdOf } from '#shared/api/harvester/claim-templates.ts';
import { harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { imageHeldIn } from '#shared/resources/protected/golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Limit of disks added by one change: each requires a look-up. */
const most = 32;

const tooMany = (field: string): AdmissionAnswer =>
  refused('Invalid', [{ field, message: `adds more than ${most} disks at once: add them in several steps` }]);

/** Existing disks were checked before. */
const added = (now: readonly string[], before: readonly string[]): readonly string[] =>
  [...new Set(now)].filter((name) => name !== '' && !before.includes(name));

const isGoldenClaim = async (kube: KubeClient, namespace: string, name: string): Promise<boolean> => {
  const claim = await kube.get(persistentVolumeClaims, { namespace, name });
  return claim !== undefined && (await imageHeldIn(claim, kube)) !== undefined;
};

/** A machine that was imported as a whole may start from its original volume. */
const isImported = ({ metadata }: KubeObject): boolean => metadata.labels?.[harvesterLabels.imported] === 'true';

export const keepGoldenUnmounted = async (
  { object, oldObject, namespace = '' }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  if (object === undefined || isImported(object)) return allowed;
  const names = added(claimNamesOf(object), claimNamesOf(oldObject));
  if (names.length > most) return tooMany('spec.template.spec.volumes');
  const faults = await Promise.all(
    names.map(async (name): Promise<readonly Fault[]> => {
      const index = claimNamesOf(object).indexOf(name);
      const isClaim = volumesOf(object)[index]?.persistentVolumeClaim !== undefined;
      const field = `spec.template.spec.volumes[${index}].${isClaim ? 'persistentVolumeClaim.claimName' : 'dataVolume.name'}`;
      const message = `${name} is a golden image: make a disk from the image and use that`;
      return (await isGoldenClaim(kube, namespace, name)) ? [{ field, message }] : [];
    }),
  );
  return faults.flat().length === 0 ? allowed : refused('Invalid', faults.flat());
};

/** Names of the disks that are created for it. */
export const templateNamesOf = (machine: KubeObject | undefined): readonly string[] =>
  claimTemplatesOf(machine).flatMap(({ metadata }) => metadata?.name ?? []);

/** `<namespace>/<name>` of the images for disks of the machine. */
const imageIdsOf = (machine: KubeObject | undefined): readonly string[] => claimTemplatesOf(machine).map(imageIdOf);

export const mayUseImages = async (
  { object, oldObject, userInfo }: AdmissionRequest,
  kube: KubeClient,
): Promise<AdmissionAnswer> => {
  const ids = added(imageIdsOf(object), imageIdsOf(oldObject));
  const field = `metadata.annotations[${harvesterAnnotations.claimTemplates}]`;
  if (ids.length > most) return tooMany(field);
  const denied = await Promise.all(
    ids.map(async (id) => {
      const [namespace = '', name = ''] = id.split('/');
      return (await grantFor(kube, userInfo, { use: 'use-image', namespace, name })) === undefined ? [id] : [];
    }),
  );
  if (denied.flat().length === 0) return allowed;
  const message = `user ${userInfo.username} is not allowed to use the image ${denied.flat().join(', ')}`;
  return refused('Forbidden', [{ field, message }]);
};
