// A virtual machine that writes to a golden volume corrupts every disk made from it (protected/golden-volume-unmounted), and a machine made
// from an image requires permission to read that image (protected/machine-image-allowed).
import { z } from 'zod';
import { grantFor } from '#shared/access/permissions.ts';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { claimNamesOf, type VirtualMachine, virtualMachines, volumesOf } from '#shared/api/foreign/kubevirt.ts';
import { claimTemplatesOf, imageIdOf } from '#shared/api/harvester/claim-templates.ts';
import { harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { listIfServed } from '#shared/clients/kube/tolerant.ts';
import { parseJsonAs } from '#shared/runtime/json.ts';
import { imageHeldIn, whatOf } from './golden.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import { type Fault } from '#shared/runtime/errors.ts';

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
const templateNamesOf = (machine: KubeObject | undefined): readonly string[] =>
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

// Protects the disks of an existing virtual machine from deletion (protected/machine-disk). Claims of others are checked only if they refer to
// a machine.

/** Limit of machines per namespace that are checked. */
const pageSize = 500;
/** A disk belongs to one machine, or to few that share it. */
const mostOwners = 8;

const OwnedBy = z.array(z.looseObject({ schema: z.string(), refs: z.array(z.string()) }));

interface Belonging {
  readonly name: string;
  readonly uid?: string;
}

const ownersIn = ({ metadata }: KubeObject): readonly Belonging[] =>
  (metadata.ownerReferences ?? [])
    .filter(({ kind }) => kind === virtualMachines.kind)
    .map(({ name, uid }) => ({ name, uid }));

/** `<namespace>/<name>` of machines, as recorded by Harvester. */
const notedIn = ({ metadata }: KubeObject): readonly Belonging[] =>
  (parseJsonAs(OwnedBy, metadata.annotations?.[harvesterAnnotations.ownedBy]) ?? [])
    .filter(({ schema }) => schema === 'kubevirt.io.virtualmachine')
    .flatMap(({ refs }) => refs.map((ref) => ({ name: ref.split('/')[1] ?? '' })));

const isStaying = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp === undefined;

const ownedBy = async (object: KubeObject, namespace: string, kube: KubeClient): Promise<readonly string[]> => {
  const owners = [...ownersIn(object), ...notedIn(object)].filter(({ name }) => name !== '').slice(0, mostOwners);
  const found = await Promise.all(
    owners.map(async ({ name, uid }) => {
      const machine = await kube.get(virtualMachines, { namespace, name });
      const isIt = machine !== undefined && isStaying(machine) && (uid === undefined || uid === machine.metadata.uid);
      return isIt ? [name] : [];
    }),
  );
  return found.flat();
};

const usesDisk =
  (name: string) =>
  (machine: VirtualMachine): boolean =>
    isStaying(machine) && (claimNamesOf(machine).includes(name) || templateNamesOf(machine).includes(name));

export const keepMachineDisk = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { oldObject, namespace = '', name = '' } = request;
  if (oldObject === undefined) return allowed;
  const machines = await listIfServed(kube, virtualMachines, { namespace, limit: pageSize });
  const mounting = machines.filter(usesDisk(name)).map(({ metadata }) => metadata.name);
  // KubeVirt keeps the machine as owner of a data volume that was removed from it: considering the owner, it could never be deleted.
  const isClaim = request.resource.resource === persistentVolumeClaims.plural;
  const owning = isClaim ? await ownedBy(oldObject, namespace, kube) : [];
  const users = [...new Set([...mounting, ...owning])];
  if (users.length === 0) return allowed;
  const message = `${whatOf(request)} is a disk of the virtual machine ${users.join(', ')}: remove it from the machine, or delete the machine`;
  return refused('Forbidden', [], message);
};
