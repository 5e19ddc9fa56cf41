// Claims, volumes and storage classes: defaults, required fields, mutable fields of a bound claim.
import { type Cause, forbidden, invalid, notSupported, required } from '../schema/cause.ts';
import type { Json } from '../schema/json.ts';
import { isSame } from '../objects/equal.ts';
import {
  type ApiObject,
  type Fields,
  copyField,
  ensureFields,
  fieldsAt,
  setDefault,
  textAt,
  toText,
} from '../objects/object.ts';
import type { Strategy, StrategyContext } from '../registry/resource.ts';
import { plainStrategy, specOf, withStatus } from './define.ts';

const defaultClassAnnotation = 'storageclass.kubernetes.io/is-default-class';
const accessModes = ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod'];

/** The newest class that is marked as default, as chosen by the admission plugin DefaultStorageClass. */
const defaultClass = (context: StrategyContext): string | undefined =>
  context
    .all('storageclasses.storage.k8s.io')
    .filter((storageClass) => storageClass.metadata.annotations?.[defaultClassAnnotation] === 'true')
    .toSorted((a, b) => String(b.metadata.creationTimestamp).localeCompare(String(a.metadata.creationTimestamp)))
    .at(0)?.metadata.name;

const prepareClaim = (claim: ApiObject, context: StrategyContext): void => {
  const spec = specOf(claim);
  if (spec['storageClassName'] === undefined) {
    const name = defaultClass(context);
    if (name !== undefined) spec['storageClassName'] = name;
  }
  alignDataSource(spec);
  claim['status'] = { phase: 'Pending' };
};

/** `dataSource` and `dataSourceRef` refer to the same object; each is copied to the other if that is unset. */
const alignDataSource = (spec: Fields): void => {
  const reference = fieldsAt(spec, 'dataSourceRef');
  if (spec['dataSource'] !== undefined && spec['dataSourceRef'] === undefined) {
    spec['dataSourceRef'] = { ...fieldsAt(spec, 'dataSource') };
  } else if (
    spec['dataSourceRef'] !== undefined &&
    spec['dataSource'] === undefined &&
    reference['namespace'] === undefined
  ) {
    const group = reference['apiGroup'];
    const isCore = group === undefined || group === '';
    const known =
      (isCore && reference['kind'] === 'PersistentVolumeClaim') ||
      (group === 'snapshot.storage.k8s.io' && reference['kind'] === 'VolumeSnapshot');
    if (known) spec['dataSource'] = { ...reference };
  }
};

const storageRequest = (spec: Fields): unknown => fieldsAt(fieldsAt(spec, 'resources'), 'requests')['storage'];

const modeCauses = (spec: Fields, path: string): Cause[] => {
  const modes = spec['accessModes'];
  if (!Array.isArray(modes) || modes.length === 0) {
    return [required(`${path}.accessModes`, 'at least 1 access mode is required')];
  }
  return modes
    .filter((mode) => !accessModes.includes(String(mode)))
    .map((mode) => notSupported(`${path}.accessModes`, String(mode), accessModes.toSorted()));
};

const volumeModes = ['Block', 'Filesystem'];

const sizeCauses = (spec: Fields): Cause[] => {
  const field = 'spec.resources[storage]';
  const size = storageRequest(spec);
  if (size === undefined) return [required(field)];
  return /^[+]?0*(\.0*)?[A-Za-z]*$|^-/.test(toText(size))
    ? [invalid(field, toText(size), 'must be greater than zero')]
    : [];
};

const validateClaim = (claim: ApiObject): Cause[] => {
  const spec = specOf(claim);
  const mode = textAt(spec, 'volumeMode') ?? '';
  return [
    ...modeCauses(spec, 'spec'),
    ...sizeCauses(spec),
    ...(volumeModes.includes(mode) ? [] : [notSupported('spec.volumeMode', mode, volumeModes)]),
  ];
};

const immutableClaim =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

/** The fields that differ, one per line, before and after. */
const difference = (before: Fields, after: Fields): string =>
  [
    '  core.PersistentVolumeClaimSpec{',
    ...[...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
      if (isSame(before[key], after[key])) return [];
      return [`- \t${key}: ${JSON.stringify(before[key])},`, `+ \t${key}: ${JSON.stringify(after[key])},`];
    }),
    '  }',
    '',
  ].join('\n');

