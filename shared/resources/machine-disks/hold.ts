// Finalizers on machines whose disks are created by Bullion, held until the disks to delete with them are gone, as in Harvester's own
// controller: the list of these disks is only on the machine, and if the event of its deletion were lost they would remain forever. Called by
// sync.ts, and when uninstalling.
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { finalizers } from '#shared/api/names.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

/** Attempts to write while KubeVirt keeps writing the machine's status. */
const maxWrites = 5;

const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(finalizers.machine) === true;

/** A finalizer cannot be added to an object that is being deleted. */
export const holdMachine = (kube: KubeClient, machine: KubeObject): Promise<void> =>
  change(kube, machine, (found) => {
    const isLeaving = found.metadata.deletionTimestamp !== undefined;
    return isHeld(found) || isLeaving ? undefined : [...(found.metadata.finalizers ?? []), finalizers.machine];
  });

export const releaseMachine = (kube: KubeClient, machine: KubeObject): Promise<void> =>
  change(kube, machine, (found) =>
    isHeld(found) ? found.metadata.finalizers?.filter((name) => name !== finalizers.machine) : undefined,
  );

/** Removes all finalizers, for the removal of Bullion; a cluster may not have the kind. */
export const releaseMachines = async (kube: KubeClient): Promise<void> => {
  for await (const machine of eachIfServed(kube, virtualMachines)) await releaseMachine(kube, machine);
};

/** `next` returns the desired finalizers, or `undefined` if there is no change. */
const change = async (
  kube: KubeClient,
  machine: KubeObject,
  next: (found: KubeObject) => readonly string[] | undefined,
): Promise<void> => {
  let found: KubeObject | undefined = machine;
  for (let write = 1; found !== undefined; write += 1) {
    const wanted = next(found);
    if (wanted === undefined) return;
    try {
      const { resourceVersion } = found.metadata;
      // Each attempt starts with a new read.
      await kube.mergePatch(virtualMachines, refOf(found), { metadata: { resourceVersion, finalizers: wanted } });
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isConflict(error) || write === maxWrites) throw error;
      found = await kube.get(virtualMachines, refOf(found));
    }
    if (found?.metadata.uid !== machine.metadata.uid) return;
  }
};
