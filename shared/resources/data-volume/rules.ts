// Rules of a DataVolume, one per line. CDI features that this installation does not support are listed here, field by field.
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { readSource, toGcsUrl, toS3Place } from '#shared/resources/data-volume/source.ts';
import { type RequestRule, type SpecRule, faultIf, faultOf } from '#shared/resources/rule.ts';
import { type WrittenAccess, accessFaults, annotationField, changedAccess } from '#shared/resources/source-access.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';

// Rules about the claim and the names of a DataVolume, one per line.

type ClaimCheck = SpecRule<DataVolume>['check'];

/** `pvc` is used unchanged, so it needs a mode; for `storage` the class provides it. */
const oneAccessMode: ClaimCheck = ({ spec: { pvc } }) =>
  faultIf(
    pvc !== undefined && pvc.accessModes?.length !== 1,
    'spec.pvc.accessModes',
    'must have exactly one mode, such as ReadWriteOnce; with spec.storage instead of spec.pvc it is determined automatically',
  );

const referenceName: ClaimCheck = ({ spec: { sourceRef } }) =>
  faultIf(sourceRef?.name === '', 'spec.sourceRef.name', 'is empty; write the name of a DataSource');

const sourceNames: ClaimCheck = ({ spec: { source = {} } }) =>
  (['pvc', 'snapshot'] as const).flatMap((kind) =>
    (['namespace', 'name'] as const).flatMap((part) =>
      faultIf(
        source[kind]?.[part] === '',
        `spec.source.${kind}.${part}`,
        'is empty; set the name of the object to clone',
      ),
    ),
  );

const dataVolumeClaimRules: readonly SpecRule<DataVolume>[] = [
  { id: 'one-access-mode', check: oneAccessMode },
  { id: 'reference-name', check: referenceName },
  { id: 'source-names', check: sourceNames },
];

/** A claim that is being deleted is waited for. */
const claimIsFree: RequestRule<KubeObject, Volume>['check'] = async ({ object, resource: { claim }, kube }) => {
  const key = { namespace: object.metadata.namespace ?? 'default', name: claim.name };
  const found = await kube.get(persistentVolumeClaims, key);
  const isTaken =
    found !== undefined &&
    found.metadata.deletionTimestamp === undefined &&
    claim.adopts?.(found) !== true &&
    claim.fills?.(found) !== true;
  const message = `claim ${claim.name} exists and was not made for this DataVolume: choose another name, or annotate this one with cdi.kubevirt.io/allowClaimAdoption=true to take it as it is`;
  return faultIf(isTaken, 'metadata.name', message);
};

const freeClaim: RequestRule<KubeObject, Volume> = {
  id: 'free-claim',
  on: 'CREATE',
  reason: 'Conflict',
  check: claimIsFree,
};

type Check = SpecRule<DataVolume>['check'];

const oneSource: Check = ({ spec: { source = {}, sourceRef } }) => {
  const set = Object.entries(source).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  const count = set.length + (sourceRef === undefined ? 0 : 1);
  return faultIf(count !== 1, 'spec.source', 'must have exactly one of its fields, or sourceRef must be set instead');
};

const oneForm: Check = ({ spec }) =>
  faultIf(
    (spec.pvc === undefined) === (spec.storage === undefined),
    'spec.storage',
    'or spec.pvc must be set, and not both',
  );

const sourceKind: Check = ({ spec: { sourceRef } }) =>
  faultIf(sourceRef !== undefined && sourceRef.kind !== 'DataSource', 'spec.sourceRef.kind', 'must be DataSource');

/** Sources of CDI that require unavailable programs or services, and alternatives. */
const unserved = {
  imageio: 'oVirt images are not supported by this installation: download the disk from oVirt and import it with http',
  vddk: "this requires VMware's own library, which may not be redistributed: export the disk as vmdk and import it with http",
} as const;

const unservedSources: Check = ({ spec: { source = {} } }) =>
  (Object.keys(unserved) as (keyof typeof unserved)[]).flatMap((name) =>
    faultIf(source[name] !== undefined, `spec.source.${name}`, unserved[name]),
  );

const unservedAccess: Check = ({ spec: { source = {} } }) => {
  const { http, registry } = source;
  return [
    ...faultIf(
      http?.insecureSkipVerify === true,
      'spec.source.http.insecureSkipVerify',
      'is not supported: the disk could be replaced in transit; put its certificates into certConfigMap',
    ),
    ...faultIf(
      registry?.imageStream !== undefined,
      'spec.source.registry.imageStream',
      'is not supported: image streams exist only in OpenShift; write the image in url',
    ),
  ];
};

const access: Check = (object) => {
  const { spec, metadata } = object;
  const workloadIdentity = metadata.annotations?.[annotations.workloadIdentity];
  const source = readSource(spec, metadata.namespace ?? 'default', workloadIdentity);
  const [[type, fields] = ['', {}]] = Object.entries(spec.source ?? {});
  const written = { ...fields, workloadIdentity } as WrittenAccess;
  return accessFaults(source?.type === 'transfer' ? source.from : undefined, written, (name) =>
    name === 'workloadIdentity' ? annotationField(name) : `spec.source.${type}.${name}`,
  );
};

const headers: Check = ({ spec: { source = {} } }) =>
  (source.http?.extraHeaders ?? []).flatMap((line, index) =>
    faultIf(
      !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+\s*:[^\r\n\0]*$/.test(line),
      `spec.source.http.extraHeaders[${index}]`,
      'must have the form "Name: value"',
    ),
  );

