// One row for each rule of CDI's kinds that needs only an object and its old version.
import type { Draft, Loose } from '#test/support/admission.ts';
import { type AdmissionRow, described, fixed, row, update } from '#test/support/rule-row.ts';

const cdi = (kind: string, spec: Loose, metadata: Loose = {}): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind,
  metadata: { namespace: 'default', ...metadata },
  spec,
});
const storage = { resources: { requests: { storage: '1Gi' } } };
const sized = (size: string) => ({ resources: { requests: { storage: size } } });
const http = { http: { url: 'https://images.example/a.qcow2' } };
const dataVolume = (source: object, rest: Loose = { storage }, metadata: Loose = {}): Draft =>
  cdi('DataVolume', { source, ...rest }, metadata);
const httpWith = (more: object): Draft => dataVolume({ http: { ...http.http, ...more } });
const registry = { url: 'docker://quay.io/containerdisks/fedora:latest' };
const registryWith = (more: object): Draft => dataVolume({ registry: { ...registry, ...more } });
const pvc = { volumeMode: 'Block', accessModes: ['ReadWriteOnce'], ...sized('3Gi') };

const cron = (spec: Loose = {}, metadata: Loose = {}): Draft =>
  cdi(
    'DataImportCron',
    {
      schedule: '0 3 * * *',
      managedDataSource: 'fedora',
      template: { spec: { source: { registry }, storage } },
      ...spec,
    },
    metadata,
  );
const withTemplate = (spec: Loose): Draft => cron({ template: { spec: { source: { registry }, storage, ...spec } } });
const set = { accessModes: ['ReadWriteOnce'], volumeMode: 'Block' };
const profile = (spec: Loose): Draft => cdi('StorageProfile', spec, { namespace: undefined });

const googleIdentity = 'google:projects/1/locations/global/workloadIdentityPools/pool/providers/cluster';
const identity = (text: string) => ({ annotations: { 'bullion.dev/workload-identity': text } });

