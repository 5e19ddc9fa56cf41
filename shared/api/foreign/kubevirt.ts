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
