// cdi.kubevirt.io DataVolume: only the fields that golden images are made and judged by.
import type { CdiCondition } from '#shared/api/cdi/conditions.ts';
import { cdiGroup } from '#shared/api/cdi/names.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';

interface Named {
  readonly namespace?: string;
  readonly name: string;
}

export interface DataVolume extends KubeObject {
  readonly spec: {
    readonly source?: { readonly pvc?: Named; readonly snapshot?: Named } & Readonly<Record<string, unknown>>;
    readonly sourceRef?: Named & { readonly kind: string };
    readonly storage?: Readonly<Record<string, unknown>>;
    readonly pvc?: Readonly<Record<string, unknown>>;
  } & Readonly<Record<string, unknown>>;
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly CdiCondition[];
  };
}

export const dataVolumes: ResourceType<DataVolume> = {
  group: cdiGroup,
  version: 'v1beta1',
  kind: 'DataVolume',
  plural: 'datavolumes',
  namespaced: true,
};
