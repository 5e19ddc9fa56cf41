// hypercloud.tmaxanc.com volumes made from an image: VirtualMachinePvc of the design document, and VirtualMachineVolume of the released
// operator.
import { z } from 'zod';
import { HyperCloudVolumeSpec } from '#shared/api/hypercloud/image.ts';
import { imageStatusShape } from '#shared/api/image-status.ts';
import {
  NamespaceName,
  ObjectName,
  type PrinterColumn,
  QuantityValue,
  type ServedKind,
  withRules,
} from '#shared/api/kind.ts';
import type { KubeObject } from '#shared/api/object.ts';

const fixedSpec = withRules({
  rule: 'self == oldSelf',
  message: 'spec cannot be changed: create a new volume instead, or ask its claim for more storage',
});

export const VolumeStatus = z.object({
  state: z.enum(['Pending', 'Creating', 'Available', 'Error']).optional().describe('the original summary'),
  phase: z.string().optional().describe('what happens now, finer than state'),
  claimName: z.string().optional().describe('the claim that a virtual machine uses'),
  cloneStrategy: z.string().optional().describe('how the volume is made from the image: snapshot, csi-clone or copy'),
  cloneReason: z.string().optional().describe('why so'),
  ...imageStatusShape,
});
export type VolumeStatus = z.infer<typeof VolumeStatus>;

const VirtualMachinePvcSpec = z
  .object({
    virtualMachineImageName: ObjectName.min(1).describe('an image of the same namespace'),
    pvc: HyperCloudVolumeSpec.optional().describe('the claim; omitted fields are taken from the image'),
  })
  .meta(fixedSpec);

export interface VirtualMachinePvc extends KubeObject {
  readonly spec: z.infer<typeof VirtualMachinePvcSpec>;
  readonly status?: VolumeStatus;
}

const VirtualMachineVolumeSpec = z
  .object({
    virtualMachineImage: z
      .object({
        name: ObjectName.min(1),
        namespace: NamespaceName.optional().describe('refused by admission where it is another one'),
      })
      .describe('an image of the same namespace'),
    capacity: z.record(z.string(), QuantityValue).optional().describe('`storage`: at least that of the image'),
  })
  .meta(fixedSpec);

export interface VirtualMachineVolume extends KubeObject {
  readonly spec: z.infer<typeof VirtualMachineVolumeSpec>;
  readonly status?: VolumeStatus;
}

const age: PrinterColumn = { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' };

const rest: readonly PrinterColumn[] = [
  { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
  { name: 'Claim', type: 'string', jsonPath: '.status.claimName' },
  { name: 'Progress', type: 'integer', jsonPath: '.status.progress' },
  { name: 'Reason', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
  { name: 'Strategy', type: 'string', jsonPath: '.status.cloneStrategy', priority: 1 },
  { name: 'Message', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].message', priority: 1 },
];

const stateOf = (kind: string): PrinterColumn => ({
  name: 'State',
  type: 'string',
  jsonPath: '.status.state',
  description: `Current state of ${kind}`,
});

const group = { group: 'hypercloud.tmaxanc.com', version: 'v1alpha1', namespaced: true } as const;

export const virtualMachinePvcKind: ServedKind<VirtualMachinePvc> = {
  type: { ...group, kind: 'VirtualMachinePvc', plural: 'virtualmachinepvcs' },
  singular: 'virtualmachinepvc',
  shortNames: ['vmpvc'],
  categories: [],
  description: 'The disk of a virtual machine, made from a golden image. Its claim has the same name.',
  spec: VirtualMachinePvcSpec,
  status: VolumeStatus,
  columns: [stateOf('VirtualMachinePvc'), ...rest, age],
};

export const virtualMachineVolumeKind: ServedKind<VirtualMachineVolume> = {
  type: { ...group, kind: 'VirtualMachineVolume', plural: 'virtualmachinevolumes' },
  singular: 'virtualmachinevolume',
  shortNames: ['vmv'],
  categories: [],
  description: 'The disk of a virtual machine, made from a golden image. Its claim is `<name>-vmv-pvc`.',
  spec: VirtualMachineVolumeSpec,
  status: VolumeStatus,
  columns: [stateOf('VirtualMachineVolume'), age, ...rest],
};
