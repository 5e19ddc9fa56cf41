// Protects the disks of an existing virtual machine from deletion (protected/machine-disk). Claims of others are checked only if they refer to
// a machine.
import { z } from 'zod';
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type VirtualMachine, virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { whatOf } from '#shared/resources/protected/golden.ts';
import { claimNamesOf } from '#shared/api/foreign/kubevirt.ts';
import { templateNamesOf } from '#shared/resources/protected/machine.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';
import { isNotFound } from '#shared/runtime/errors.ts';

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
const notedIn = ({ metadata }: KubeObject): readonly Belonging[] => {
  try {
    const owners = OwnedBy.parse(JSON.parse(metadata.annotations?.[harvesterAnnotations.ownedBy] ?? '[]'));
    return owners
      .filter(({ schema }) => schema === 'kubevirt.io.virtualmachine')
      .flatMap(({ refs }) => refs.map((ref) => ({ name: ref.split('/')[1] ?? '' })));
  } catch {
    return [];
  }
};

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

/** Empty if the cluster does not have the kind. */
const machinesOf = async (namespace: string, kube: KubeClient): Promise<readonly VirtualMachine[]> => {
  try {
    return (await kube.list(virtualMachines, { namespace, limit: pageSize })).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
};

const usesDisk =
  (name: string) =>
  (machine: VirtualMachine): boolean =>
    isStaying(machine) && (claimNamesOf(machine).includes(name) || templateNamesOf(machine).includes(name));

export const keepMachineDisk = async (request: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const { oldObject, namespace = '', name = '' } = request;
  if (oldObject === undefined) return allowed;
  const mounting = (await machinesOf(namespace, kube)).filter(usesDisk(name)).map(({ metadata }) => metadata.name);
  // KubeVirt keeps the machine as owner of a data volume that was removed from it: considering the owner, it could never be deleted.
  const isClaim = request.resource.resource === persistentVolumeClaims.plural;
  const owning = isClaim ? await ownedBy(oldObject, namespace, kube) : [];
  const users = [...new Set([...mounting, ...owning])];
  if (users.length === 0) return allowed;
  const message = `${whatOf(request)} is a disk of the virtual machine ${users.join(', ')}: remove it from the machine, or delete the machine`;
  return refused('Forbidden', [], message);
};
