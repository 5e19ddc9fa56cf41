// Rules of a HyperCloud image, one per line. Block volumes are not required: a file system can contain `disk.img` as well.
import { type HyperCloudImage, hyperCloudSources } from '#shared/api/hypercloud/image.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { type SpecRule, faultIf, faultOf } from '#shared/resources/rule.ts';
import { accessFaults } from '#shared/resources/source-access.ts';
import { storedObjectFaults } from '#shared/resources/stored-object.ts';

type Rule = SpecRule<HyperCloudImage>;

const oneSource: Rule['check'] = ({ spec: { source } }) => {
  const set = hyperCloudSources.filter((field) => source[field] !== undefined);
  const message = `must have exactly one of ${hyperCloudSources.join(', ')}, and has ${set.length === 0 ? 'none' : set.join(', ')}`;
  return faultIf(set.length !== 1, 'spec.source', message);
};

const httpUrl: Rule['check'] = ({ spec: { source } }) =>
  source.http === undefined ? [] : faultOf(parseSourceUrl(source.http), 'spec.source.http');

const storedObject: Rule['check'] = ({ spec: { source } }) =>
  source.objectStore === undefined ? [] : storedObjectFaults(source.objectStore, 'spec.source.objectStore');

const sourceAccess: Rule['check'] = ({ spec: { source } }) => {
  const types = { http: 'http', objectStore: 'object' } as const;
  const [type] = (['http', 'objectStore'] as const).filter((field) => source[field] !== undefined);
  return accessFaults(type && { type: types[type] }, source, (name) => `spec.source.${name}`);
};

const checksum: Rule['check'] = ({ spec }) =>
  spec.checksum === undefined ? [] : faultOf(parseChecksum(spec.checksum), 'spec.checksum');

const requestField = 'spec.pvc.resources.requests.storage';

const storageRequest: Rule['check'] = ({ spec: { pvc } }) => {
  if (pvc === undefined) return [];
  const request = pvc.resources?.requests?.['storage'];
  if (request === undefined) {
    return [
      { field: requestField, message: 'is missing; write the size of the volume, such as 10Gi, or leave pvc out' },
    ];
  }
  return faultIf((parseQuantity(request) ?? 0) <= 0, requestField, 'is not a valid quantity; write one such as 10Gi');
};

const oneStorageClass: Rule['check'] = ({ spec: { storageClassName, pvc } }) =>
  faultIf(
    storageClassName !== undefined && pvc?.storageClassName !== undefined && storageClassName !== pvc.storageClassName,
    'spec.storageClassName',
    'differs from spec.pvc.storageClassName; write one of them',
  );

const writable: Rule['check'] = ({ spec: { pvc } }) =>
  faultIf(
    pvc?.accessModes !== undefined && pvc.accessModes.every((mode) => mode === 'ReadOnlyMany'),
    'spec.pvc.accessModes',
    'must include a writable mode, such as ReadWriteOnce: the volume is filled first',
  );

const foreignVolume = ['volumeName', 'selector', 'dataSource'] as const;

/** A complete claim spec can refer to a volume with content; an image always gets a volume of its own. */
const ownVolume: Rule['check'] = ({ spec: { pvc } }) =>
  foreignVolume.flatMap((field) =>
    faultIf(
      pvc?.[field] !== undefined,
      `spec.pvc.${field}`,
      'must not be set: the image is written to a new volume, from spec.source',
    ),
  );

export const hyperCloudImageRules: readonly Rule[] = [
  { id: 'one-source', check: oneSource },
  { id: 'http-url', check: httpUrl },
  { id: 'stored-object', check: storedObject },
  { id: 'source-access', check: sourceAccess },
  { id: 'checksum', check: checksum },
  { id: 'storage-request', check: storageRequest },
  { id: 'one-storage-class', check: oneStorageClass },
  { id: 'writable', check: writable },
  { id: 'own-volume', check: ownVolume },
];
