// One row for each rule of RULES.md that needs no more than an object and its older self: what passes, what does not, and what is said.
import {
  type Draft,
  type Loose,
  aHarvesterImage as image,
  aHyperCloudImage as hyperCloud,
} from '#test/support/admission.ts';

export interface AdmissionRow {
  /** As RULES.md has it; several where one line holds them all. */
  readonly ids: readonly string[];
  readonly allowed: Draft;
  readonly denied: Draft;
  readonly says: RegExp;
  /** Left out: both are creations. Else they are updates of this. */
  readonly before?: Draft;
}

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

const annotated = (name: string) => ({ annotations: { 'harvesterhci.io/storageClassName': name } });
const classed = image({ targetStorageClassName: 'a' }, annotated('a'));
const clone = { sourceType: 'clone', url: undefined };
const pvc = { volumeMode: 'Block', accessModes: ['ReadWriteOnce'], ...sized('3Gi') };

const row = (ids: string, allowed: Draft, ...[denied, says]: [Draft, RegExp]): AdmissionRow => ({
  ids: ids.split(' '),
  allowed,
  denied,
  says,
});
const update = (ids: string, before: Draft, allowed: Draft, ...[denied, says]: [Draft, RegExp]): AdmissionRow => ({
  ...row(ids, allowed, denied, says),
  before,
});
const described = (draft: Draft): Draft => ({
  ...draft,
  metadata: { ...draft.metadata, labels: { ...(draft.metadata['labels'] as object), touched: 'yes' } },
});
/** A fixed field changed. */
const fixed = (ids: string, before: Draft, spec: Loose, says: RegExp): AdmissionRow =>
  update(ids, before, described(before), { ...before, spec: { ...before.spec, ...spec } }, says);

const harvesterRows: readonly AdmissionRow[] = [
  row('C2', image({ displayName: 'Debian 12 (bookworm)' }), image({ displayName: '' }), /spec\.displayName/),
  row('C4', classed, image({ targetStorageClassName: 'a' }, annotated('b')), /targetStorageClassName.*differs/),
  row('C5', image(), image({ url: undefined }), /spec\.url.*is required/),
  row('C6', image(), image({ url: 'nowhere' }), /spec\.url.*is no URL/),
  row('C7', image(), image({ sourceType: 'upload' }), /spec\.url.*must be empty/),
  row('C8 C9', image(), image(clone), /sourceImageName.*is required/),
  row('C21', image(), image({ sourceType: 'export-from-volume', url: undefined }), /spec\.pvcName.*is required/),
  update('U2', classed, described(classed), image({ targetStorageClassName: 'a' }, annotated('b')), /must stay a/),
  fixed('U3', classed, { targetStorageClassName: 'b' }, /targetStorageClassName/),
  fixed('U4', classed, { targetStorageClassName: 'b' }, /must stay a|targetStorageClassName cannot be changed/),
  fixed('U5', image(), { sourceType: 'upload' }, /sourceType cannot be changed/),
  fixed('U6', image(), { pvcName: 'x', pvcNamespace: 'default' }, /pvcName cannot be changed/),
  fixed('U7', image(), { url: 'https://images.example/other' }, /url cannot be changed/),
  fixed(
    'U8',
    image(),
    { securityParameters: { sourceImageName: 'x', sourceImageNamespace: 'default' } },
    /securityParameters cannot be changed/,
  ),
  fixed('U9', image(), { displayName: 'other' }, /displayName cannot be changed/),
];

const hyperCloudRows: readonly AdmissionRow[] = [
  row('H2', hyperCloud({ pvc }), hyperCloud({ pvc: { volumeMode: 'Block' } }), /requests\.storage.*is missing/),
  row('H3', hyperCloud(), hyperCloud({ source: {} }), /spec\.source/),
  fixed('H6', hyperCloud(), { source: { http: 'https://images.example/other' } }, /cannot be changed/),
];

