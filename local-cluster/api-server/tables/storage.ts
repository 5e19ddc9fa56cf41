// Tables of volumes, claims, their classes and drivers.
import { type ApiObject, fieldsAt, isFields, valueAt, toText } from '../objects/object.ts';
import { cell, shapeOf, toShape, nameCell, ageCell } from './columns.ts';

const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

const accessModes = (value: unknown): string =>
  Array.isArray(value) ? [...new Set(value.map((mode) => modes[String(mode)] ?? String(mode)))].join(',') : '';

const text =
  (path: string, fallback = '') =>
  (o: ApiObject) =>
    valueAt(o, path) ?? fallback;

const phase = (o: ApiObject): unknown =>
  o.metadata.deletionTimestamp === undefined ? (valueAt(o, 'status.phase') ?? '') : 'Terminating';

const unset = '<unset>';

const defaultClass = 'storageclass.kubernetes.io/is-default-class';

export const claimShape = shapeOf(
  cell('Status', phase),
  cell('Volume', text('spec.volumeName')),
  cell('Capacity', (o) =>
    valueAt(o, 'spec.volumeName') === undefined ? '' : (valueAt(o, 'status.capacity.storage') ?? '0'),
  ),
  cell('Access Modes', (o) =>
    valueAt(o, 'spec.volumeName') === undefined ? '' : accessModes(valueAt(o, 'status.accessModes')),
  ),
  cell('StorageClass', text('spec.storageClassName')),
  cell('VolumeAttributesClass', text('spec.volumeAttributesClassName', unset)),
  cell('VolumeMode', text('spec.volumeMode', unset), { wide: true }),
);

export const volumeShape = shapeOf(
  cell('Capacity', text('spec.capacity.storage', '0')),
  cell('Access Modes', (o) => accessModes(valueAt(o, 'spec.accessModes'))),
  cell('Reclaim Policy', text('spec.persistentVolumeReclaimPolicy')),
  cell('Status', phase),
  cell('Claim', (o) => {
    const claim = fieldsAt(o, 'spec')['claimRef'];
    return isFields(claim) ? `${toText(claim['namespace'])}/${toText(claim['name'])}` : '';
  }),
  cell('StorageClass', text('spec.storageClassName')),
  cell('VolumeAttributesClass', text('spec.volumeAttributesClassName', unset)),
  cell('Reason', text('status.reason')),
  cell('VolumeMode', text('spec.volumeMode', unset), { wide: true }),
);

export const storageClassShape = toShape([
  {
    ...nameCell,
    value: (o) =>
      o.metadata.annotations?.[defaultClass] === 'true'
        ? `${o.metadata.name ?? ''} (default)`
        : (o.metadata.name ?? ''),
  },
  cell('Provisioner', text('provisioner')),
  cell('ReclaimPolicy', text('reclaimPolicy', 'Delete')),
  cell('VolumeBindingMode', text('volumeBindingMode', 'Immediate')),
  cell('AllowVolumeExpansion', (o) => o['allowVolumeExpansion'] ?? false),
  ageCell,
]);

const flag = (path: string, fallback: boolean) => (o: ApiObject) => valueAt(o, path) ?? fallback;

export const driverShape = shapeOf(
  cell('AttachRequired', flag('spec.attachRequired', true), { type: 'boolean' }),
  cell('PodInfoOnMount', flag('spec.podInfoOnMount', false), { type: 'boolean' }),
  cell('StorageCapacity', flag('spec.storageCapacity', false), { type: 'boolean' }),
  cell('TokenRequests', () => unset),
  cell('RequiresRepublish', flag('spec.requiresRepublish', false), { type: 'boolean' }),
  cell('Modes', (o) => {
    const value = valueAt(o, 'spec.volumeLifecycleModes');
    return Array.isArray(value) ? value.join(',') : '<none>';
  }),
);
