// A stand-in for KubeVirt: it serves VirtualMachineInstances and sets their status as KubeVirt does. Nothing is started.
import { buildOpenCrd } from '#infra/local/manifests.ts';
import { type VirtualMachineInstance, virtualMachineInstances } from '#shared/api/foreign/kubevirt.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { isoTime } from '#shared/populate/state.ts';
import { isConflict, isNotFound } from '#shared/runtime/errors.ts';
import { installCrds } from '#local-cluster/install.ts';

export interface Machines {
  /** Those that run from now on fail, with these words of their guest; `undefined`: they come up again. */
  readonly fail: (message: string | undefined) => void;
  readonly stop: () => Promise<void>;
}

type Status = NonNullable<VirtualMachineInstance['status']>;

const begun = (phases: readonly NonNullable<Status['phase']>[]): Status => ({
  phase: phases.at(-1) ?? 'Pending',
  phaseTransitionTimestamps: phases.map((phase) => ({ phase, phaseTransitionTimestamp: isoTime(Date.now()) })),
});

const statusOf = ({ status }: VirtualMachineInstance, trouble: string | undefined): Status | undefined => {
  const lastTransitionTime = isoTime(Date.now());
  switch (status?.phase) {
    case undefined:
      return begun(['Pending', 'Scheduling']);
    case 'Scheduling':
      return begun(['Pending', 'Scheduling', 'Scheduled', 'Running']);
    case 'Running':
      if (trouble !== undefined)
        return {
          ...status,
          phase: 'Failed',
          conditions: [
            { type: 'Ready', status: 'False', reason: 'GuestNotRunning', message: trouble, lastTransitionTime },
          ],
        };
      return status.conditions === undefined
        ? {
            ...status,
            guestOSInfo: { prettyName: 'Fedora Linux 42' },
            conditions: [{ type: 'AgentConnected', status: 'True', lastTransitionTime }],
          }
        : undefined;
    default:
      return undefined;
  }
};

const lookMs = 200;

export const startMachines = async (kube: KubeClient): Promise<Machines> => {
  await installCrds(kube, [buildOpenCrd(virtualMachineInstances)]);
  let trouble: string | undefined;
  let isStopped = false;
  const step = async (machine: VirtualMachineInstance): Promise<void> => {
    const status = statusOf(machine, trouble);
    if (status === undefined) return;
    await kube.replace(virtualMachineInstances, { ...machine, status } as VirtualMachineInstance, {
      subresource: 'status',
    });
  };
  const run = async (): Promise<void> => {
    while (!isStopped) {
      const { items } = await kube.list(virtualMachineInstances);
      for (const machine of items)
        await step(machine).catch((error: unknown) => {
          if (!isConflict(error) && !isNotFound(error)) throw error;
        });
      await new Promise((resolve) => setTimeout(resolve, lookMs));
    }
  };
  const running = run();
  return {
    fail: (message) => void (trouble = message),
    stop: async () => {
      isStopped = true;
      await running;
    },
  };
};
