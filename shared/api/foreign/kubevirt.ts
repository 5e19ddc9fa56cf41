// kubevirt.io: only the fields we read.
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

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