const storeUrl: Check = ({ spec: { source = {} } }) => [
  ...(source.s3 === undefined ? [] : faultOf(toS3Place(source.s3.url), 'spec.source.s3.url')),
  ...(source.gcs === undefined ? [] : faultOf(toGcsUrl(source.gcs.url), 'spec.source.gcs.url')),
];

const pullMethod: Check = ({ spec: { source = {} } }) =>
  faultIf(
    !['', 'pod', 'node', undefined].includes(source.registry?.pullMethod),
    'spec.source.registry.pullMethod',
    'must be pod or node',
  );

const unservedContent: Check = ({ spec }) => [
  ...faultIf((spec.checkpoints ?? []).length > 0, 'spec.checkpoints', 'are not supported by this installation'),
];

/** An archive is unpacked into files: not possible on a block device, from a registry, or from a blank source. */
const archive: Check = ({ spec: { contentType, source = {}, pvc, storage } }) => {
  if (contentType !== 'archive') return [];
  const form = pvc === undefined ? 'storage' : 'pvc';
  return [
    ...faultIf(
      (pvc ?? storage)?.volumeMode === 'Block',
      `spec.${form}.volumeMode`,
      'must be Filesystem where contentType is archive: its files need a file system',
    ),
    ...(['blank', 'registry'] as const).flatMap((name) =>
      faultIf(source[name] !== undefined, 'spec.contentType', `must be kubevirt where the source is ${name}`),
    ),
  ];
};

const ownVolume: Check = ({ spec }) => {
  const form = spec.pvc === undefined ? 'storage' : 'pvc';
  const claim = spec[form] ?? {};
  return (['volumeName', 'selector', 'dataSource', 'dataSourceRef'] as const).flatMap((field) =>
    faultIf(
      claim[field] !== undefined,
      `spec.${form}.${field}`,
      'is not supported by this installation: the volume is a new one, filled from spec.source',
    ),
  );
};

const url: Check = ({ spec: { source = {} } }) =>
  source.http === undefined ? [] : faultOf(parseSourceUrl(source.http.url), 'spec.source.http.url');

const registryUrl: Check = ({ spec: { source = {} } }) =>
  faultIf(
    source.registry !== undefined && source.registry.imageStream === undefined && !isRegistryUrl(source.registry.url),
    'spec.source.registry.url',
    'must name an image, such as docker://quay.io/containerdisks/fedora:latest, and contain no password: use a Secret in secretRef',
  );

/** Without a password, which everyone who can read the object would see. */
const isRegistryUrl = (text: string | undefined): boolean => /^docker:\/\/(?![^/]*@)/.test(text ?? '');

const checksum: Check = ({ spec: { source = {} } }) =>
  source.http?.checksum === undefined ? [] : faultOf(parseChecksum(source.http.checksum), 'spec.source.http.checksum');

/** With `storage`, a clone has the size of its source, and a file is inspected. The size of a blank disk or of an archive's files is unknown. */
const size: Check = ({ spec }) => {
  const form = spec.pvc === undefined ? 'storage' : 'pvc';
  const field = `spec.${form}.resources.requests.storage`;
  const request = spec[form]?.resources?.requests?.['storage'];
  const isUnread = spec.source?.blank !== undefined || spec.source?.upload !== undefined;
  const isNeeded = form === 'pvc' || isUnread || spec.contentType === 'archive';
  if (request === undefined) return faultIf(isNeeded, field, 'is missing; write a size such as 10Gi');
  return faultIf((parseQuantity(request) ?? 0) < 2 ** 20, field, 'must be an amount of storage, 1Mi at least');
};

const writable: Check = ({ spec }) => {
  const form = spec.pvc === undefined ? 'storage' : 'pvc';
  const modes = spec[form]?.accessModes ?? [];
  return faultIf(
    modes.length > 0 && modes.every((mode) => mode === 'ReadOnlyMany'),
    `spec.${form}.accessModes`,
    'must include a writable mode, such as ReadWriteOnce: the volume is filled first',
  );
};

export const dataVolumeRules: readonly SpecRule<DataVolume>[] = [
  { id: 'one-source', check: oneSource },
  { id: 'one-form', check: oneForm },
  { id: 'source-kind', check: sourceKind },
  { id: 'served-source', check: unservedSources },
  { id: 'served-access', check: unservedAccess },
  { id: 'served-content', check: unservedContent },
  { id: 'archive', check: archive },
  { id: 'own-volume', check: ownVolume },
  { id: 'url', check: url },
  { id: 'registry-url', check: registryUrl },
  { id: 'store-url', check: storeUrl },
  { id: 'source-access', check: access },
  { id: 'headers', check: headers },
  { id: 'pull-method', check: pullMethod },
  { id: 'checksum', check: checksum },
  { id: 'size', check: size },
  { id: 'writable', check: writable },
  ...dataVolumeClaimRules,
];

export const dataVolumeRequestRules: readonly RequestRule<KubeObject, Volume>[] = [
  { id: 'spec', on: 'CREATE', reason: 'Invalid', check: ({ resource }) => resource.faults },
  freeClaim,
  { id: 'fixed-access', on: 'UPDATE', reason: 'Invalid', check: changedAccess },
];