const validateClaimUpdate = (claim: ApiObject, old: ApiObject): Cause[] => {
  const before = specOf(old);
  const { resources: _, volumeAttributesClassName: __, ...rest } = specOf(claim);
  const { resources: ___, volumeAttributesClassName: ____, ...restBefore } = before;
  // A binder may set the volume and, with it, the class once.
  if (restBefore['volumeName'] === undefined) delete rest['volumeName'];
  if (restBefore['storageClassName'] === undefined) delete rest['storageClassName'];
  const bound = fieldsAt(old, 'status')['phase'] === 'Bound';
  const sameSize = isSame(fieldsAt(specOf(claim), 'resources'), fieldsAt(before, 'resources'));
  return isSame(rest, restBefore) && (sameSize || bound)
    ? []
    : [forbidden('spec', `${immutableClaim}\n${difference(before, specOf(claim))}`)];
};

export const claimStrategy: Strategy = withStatus({
  returnsDeleted: true,
  defaults: (claim) => {
    setDefault(ensureFields(claim, 'spec'), 'volumeMode', 'Filesystem');
  },
  prepareCreate: prepareClaim,
  validate: validateClaim,
  validateUpdate: validateClaimUpdate,
});

const sources = [
  'hostPath',
  'local',
  'csi',
  'nfs',
  'iscsi',
  'fc',
  'rbd',
  'cephfs',
  'awsElasticBlockStore',
  'gcePersistentDisk',
  'azureDisk',
  'azureFile',
  'cinder',
  'glusterfs',
  'flexVolume',
  'flocker',
  'photonPersistentDisk',
  'portworxVolume',
  'quobyte',
  'scaleIO',
  'storageos',
  'vsphereVolume',
];

const validateVolume = (volume: ApiObject): Cause[] => {
  const spec = specOf(volume);
  const causes = modeCauses(spec, 'spec');
  if (fieldsAt(spec, 'capacity')['storage'] === undefined) causes.push(required('spec.capacity'));
  if (!sources.some((source) => spec[source] !== undefined))
    causes.push(required('spec', 'must specify a volume type'));
  return causes;
};

export const volumeStrategy: Strategy = withStatus({
  returnsDeleted: true,
  defaults: (volume) => {
    const spec = ensureFields(volume, 'spec');
    setDefault(spec, 'persistentVolumeReclaimPolicy', 'Retain');
    setDefault(spec, 'volumeMode', 'Filesystem');
  },
  prepareCreate: (volume, { now }) => {
    volume['status'] = { phase: 'Pending', lastPhaseTransitionTime: `${now.toISOString().slice(0, 19)}Z` };
  },
  validate: validateVolume,
  validateUpdate: (volume, old) => {
    const source = (spec: Fields) => Object.fromEntries(sources.map((name) => [name, spec[name]]));
    return isSame(source(specOf(volume)), source(specOf(old)))
      ? []
      : [forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation')];
  },
});

export const storageClassStrategy: Strategy = {
  ...plainStrategy,
  returnsDeleted: true,
  defaults: (storageClass) => {
    setDefault(storageClass, 'reclaimPolicy', 'Delete');
    setDefault(storageClass, 'volumeBindingMode', 'Immediate');
  },
  validate: (storageClass) => ((textAt(storageClass, 'provisioner') ?? '') === '' ? [required('provisioner')] : []),
  validateUpdate: (storageClass, old) =>
    (['parameters', 'provisioner', 'reclaimPolicy', 'volumeBindingMode'] as const)
      .filter((field) => !isSame(storageClass[field], old[field]))
      .map((field) =>
        field === 'reclaimPolicy' || field === 'volumeBindingMode' || field === 'parameters'
          ? invalid(field, (storageClass[field] ?? null) as Json, 'field is immutable')
          : forbidden(field, `updates to ${field} are forbidden.`),
      ),
};

export const driverStrategy: Strategy = {
  ...plainStrategy,
  hasGeneration: false,
  returnsDeleted: true,
  defaults: (driver) => {
    const spec = ensureFields(driver, 'spec');
    setDefault(spec, 'attachRequired', true);
    setDefault(spec, 'podInfoOnMount', false);
    setDefault(spec, 'storageCapacity', false);
    setDefault(spec, 'fsGroupPolicy', 'ReadWriteOnceWithFSType');
    setDefault(spec, 'volumeLifecycleModes', ['Persistent']);
    setDefault(spec, 'requiresRepublish', false);
    setDefault(spec, 'seLinuxMount', false);
  },
  prepareUpdate: (driver, old) => {
    copyField(specOf(old), specOf(driver), 'attachRequired');
  },
};
