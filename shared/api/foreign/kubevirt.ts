// kubevirt.io: only the fields we read or write.
import type { Condition, KubeObject, ResourceType } from '#shared/api/object.ts';

export interface VirtualMachine extends KubeObject {
  readonly spec?: {
    readonly template?: {
      readonly spec?: {
        readonly volumes?: readonly {
          readonly persistentVolumeClaim?: { readonly claimName?: string };
          /** Mounts the claim with the same name. */
          readonly dataVolume?: { readonly name?: string };
        }[];
      };
    };
  };
}

export const virtualMachines: ResourceType<VirtualMachine> = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  namespaced: true,
};

export const volumesOf = (machine: KubeObject | undefined) =>
  (machine as VirtualMachine | undefined)?.spec?.template?.spec?.volumes ?? [];

/** Claims that it mounts, also by the name of their data volume. */
export const claimNamesOf = (machine: KubeObject | undefined): readonly string[] =>
  volumesOf(machine).map(
    ({ persistentVolumeClaim, dataVolume }) => persistentVolumeClaim?.claimName ?? dataVolume?.name ?? '',
  );

/** One that runs by itself, without a VirtualMachine. */
export interface VirtualMachineInstance extends KubeObject {
  readonly spec: object;
  readonly status?: {
    readonly phase?: 'Pending' | 'Scheduling' | 'Scheduled' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';
    readonly conditions?: readonly Condition[];
    /** Each phase it has had, and since when. */
    readonly phaseTransitionTimestamps?: readonly {
      readonly phase: string;
      readonly phaseTransitionTimestamp: string;
    }[];
    /** As its guest agent says. */
    readonly guestOSInfo?: { readonly prettyName?: string };
  };
}

export const virtualMachineInstances: ResourceType<VirtualMachineInstance> = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  namespaced: true,
};