const dataVolumeRows: readonly AdmissionRow[] = [
  fixed('1', dataVolume(http), { source: { blank: {} } }, /spec.*(immutable|cannot be changed|Cannot update)/is),
  row('2', dataVolume(http), dataVolume(http, { storage }, { name: 'x'.repeat(254) }), /253/),
  row('4', dataVolume(http), dataVolume(http, {}), /spec\.storage/),
  row('5', dataVolume(http), dataVolume(http, { storage, pvc: { ...pvc } }), /spec\.storage/),
  row('6', dataVolume(http), dataVolume(http, { storage: sized('0') }), /1Mi at least/),
  row('7', dataVolume(http, { storage: sized('1Mi') }), dataVolume(http, { storage: sized('1Ki') }), /1Mi at least/),
  row('8', dataVolume({ blank: {} }), dataVolume({ blank: {} }, { storage: {} }), /requests\.storage.*missing/),
  row('9', dataVolume(http), dataVolume(http, { storage: { ...storage, storageClassName: 'x'.repeat(254) } }), /253/),
  row('10', dataVolume(http, { pvc }), dataVolume(http, { pvc: storage }), /accessModes.*exactly one/),
  row(
    '11',
    dataVolume(http, { pvc }),
    dataVolume(http, { pvc: { ...pvc, accessModes: ['ReadWriteOnce', 'ReadWriteMany'] } }),
    /accessModes.*exactly one/,
  ),
  row('12', dataVolume(http, { pvc }), dataVolume(http, { pvc: { ...pvc, accessModes: ['Any'] } }), /accessModes/),
  row(
    '13 14 15',
    dataVolume(http),
    dataVolume(http, { storage: { ...storage, dataSource: { kind: 'PersistentVolumeClaim', name: 'x' } } }),
    /spec\.storage\.dataSource/,
  ),
  row('16', dataVolume(http), cdi('DataVolume', { storage }), /spec\.source.*exactly one/),
  row(
    '17',
    cdi('DataVolume', { sourceRef: { kind: 'DataSource', name: 'a' }, storage }),
    cdi('DataVolume', { sourceRef: { kind: 'DataSource', name: '' }, storage }),
    /spec\.sourceRef\.name/,
  ),
  row('18', dataVolume(http), dataVolume({ ...http, blank: {} }), /spec\.source.*exactly one/),
  row('19', dataVolume(http), dataVolume(http, { storage, contentType: 'tape' }), /contentType/),
  row('20', dataVolume(http), httpWith({ url: 'ftp://a/b' }), /spec\.source\.http\.url/),
  row('21', httpWith({ checksum: `sha256:${'a1'.repeat(32)}` }), httpWith({ checksum: 'md5:1' }), /checksum/),
  row('22', dataVolume({ blank: {} }), dataVolume({ blank: {} }, { storage, contentType: 'archive' }), /contentType/),
  row('23', registryWith({}), dataVolume({ registry }, { storage, contentType: 'archive' }), /contentType/),
  row('24', registryWith({}), dataVolume({ registry: {} }), /registry\.url/),
  row('25', registryWith({}), registryWith({ url: 'https://a/b' }), /registry\.url.*docker:/),
  row('26', registryWith({ pullMethod: 'node' }), registryWith({ pullMethod: 'mail' }), /pullMethod/),
  row('27', registryWith({}), dataVolume({ registry: { imageStream: 'fedora' } }), /imageStream/),
  row('28', dataVolume(http), dataVolume({ imageio: { url: 'https://a/b', diskId: 'x' } }), /imageio/),
  row('29', dataVolume(http), dataVolume({ vddk: { url: 'https://a/b' } }), /vddk/),
  row(
    '30',
    dataVolume({ pvc: { namespace: 'default', name: 'a' } }),
    dataVolume({ pvc: { namespace: 'default', name: '' } }),
    /spec\.source\.pvc\.name/,
  ),
];

const cronRows: readonly AdmissionRow[] = [
  row('32', cron(), cron({}, { name: 'x'.repeat(64) }), /63/),
  fixed('33', cron(), { schedule: '0 4 * * *' }, /spec/),
  row('34', cron(), withTemplate({ source: { blank: {} } }), /spec\.template\.spec\.source/),
  row('35', cron(), withTemplate({ contentType: 'archive' }), /contentType.*leave it out/),
  row('36', cron(), withTemplate({ storage: sized('0') }), /spec\.template\.spec\.storage/),
  row('37', cron({ schedule: '' }), cron({ schedule: 'daily' }), /spec\.schedule/),
  row('38', cron({ importsToKeep: 2 }), cron({ importsToKeep: -1 }), /importsToKeep/),
  row('39', cron({ garbageCollect: 'Never' }), cron({ garbageCollect: 'Sometimes' }), /garbageCollect/),
  row('40', cron(), cron({ managedDataSource: '' }), /managedDataSource/),
  row(
    '41',
    profile({ claimPropertySets: [set] }),
    profile({ claimPropertySets: [{ ...set, volumeMode: undefined }] }),
    /volumeMode/,
  ),
];

export const admissionRows: readonly AdmissionRow[] = [
  ...harvesterRows,
  ...hyperCloudRows,
  ...dataVolumeRows,
  ...cronRows,
];
