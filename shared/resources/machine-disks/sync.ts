// Creates the disks that Harvester's clients write on a virtual machine, from images of any backend, and removes those to delete with it.
// Called when a machine changes, when an image becomes ready, and by the tick.
import { grantFor, serviceAccountRequester } from '#shared/access/permissions.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { claimTemplatesOf, imageIdOf, removedClaimsOf } from '#shared/api/harvester/claim-templates.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type KubeObject, type ObjectKey, refOf, isOfType } from '#shared/api/object.ts';
import type { RootDisk } from '#shared/backends/backend.ts';
import { registrationOf } from '#shared/backends/registry.ts';
import { execute } from '#shared/resources/execute.ts';
import { imageOfClass } from '#shared/resources/image-rules.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { holdMachine, releaseMachine } from '#shared/resources/machine-disks/hold.ts';
import {
  type ObservedDisk,
  type DiskWish,
  type Obstacle,
  planDisk,
  planRemoval,
  wantsGrowth,
} from '#shared/resources/machine-disks/plan.ts';
import { recordNote } from '#shared/resources/write.ts';
import { AppError, isConflict, messageOf } from '#shared/runtime/errors.ts';
import { type Outcome, done, waiting } from '#shared/runtime/outcome.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { isLeaving } from '#shared/populate/watched-child.ts';

/** Limit of disks of one machine; more are ignored. */
const mostDisks = 64;
/** Milliseconds for which the tick checks a new machine, to make up for lost events. */
const newForMs = 3_600_000;

const concernsUs = (machine: KubeObject): boolean =>
  claimTemplatesOf(machine).length > 0 || removedClaimsOf(machine).length > 0;

/** Events contain only the name of a machine: its content may include passwords, which must not reach a broker. */
export const handleMachineEvent = async (deps: ReconcileDeps, ref: ObjectKey): Promise<Outcome> => {
  const machine = await deps.kube.get(virtualMachines, ref);
  return machine === undefined || !concernsUs(machine) ? done : syncDisks(deps, machine);
};

const syncDisks = async (deps: ReconcileDeps, machine: KubeObject): Promise<Outcome> => {
  if (isLeaving(machine)) {
    const removed = await removeDisks(deps, machine);
    await releaseMachine(deps.kube, machine);
    return removed;
  }
  await holdMachine(deps.kube, machine);
  const missing: string[] = [];
  for (const template of claimTemplatesOf(machine).slice(0, mostDisks)) {
    const { name = '' } = template.metadata ?? {};
    if (name === '') continue;
    const wish: DiskWish = { namespace: machine.metadata.namespace ?? 'default', name, template };
    const obstacle = await makeDisk(deps, wish);
    if (obstacle === undefined) continue;
    missing.push(obstacle.message);
    const occurrence = `${name}/${obstacle.message}`;
    await recordNote(deps, refOf(machine), { type: 'Warning', ...obstacle, occurrence });
  }
  return missing.length === 0 ? done : waiting(missing.join('; '));
};

/** A permanent error of the API is reported on the machine, not to the sender of the event. */
const makeDisk = async (deps: ReconcileDeps, wish: DiskWish): Promise<Obstacle | undefined> => {
  try {
    const { actions, obstacle } = planDisk(wish, await readDisk(deps, wish));
    await execute(deps.kube, actions);
    return obstacle;
  } catch (error) {
    // Created concurrently by another pass.
    if (isConflict(error)) return undefined;
    if (!(error instanceof AppError) || error.retryable) throw error;
    return { reason: 'DiskRefused', message: `disk ${wish.name} was rejected: ${messageOf(error)}` };
  }
};

const readDisk = async ({ kube, backends }: ReconcileDeps, wish: DiskWish): Promise<ObservedDisk> => {
  const { namespace, name, template } = wish;
  const claim = await kube.get(persistentVolumeClaims, { namespace, name });
  if (claim !== undefined) {
    const className = claim.spec.storageClassName ?? '';
    const isSmall = wantsGrowth(wish, claim) && className !== '';
    return { claim, storageClass: isSmall ? await kube.get(storageClasses, { name: className }) : undefined };
  }
  const dataVolume = await kube.get(dataVolumeKind.type, { namespace, name });
  if (dataVolume !== undefined) return { dataVolume };
  const denied = await deniedOf({ kube }, wish);
  const id = imageIdOf(template);
  if (denied !== undefined || id === '') return denied === undefined ? {} : { denied };
  const [imageNamespace = '', imageName = ''] = id.split('/');
  const key = { namespace: imageNamespace, name: imageName };
  const image = await kube.get(harvesterImageKind.type, key);
  return { image, rootDisk: image && rootDiskOf(backends, image) };
};

