// Objects related to images in rows of rules: claims, classes, machines, as drafts.
import { type Draft, type Loose, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';

export const owned = (role: string, over: Loose = {}): Loose => ({
  namespace: 'default',
  labels: {
    'bullion.dev/owner-uid': 'uid-1',
    'bullion.dev/owner-kind': 'VirtualMachineImage.hypercloud.tmaxanc.com',
    'bullion.dev/role': role,
  },
  annotations: {
    'bullion.dev/owner-name': 'ubuntu',
    'bullion.dev/owner-namespace': 'default',
    'bullion.dev/populated': '{}',
    'harvesterhci.io/goldenImage': 'true',
  },
  ...over,
});

/** The status of an image: its phase and its children. */
const standing = (phase: string, children: Loose): Loose => ({ phase, children });

export const image: Draft = {
  ...aHyperCloudImage({ storageClassName: 'fast' }, { labels: { 'bullion.dev/storage-class': 'fast' } }),
  status: standing('Available', { volume: 'ubuntu-image-pvc', storageClass: 'lh-uid-1' }),
};

export const importing: Draft = { ...image, status: standing('Downloading', { volume: 'golden' }) };

export const claim = (metadata: Loose = owned('volume'), spec: Loose = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'ubuntu-image-pvc', namespace: 'default', ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});

export const dataVolume = (phase: string, metadata: Loose = { name: 'golden', ...owned('volume') }): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata,
  spec: { source: { blank: {} }, storage: {} },
  status: { phase },
});

/** An image that is stored in a data volume, and thus in its claim. */
export const imageOfVolume: Draft = {
  ...aHarvesterImage({ backend: 'cdi' }),
  status: standing('Imported', { volume: 'image-a' }),
};
const ofImage: Loose = {
  labels: {
    'bullion.dev/owner-uid': 'uid-2',
    'bullion.dev/owner-kind': 'VirtualMachineImage.harvesterhci.io',
    'bullion.dev/role': 'volume',
  },
  annotations: { 'bullion.dev/owner-name': 'image-a', 'bullion.dev/owner-namespace': 'default' },
};
export const goldenVolume = dataVolume('Succeeded', { name: 'image-a', namespace: 'default', uid: 'dv-1', ...ofImage });

/** The claim of that data volume, with its initial marks. */
export const claimOfVolume = (name: string, metadata: Loose = {}): Draft =>
  claim({
    name,
    ownerReferences: [
      { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', name: 'image-a', uid: 'dv-1', controller: true },
    ],
    ...metadata,
  });

/** Marks of the claims of our own data volumes. */
export const disksMarks: Loose = {
  labels: {
    'bullion.dev/owner-uid': 'dv-1',
    'bullion.dev/owner-kind': 'DataVolume.cdi.kubevirt.io',
    'bullion.dev/role': 'disk',
  },
  annotations: { 'bullion.dev/owner-name': 'image-a', 'bullion.dev/owner-namespace': 'default' },
};

export const storageClass = (name: string, metadata: Loose = {}, parameters: Loose = {}): Draft => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, ...metadata },
  provisioner: 'driver.longhorn.io',
  parameters,
});

const { namespace: _, ...ownedClass } = owned('class');

export const imageClass = storageClass('lh-uid-1', ownedClass);

export const templateVersion = (uid: string): Draft => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineTemplateVersion',
  metadata: { name: 'web-1', namespace: 'default', uid },
});

const template = { apiVersion: 'harvesterhci.io/v1beta1', kind: 'VirtualMachineTemplateVersion', name: 'web-1' };

export const unfinished = aHarvesterImage({}, { ownerReferences: [{ ...template, uid: 't-1' }] });

export const ofTemplate = { ...unfinished, status: { storageClassName: 'lh-uid-2' } };

export const machine = (claimName: string, metadata: Loose = {}): Draft => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default', ...metadata },
  spec: { template: { spec: { volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] } } },
});

export const uid = 'vm-1';

export const ofMachine = {
  ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm', uid }],
};

export const exporting = aHarvesterImage({
  sourceType: 'export-from-volume',
  url: undefined,
  pvcName: 'root',
  pvcNamespace: 'default',
});

export const exported: Loose = {
  labels: { 'bullion.dev/exporting': 'uid-2' },
  annotations: { 'bullion.dev/exporting': 'default/image-a' },
};

export const withoutMark = claim(owned('volume', { annotations: { 'bullion.dev/owner-name': 'ubuntu' } }));

export const disk = (name: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: 'default' },
  spec: { source: { blank: {} }, storage: {} },
});