const dataVolumeRows: readonly AdmissionRow[] = [
  fixed(
    'data-volume/fixed-spec',
    dataVolume(http),
    { source: { blank: {} } },
    /spec.*(immutable|cannot be changed|Cannot update)/is,
  ),
  row('data-volume/name-length', dataVolume(http), dataVolume(http, { storage }, { name: 'x'.repeat(254) }), /253/),
  row('data-volume/one-form', dataVolume(http), dataVolume(http, {}), /spec\.storage/),
  row('data-volume/one-form', dataVolume(http), dataVolume(http, { storage, pvc: { ...pvc } }), /spec\.storage/),
  row('data-volume/size', dataVolume(http), dataVolume(http, { storage: sized('0') }), /1Mi at least/),
  row(
    'data-volume/size',
    dataVolume(http, { storage: sized('1Mi') }),
    dataVolume(http, { storage: sized('1Ki') }),
    /1Mi at least/,
  ),
  row(
    'data-volume/size',
    dataVolume({ blank: {} }),
    dataVolume({ blank: {} }, { storage: {} }),
    /requests\.storage.*missing/,
  ),
  row(
    'data-volume/class-name-length',
    dataVolume(http),
    dataVolume(http, { storage: { ...storage, storageClassName: 'x'.repeat(254) } }),
    /253/,
  ),
  row(
    'data-volume/one-access-mode',
    dataVolume(http, { pvc }),
    dataVolume(http, { pvc: storage }),
    /accessModes.*exactly one/,
  ),
  row(
    'data-volume/one-access-mode',
    dataVolume(http, { pvc }),
    dataVolume(http, { pvc: { ...pvc, accessModes: ['ReadWriteOnce', 'ReadWriteMany'] } }),
    /accessModes.*exactly one/,
  ),
  row(
    'data-volume/known-access-modes',
    dataVolume(http, { pvc }),
    dataVolume(http, { pvc: { ...pvc, accessModes: ['Any'] } }),
    /accessModes/,
  ),
  row(
    'data-volume/own-volume',
    dataVolume(http),
    dataVolume(http, { storage: { ...storage, dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } } }),
    /spec\.storage\.dataSource/,
  ),
  row('data-volume/one-source', dataVolume(http), cdi('DataVolume', { storage }), /spec\.source.*exactly one/),
  row(
    'data-volume/reference-name',
    cdi('DataVolume', { sourceRef: { kind: 'DataSource', name: 'a' }, storage }),
    cdi('DataVolume', { sourceRef: { kind: 'DataSource', name: '' }, storage }),
    /spec\.sourceRef\.name/,
  ),
  row('data-volume/one-source', dataVolume(http), dataVolume({ ...http, blank: {} }), /spec\.source.*exactly one/),
  row(
    'data-volume/source-kind',
    cdi('DataVolume', { sourceRef: { kind: 'DataSource', name: 'a' }, storage }),
    cdi('DataVolume', { sourceRef: { kind: 'Pod', name: 'a' }, storage }),
    /spec\.sourceRef\.kind.*must be DataSource/,
  ),
  row(
    'data-volume/writable',
    dataVolume(http, { pvc }),
    dataVolume(http, { pvc: { ...pvc, accessModes: ['ReadOnlyMany'] } }),
    /spec\.pvc\.accessModes.*writable mode/,
  ),
  row(
    'data-volume/store-url',
    dataVolume({ s3: { url: 'https://s3.example/bucket/key' } }),
    dataVolume({ s3: { url: 'ftp://s3.example/bucket/key' } }),
    /spec\.source\.s3\.url/,
  ),
  row(
    'data-volume/source-access',
    dataVolume({ gcs: { url: 'gs://images/a', secretRef: 'key' } }),
    dataVolume({ gcs: { url: 'gs://images/a', secretRef: 'key' } }, { storage }, identity(googleIdentity)),
    /metadata\.annotations\[bullion\.dev\/workload-identity\].*cannot stand beside spec\.source\.gcs\.secretRef/,
  ),
  row(
    'data-volume/source-access',
    dataVolume({ gcs: { url: 'gs://images/a' } }, { storage }, identity(googleIdentity)),
    dataVolume({ registry }, { storage }, identity(googleIdentity)),
    /workload-identity.*is not used by a containerDisk of a registry/,
  ),
  row(
    'data-volume/source-access',
    dataVolume(http, { storage }, identity(`${googleIdentity},images@golden.iam.gserviceaccount.com`)),
    dataVolume(http, { storage }, identity('google:https://kubernetes.default.svc')),
    /workload-identity.*has neither of its forms: google:projects/,
  ),
  update(
    'data-volume/fixed-access',
    dataVolume(http),
    described(dataVolume(http)),
    dataVolume(http, { storage }, identity(googleIdentity)),
    /workload-identity.*cannot be changed/,
  ),
  row(
    'data-volume/headers',
    httpWith({ extraHeaders: ['X-Team: a'] }),
    httpWith({ extraHeaders: ['no header'] }),
    /extraHeaders\[0\].*must have the form/,
  ),
  row(
    'data-volume/served-content',
    dataVolume(http),
    dataVolume(http, { storage, checkpoints: [{ previous: '', current: 'a' }] }),
    /spec\.checkpoints.*not supported/,
  ),
  row(
    'data-volume/known-content-type',
    dataVolume(http),
    dataVolume(http, { storage, contentType: 'tape' }),
    /contentType/,
  ),
  row('data-volume/url', dataVolume(http), httpWith({ url: 'ftp://a/b' }), /spec\.source\.http\.url/),
  row(
    'data-volume/checksum',
    httpWith({ checksum: `sha256:${'a1'.repeat(32)}` }),
    httpWith({ checksum: 'md5:1' }),
    /checksum/,
  ),
  row(
    'data-volume/archive',
    dataVolume({ blank: {} }),
    dataVolume({ blank: {} }, { storage, contentType: 'archive' }),
    /contentType/,
  ),
  row(
    'data-volume/archive',
    registryWith({}),
    dataVolume({ registry }, { storage, contentType: 'archive' }),
    /contentType/,
  ),
  row('data-volume/registry-url', registryWith({}), dataVolume({ registry: {} }), /registry\.url/),
  row('data-volume/registry-url', registryWith({}), registryWith({ url: 'https://a/b' }), /registry\.url.*docker:/),
  row(
    'data-volume/pull-method',
    registryWith({ pullMethod: 'node' }),
    registryWith({ pullMethod: 'mail' }),
    /pullMethod/,
  ),
  row(
    'data-volume/served-access',
    registryWith({}),
    dataVolume({ registry: { imageStream: 'fedora' } }),
    /imageStream/,
  ),
  row(
    'data-volume/served-source',
    dataVolume(http),
    dataVolume({ imageio: { url: 'https://a/b', diskId: 'x' } }),
    /imageio/,
  ),
  row('data-volume/served-source', dataVolume(http), dataVolume({ vddk: { url: 'https://a/b' } }), /vddk/),
  row(
    'data-volume/source-names',
    dataVolume({ pvc: { namespace: 'default', name: 'a' } }),
    dataVolume({ pvc: { namespace: 'default', name: '' } }),
    /spec\.source\.pvc\.name/,
  ),
];

