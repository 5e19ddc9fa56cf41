// One row for each rule of HyperCloud's kinds that needs only an object and its old version.
import { type Draft, type Loose, aHyperCloudImage as image } from '#test/support/admission.ts';
import { type AdmissionRow, fixed, row } from '#test/support/rule-row.ts';

const sized = (storage: string) => ({ resources: { requests: { storage } } });
const pvc = { volumeMode: 'Block', accessModes: ['ReadWriteOnce'], ...sized('3Gi') };
const objectStore = { bucketName: 'images', objectName: 'disk.img' };
const readOnly = { ...pvc, accessModes: ['ReadOnlyMany'] };
const filled = { ...pvc, volumeName: 'pv-1' };

const made = (kind: string, spec: Loose, metadata: Loose = {}): Draft => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind,
  metadata: { namespace: 'default', ...metadata },
  spec,
});
const volumePvc = (spec: Loose = {}): Draft =>
  made('VirtualMachinePvc', { virtualMachineImageName: 'ubuntu', ...spec });
const volume = (spec: Loose = {}, metadata: Loose = {}): Draft =>
  made('VirtualMachineVolume', { virtualMachineImage: { name: 'ubuntu' }, ...spec }, metadata);
const exported = (spec: Loose = {}, metadata: Loose = {}): Draft =>
  made('VirtualMachineVolumeExport', { pvcName: 'root', objectStore, ...spec }, metadata);
const toRegistry = (url: string): Draft => exported({ objectStore: undefined, destination: { registry: { url } } });
const toStore = (url: string, access: Loose = {}): Draft =>
  exported({ objectStore: undefined, destination: { s3: { url, ...access } } });
const locally = { objectStore: undefined, destination: { local: {} } };

const uuid = '11111111-2222-3333-4444-555555555555';
const azureIdentity = `azure:${uuid}/${uuid}`;

const imageRows: readonly AdmissionRow[] = [
  row(
    'hypercloud/storage-request',
    image({ pvc }),
    image({ pvc: { volumeMode: 'Block' } }),
    /requests\.storage.*is missing/,
  ),
  row('hypercloud/one-source', image(), image({ source: {} }), /spec\.source/),
  row(
    'hypercloud/http-url',
    image(),
    image({ source: { http: 'ftp://a/b' } }),
    /spec\.source\.http.*only http and https/,
  ),
  row(
    'hypercloud/stored-object',
    image({ source: { objectStore } }),
    image({ source: { objectStore: { ...objectStore, bucketName: 'VM_Images' } } }),
    /objectStore\.bucketName.*is not a valid bucket name/,
  ),
  row(
    'hypercloud/source-access',
    image({ source: { http: 'https://images.example/a', secretRef: 'login', certConfigMap: 'authorities' } }),
    image({ source: { objectStore, secretRef: 'login' } }),
    /spec\.source\.secretRef.*is not used by an object of the installation's object store/,
  ),
  row(
    'hypercloud/source-access',
    image({ source: { http: 'https://golden.blob.core.windows.net/images/a', workloadIdentity: azureIdentity } }),
    image({ source: { http: 'https://golden.blob.core.windows.net/images/a', workloadIdentity: 'azure:mine' } }),
    /spec\.source\.workloadIdentity.*has neither of its forms/,
  ),
  row('hypercloud/checksum', image(), image({ checksum: 'crc32:00' }), /spec\.checksum/),
  row(
    'hypercloud/one-storage-class',
    image({ pvc: { ...pvc, storageClassName: 'a' }, storageClassName: 'a' }),
    image({ pvc: { ...pvc, storageClassName: 'a' }, storageClassName: 'b' }),
    /spec\.storageClassName.*differs from spec\.pvc/,
  ),
  row('hypercloud/writable', image({ pvc }), image({ pvc: readOnly }), /spec\.pvc\.accessModes.*writable mode/),
  row('hypercloud/own-volume', image({ pvc }), image({ pvc: filled }), /spec\.pvc\.volumeName.*must not be set/),
  fixed('hypercloud/fixed-spec', image(), { source: { http: 'https://images.example/other' } }, /cannot be changed/),
];

const volumeRows: readonly AdmissionRow[] = [
  row(
    'pvc/size',
    volumePvc({ pvc }),
    volumePvc({ pvc: { ...pvc, ...sized('0') } }),
    /requests\.storage.*not a valid quantity/,
  ),
  row('pvc/writable', volumePvc({ pvc }), volumePvc({ pvc: readOnly }), /spec\.pvc\.accessModes.*writable mode/),
  row('pvc/own-volume', volumePvc({ pvc }), volumePvc({ pvc: filled }), /spec\.pvc\.volumeName.*must not be set/),
  row(
    'volume/size',
    volume({ capacity: { storage: '3Gi' } }),
    volume({ capacity: { storage: '0' } }),
    /spec\.capacity\.storage.*not a valid quantity/,
  ),
  row(
    'volume/same-namespace',
    volume({ virtualMachineImage: { name: 'ubuntu', namespace: 'default' } }),
    volume({ virtualMachineImage: { name: 'ubuntu', namespace: 'elsewhere' } }),
    /virtualMachineImage\.namespace.*must be the namespace of the volume/,
  ),
  row('volume/name', volume(), volume({}, { name: 'x'.repeat(246) }), /metadata\.name.*245/),
];

const exportRows: readonly AdmissionRow[] = [
  row(
    'export/one-source',
    exported(),
    exported({ virtualMachineVolume: { name: 'root' } }),
    /exactly one of pvcName and virtualMachineVolume/,
  ),
  row('export/one-destination', exported(), exported({ objectStore: undefined }), /exactly one of objectStore/),
  row(
    'export/stored-object',
    exported(),
    exported({ objectStore: { ...objectStore, objectName: '' } }),
    /objectStore\.objectName.*1 to 1024 bytes/,
  ),
  row(
    'export/s3-url',
    toStore('https://exports.store.example/disk.qcow2'),
    toStore('ftp://exports.store.example/disk.qcow2'),
    /destination\.s3\.url.*only http and https/,
  ),
  row(
    'export/store-access',
    toStore('https://golden.blob.core.windows.net/images/disk.qcow2', { workloadIdentity: azureIdentity }),
    toStore('https://golden.blob.core.windows.net/images/disk.qcow2', {
      workloadIdentity: azureIdentity,
      secretRef: 'a',
    }),
    /destination\.s3\.workloadIdentity.*cannot stand beside spec\.destination\.s3\.secretRef/,
  ),
  row(
    'export/registry-url',
    toRegistry('docker://registry.example/disks/root:one'),
    toRegistry('docker://registry.example/disks/root'),
    /destination\.registry\.url.*must end in the tag/,
  ),
  row(
    'export/name',
    exported(locally),
    exported(locally, { name: 'x'.repeat(63) }),
    /metadata\.name.*at most \d+ characters/,
  ),
];

export const hyperCloudRows = [...imageRows, ...volumeRows, ...exportRows];
