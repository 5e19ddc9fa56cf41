// Rules of HyperCloud volumes, one per line. First those of the spec alone, then those that read the image.
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import type { VirtualMachinePvc, VirtualMachineVolume } from '#shared/api/hypercloud/volume.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { formatBytes, parseQuantity } from '#shared/api/quantity.ts';
import { type RequestRule, type SpecRule, faultIf } from '#shared/resources/rule.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';

const requestField = 'spec.pvc.resources.requests.storage';
const capacityField = 'spec.capacity.storage';

const isNoSize = (quantity: string | number | undefined): boolean =>
  quantity !== undefined && (parseQuantity(quantity) ?? 0) <= 0;

const noSize = 'is not a valid quantity; write one such as 10Gi, or leave it out for that of the image';

const pvcSize: SpecRule<VirtualMachinePvc>['check'] = ({ spec: { pvc } }) =>
  faultIf(isNoSize(pvc?.resources?.requests?.['storage']), requestField, noSize);

const writable: SpecRule<VirtualMachinePvc>['check'] = ({ spec: { pvc } }) =>
  faultIf(
    pvc?.accessModes !== undefined && pvc.accessModes.every((mode) => mode === 'ReadOnlyMany'),
    'spec.pvc.accessModes',
    'must include a writable mode, such as ReadWriteOnce: the volume is filled first',
  );

const ownVolume: SpecRule<VirtualMachinePvc>['check'] = ({ spec: { pvc } }) =>
  (['volumeName', 'selector', 'dataSource'] as const).flatMap((field) =>
    faultIf(
      pvc?.[field] !== undefined,
      `spec.pvc.${field}`,
      'must not be set: the volume is a new one, made from the image',
    ),
  );

export const pvcRules: readonly SpecRule<VirtualMachinePvc>[] = [
  { id: 'size', check: pvcSize },
  { id: 'writable', check: writable },
  { id: 'own-volume', check: ownVolume },
];

const capacity: SpecRule<VirtualMachineVolume>['check'] = ({ spec }) =>
  faultIf(isNoSize(spec.capacity?.['storage']), capacityField, noSize);

const sameNamespace: SpecRule<VirtualMachineVolume>['check'] = ({ metadata, spec: { virtualMachineImage } }) =>
  faultIf(
    virtualMachineImage.namespace !== undefined && virtualMachineImage.namespace !== (metadata.namespace ?? 'default'),
    'spec.virtualMachineImage.namespace',
    'must be the namespace of the volume, or not set: a volume is made from an image of its own namespace',
  );

const nameFits: SpecRule<VirtualMachineVolume>['check'] = ({ metadata }) =>
  faultIf(
    metadata.name.length > 245,
    'metadata.name',
    'must have at most 245 characters, because the name of its claim is derived from it',
  );

export const volumeRules: readonly SpecRule<VirtualMachineVolume>[] = [
  { id: 'size', check: capacity },
  { id: 'same-namespace', check: sameNamespace },
  { id: 'name', check: nameFits },
];

/** An image that does not exist, or whose size is unknown, is compared later. */
const fitsImage =
  (field: string): RequestRule<KubeObject, Volume>['check'] =>
  async ({ resource: { source, claim }, kube }) => {
    if (claim.bytes === undefined || source?.type !== 'object') return [];
    const image: HyperCloudImage | undefined = await kube.get(hyperCloudImageKind.type, source);
    const needed = image?.status?.virtualSize;
    if (needed === undefined || claim.bytes >= needed) return [];
    const sizes = `${claim.bytes} bytes (${formatBytes(claim.bytes)}), and the disk of image ${source.name} has ${needed} (${formatBytes(needed)})`;
    return [{ field, message: `is ${sizes}; ask for at least as much` }];
  };

export const hyperCloudVolumeRules = (kind: 'pvc' | 'volume'): readonly RequestRule<KubeObject, Volume>[] => [
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource }) => resource.faults },
  {
    id: 'fits-image',
    on: 'CREATE',
    reason: 'Invalid',
    check: fitsImage(kind === 'pvc' ? requestField : capacityField),
  },
];