const prewarmed = (classes: string): Loose => ({ annotations: { 'bullion.dev/prewarm': classes } });
const onFirstUse = (is: string): Loose => ({ annotations: { 'bullion.dev/copy-on-first-use': is } });

const cronRows: readonly AdmissionRow[] = [
  row('cron/name-length', cron(), cron({}, { name: 'x'.repeat(64) }), /63/),
  fixed('cron/fixed-spec', cron(), { schedule: '0 4 * * *' }, /spec/),
  row('cron/spec', cron(), withTemplate({ source: { blank: {} } }), /spec\.template\.spec\.source/),
  row('cron/decided-by-cron', cron(), withTemplate({ contentType: 'archive' }), /contentType.*leave it out/),
  row(
    'cron/template-identity',
    cron(),
    cron({ template: { metadata: identity(googleIdentity), spec: { source: { registry }, storage } } }),
    /workload-identity.*cannot be used by a cron/,
  ),
  row('cron/template-volume', cron(), withTemplate({ storage: sized('0') }), /spec\.template\.spec\.storage/),
  row('cron/spec', cron({ schedule: '' }), cron({ schedule: 'daily' }), /spec\.schedule/),
  row('cron/imports-to-keep', cron({ importsToKeep: 2 }), cron({ importsToKeep: -1 }), /importsToKeep/),
  row(
    'cron/known-garbage-collect',
    cron({ garbageCollect: 'Never' }),
    cron({ garbageCollect: 'Sometimes' }),
    /garbageCollect/,
  ),
  row('cron/copies', cron({}, prewarmed('fast, slow')), cron({}, prewarmed('fast slow')), /bullion\.dev\/prewarm/),
  row('cron/copies', cron({}, onFirstUse('true')), cron({}, onFirstUse('yes')), /bullion\.dev\/copy-on-first-use/),
  row('cron/managed-data-source', cron(), cron({ managedDataSource: '' }), /managedDataSource/),
  row(
    'profile/claim-property-sets',
    profile({ claimPropertySets: [set] }),
    profile({ claimPropertySets: [{ ...set, volumeMode: undefined }] }),
    /volumeMode/,
  ),
];

const offered = (to: string): Draft =>
  cdi('DataSource', { source: {} }, { name: 'offered', annotations: { 'bullion.dev/offered-to': to } });

const dataSourceRows: readonly AdmissionRow[] = [
  row(
    'data-source/offer',
    offered('team=blue,env in (dev, test),!old'),
    offered('team blue'),
    /annotations\[bullion\.dev\/offered-to\].*not a selector of namespaces/,
  ),
  row('data-source/offer', offered('*'), offered(''), /write \* for all/),
];

export const cdiRows = [...dataVolumeRows, ...cronRows, ...dataSourceRows];
