// Machines whose disks are made here are held until what goes with them is gone, as Harvester's own controller does: which disks go stands on the machine
// alone, and an event of its end that was lost would leave them behind for ever. Called by sync.ts, and by who uninstalls.
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { finalizers } from '#shared/api/names.ts';
import { type KubeObject, refOf } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';

/** Tries to write while KubeVirt keeps writing the machine's status. */
const maxWrites = 5;

const isHeld = ({ metadata }: KubeObject): boolean => metadata.finalizers?.includes(finalizers.machine) === true;

/** Nothing can be added to what is on its way out. */
export const holdMachine = (kube: KubeClient, machine: KubeObject): Promise<void> =>
  change(kube, machine, (found) => {
    const isLeaving = found.metadata.deletionTimestamp !== undefined;
    return isHeld(found) || isLeaving ? undefined : [...(found.metadata.finalizers ?? []), finalizers.machine];
  });

export const releaseMachine = (kube: KubeClient, machine: KubeObject): Promise<void> =>
  change(kube, machine, (found) =>
    isHeld(found) ? found.metadata.finalizers?.filter((name) => name !== finalizers.machine) : undefined,
  );

/** All there are, for the day nobody is left to do it; a cluster may lack the kind. */
export const releaseMachines = async (kube: KubeClient): Promise<void> => {
  try {
    for await (const machine of kube.listAll(virtualMachines)) await releaseMachine(kube, machine);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};

/** `next` gives the finalizers to have, and `undefined` where they are as they should be. */
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
      // Each try begins with a fresh read.
      // oxlint-disable-next-line no-await-in-loop
      await kube.mergePatch(virtualMachines, refOf(found), { metadata: { resourceVersion, finalizers: wanted } });
      return;
    } catch (error) {
      if (isNotFound(error)) return;
      if (!isConflict(error) || write === maxWrites) throw error;
      // oxlint-disable-next-line no-await-in-loop
      found = await kube.get(virtualMachines, refOf(found));
    }
    if (found?.metadata.uid !== machine.metadata.uid) return;
  }
};