/** Sources that are not permitted for its namespace: our account, which creates claims, may read every image. */
const deniedOf = async (
  { kube }: Pick<ReconcileDeps, 'kube'>,
  { namespace, template }: DiskWish,
): Promise<string | undefined> => {
  const className = template.spec?.storageClassName ?? '';
  const ofClass = await imageOfClass(kube, className);
  if (ofClass !== undefined && !(await mayUse({ kube }, namespace, ofClass)))
    return `in the storage class ${className} of an image`;
  const id = imageIdOf(template);
  const [imageNamespace = '', name = ''] = id.split('/');
  if (id === '' || (await mayUse({ kube }, namespace, { namespace: imageNamespace, name }))) return undefined;
  return `from the image ${id}`;
};

/** Later passes have no requester, so the permissions of the operators of the machine's namespace are checked. */
const mayUse = async (
  { kube }: Pick<ReconcileDeps, 'kube'>,
  namespace: string,
  image: { readonly namespace: string; readonly name: string },
): Promise<boolean> => {
  if (image.namespace === namespace) return true;
  const requester = serviceAccountRequester(namespace, 'default');
  return (await grantFor(kube, requester, { use: 'use-image', ...image })) !== undefined;
};

const rootDiskOf = (backends: ReconcileDeps['backends'], object: HarvesterImage): RootDisk | undefined => {
  const image = harvesterImages.toImage(object);
  const registration = registrationOf(backends, image.backend);
  const isReady = image.state.phase === 'Available' && !image.deleting;
  return isReady && registration.served ? registration.backend.rootDiskOf(image) : undefined;
};

const removeDisks = async ({ kube }: ReconcileDeps, machine: KubeObject): Promise<Outcome> => {
  const namespace = machine.metadata.namespace ?? 'default';
  for (const name of removedClaimsOf(machine).slice(0, mostDisks)) {
    const dataVolume = await kube.get(dataVolumeKind.type, { namespace, name });
    const claim = dataVolume === undefined ? await kube.get(persistentVolumeClaims, { namespace, name }) : undefined;
    await execute(kube, planRemoval({ dataVolume, claim }));
  }
  return done;
};

/** A failure of one machine must not affect the disks of others. */
const quietly = async (
  deps: ReconcileDeps,
  machine: KubeObject,
  step: (deps: ReconcileDeps, machine: KubeObject) => Promise<unknown>,
): Promise<void> => {
  const { namespace = '', name } = machine.metadata;
  try {
    await step(deps, machine);
  } catch (error) {
    deps.log.warn('virtual machine not reconciled', { object: `${namespace}/${name}`, error: messageOf(error) });
  }
};

async function* machinesOf({ kube }: ReconcileDeps): AsyncIterable<KubeObject> {
  for await (const machine of eachIfServed(kube, virtualMachines)) if (concernsUs(machine)) yield machine;
}

/** Disks that wait for an image, once it is ready. */
export const makeDisksOf = async (deps: ReconcileDeps, image: KubeObject): Promise<void> => {
  const { type } = harvesterImageKind;
  if (!isOfType(image, type)) return;
  const id = `${image.metadata.namespace}/${image.metadata.name}`;
  for await (const machine of machinesOf(deps)) {
    if (claimTemplatesOf(machine).some((template) => imageIdOf(template) === id))
      await quietly(deps, machine, syncDisks);
  }
};

/**
 * New machines, and those being deleted: events of all others arrived long ago. One without our finalizer is older than Bullion: its list of
 * disks to delete is lost when it is gone.
 */
export const sweepMachines = async (deps: ReconcileDeps): Promise<void> => {
  for await (const machine of machinesOf(deps)) {
    const age = deps.now() - Date.parse(machine.metadata.creationTimestamp ?? '');
    const step = isLeaving(machine) || age < newForMs ? syncDisks : hold;
    await quietly(deps, machine, step);
  }
};

const hold = ({ kube }: ReconcileDeps, machine: KubeObject): Promise<void> => holdMachine(kube, machine);
