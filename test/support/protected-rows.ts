// Objects that an image depends on: for each rule an accepted and a rejected request. Sent to the function, and to API servers.
import { policyObjectRows } from '#test/support/policy-rows.ts';
import { type Draft, type Loose, aHarvesterImage } from '#test/support/admission.ts';
import { classRows } from '#test/support/class-rows.ts';
import {
  claim,
  claimOfVolume,
  dataVolume,
  disk,
  disksMarks,
  exported,
  exporting,
  goldenVolume,
  image,
  imageClass,
  imageOfVolume,
  importing,
  machine,
  ofMachine,
  ofTemplate,
  owned,
  storageClass,
  templateVersion,
  uid,
  withoutMark,
} from '#test/support/row-objects.ts';
import type { ProtectedRow } from '#test/support/rule-row.ts';

/** KubeVirt mounts the claim with that name. */
const machineOf = (dataVolume: string): Draft => ({
  ...machine(''),
  spec: { template: { spec: { volumes: [{ name: 'root', dataVolume: { name: dataVolume } }] } } },
});
const templates = (id: string): Loose => ({
  annotations: {
    'harvesterhci.io/volumeClaimTemplates': JSON.stringify([
      { metadata: { name: 'root', annotations: { 'harvesterhci.io/imageId': id } } },
    ]),
  },
});
const noted = {
  annotations: {
    'harvesterhci.io/owned-by': JSON.stringify([{ schema: 'kubevirt.io.virtualmachine', refs: ['any/vm'] }]),
  },
};
const withDisk: Loose = {
  annotations: { 'harvesterhci.io/volumeClaimTemplates': JSON.stringify([{ metadata: { name: 'made' } }]) },
};
const withLabel = claim(owned('volume', { labels: { ...(owned('volume')['labels'] as object), mine: 'x' } }));

const blank = (storageClassName: string): Draft => ({
  ...dataVolume('', { name: 'mine', namespace: 'tenant' }),
  spec: { source: { blank: {} }, storage: { storageClassName, resources: { requests: { storage: '1Gi' } } } },
});
const dataSource = (namespace: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataSource',
  metadata: { name: 'fedora', namespace: 'tenant' },
  spec: { source: { pvc: { namespace, name: 'fedora' } } },
});

const offered = (namespace: string): Draft => ({
  ...dataSource(namespace),
  metadata: { name: 'fedora', namespace, annotations: { 'bullion.dev/offered-to': '*' } },
});

const locked = (draft: Draft): Draft => ({
  ...draft,
  metadata: { ...draft.metadata, labels: { 'bullion.dev/protected': 'true' } },
});

/** An image that its owners have ended. */
const obsoleteImage: Draft = {
  ...image,
  metadata: {
    ...image.metadata,
    annotations: { 'bullion.dev/deprecation': '{"state":"Obsolete","message":"too old","replacement":"noble"}' },
  },
};
const insisting = { annotations: { 'bullion.dev/allow-obsolete': 'true' } };
const ofClaim = { dataSource: { kind: 'PersistentVolumeClaim', name: 'ubuntu-image-pvc' } };

export const protectedRows: readonly ProtectedRow[] = [
  ...policyObjectRows,
  {
    id: 'protected/locked',
    what: 'an image that is locked',
    given: [],
    allowed: { oldObject: aHarvesterImage() },
    denied: { oldObject: locked(aHarvesterImage()) },
    says: /protected from deletion.*kubectl label virtualmachineimages\.harvesterhci\.io \S+ -n \S+ bullion\.dev\/protected-/,
  },
  {
    id: 'protected/locked',
    what: 'a DataSource that is locked',
    given: [],
    allowed: { oldObject: dataSource('tenant') },
    denied: { oldObject: locked(dataSource('tenant')) },
    says: /protected from deletion.*kubectl label datasources/,
  },
  {
    id: 'protected/locked',
    what: 'the data volume of a claim that is locked',
    given: [locked(claimOfVolume('image-a', { labels: {}, annotations: {} }))],
    allowed: { oldObject: dataVolume('Succeeded', { name: 'image-b', namespace: 'default' }) },
    denied: { oldObject: dataVolume('Succeeded', { name: 'image-a', namespace: 'default' }) },
    says: /of its PersistentVolumeClaim: .*kubectl label persistentvolumeclaims \S+ -n \S+ bullion\.dev\/protected-/,
  },
  {
    id: 'protected/image-of-template',
    what: 'an image under a template version',
    given: [templateVersion('t-1')],
    allowed: { oldObject: aHarvesterImage() },
    denied: { oldObject: ofTemplate },
    says: /used by VirtualMachineTemplateVersion web-1/,
  },
  {
    id: 'protected/obsolete-version',
    what: 'disks from being made in the class of an obsolete image',
    given: [imageClass, obsoleteImage],
    allowed: { object: claim({ name: 'disk', ...insisting }, { storageClassName: 'lh-uid-1' }) },
    denied: { object: claim({ name: 'disk' }, { storageClassName: 'lh-uid-1' }) },
    says: /spec\.storageClassName.*image \S+\/ubuntu is obsolete: too old; use image noble instead.*allow-obsolete=true/,
  },
  {
    id: 'protected/obsolete-version',
    what: 'disks from being made of the volume of an obsolete image',
    given: [obsoleteImage, claim()],
    allowed: { object: claim({ name: 'disk', ...insisting }, ofClaim) },
    denied: { object: claim({ name: 'disk' }, ofClaim) },
    says: /spec\.dataSource.*image \S+\/ubuntu is obsolete/,
  },
  {
    id: 'protected/image-class-allowed',
    what: 'a disk of an image for who may not see it',
    given: [imageClass, image],
    rights: ['get virtualmachineimages other/*'],
    allowed: { object: claim({}, { storageClassName: 'standard' }) },
    denied: { object: claim({}, { storageClassName: 'lh-uid-1' }) },
    says: /user jane is not allowed to use the image of this class/,
  },
  {
    id: 'any/class-allowed',
    what: 'a volume of the class of an image for who may not see it',
    given: [imageClass, image],
    rights: ['get virtualmachineimages open/*'],
    allowed: { object: blank('standard') },
    denied: { object: blank('lh-uid-1') },
    says: /spec\.storage\.storageClassName.*user jane is not allowed to use the image of this class/,
  },
  {
    id: 'data-source/offer-allowed',
    what: 'golden images that are given away by who may not clone them',
    given: [],
    rights: ['create datavolumes/source open/*', 'create datasources /*'],
    allowed: { object: offered('open') },
    denied: { object: offered('vault') },
    says: /annotations\[bullion\.dev\/offered-to\].*user jane is not allowed to offer what is in namespace/,
  },
  {
    id: 'data-source/source-allowed',
    what: 'a name for a claim of others',
    given: [],
    rights: ['create datavolumes/source open/*'],
    allowed: { object: dataSource('open') },
    denied: { object: dataSource('vault') },
    says: /spec\.source\.pvc.*user jane is not allowed to clone from vault\/fedora/,
  },
  {
    id: 'protected/marks-are-ours',
    what: 'the marks of a golden claim',
    given: [image],
    allowed: { oldObject: claim(), object: withLabel },
    denied: { oldObject: claim(), object: withoutMark },
    says: /metadata.annotations\[bullion.dev\/owner-namespace\]: marks the object that stores the image \S+\/ubuntu.*goldenImage/,
  },
  {
    id: 'protected/golden-volume-in-use',
    what: 'a golden claim under its image',
    given: [image],
    allowed: { oldObject: claim({}) },
    denied: { oldObject: claim() },
    says: /delete that image instead/,
  },
  {
    id: 'protected/marks-are-ours',
    what: 'what is none of ours from looking golden',
    given: [image],
    allowed: { oldObject: claim({ name: 'mine' }), object: claim({ name: 'mine', labels: { mine: 'x' } }) },
    denied: { oldObject: claim({ name: 'mine' }), object: claim({ ...owned('volume'), name: 'mine' }) },
    says: /metadata.labels\[bullion.dev\/owner-uid\]: may be set only by Bullion: leave it out/,
  },
  ...[disksMarks, {}].map((marks) => ({
    id: 'protected/golden-volume-in-use',
    what: `the claim of a golden data volume with ${Object.keys(marks).length === 0 ? 'no marks' : 'marks of its own'}`,
    given: [imageOfVolume, goldenVolume],
    allowed: { oldObject: claimOfVolume('scratch', marks) },
    denied: { oldObject: claimOfVolume('image-a', marks) },
    says: /PersistentVolumeClaim \S+\/image-a stores the golden image \S+ \S+\/image-a: delete that image instead/,
  })),
  {
    id: 'protected/golden-volume-unmounted',
    what: 'a machine that would write to the claim of a golden data volume',
    given: [imageOfVolume, goldenVolume, claimOfVolume('image-a', disksMarks)],
    allowed: { object: machine('root-disk') },
    denied: { object: machine('image-a') },
    says: /image-a is a golden image/,
  },
  {
    id: 'protected/golden-volume-in-use',
    what: 'the class of an image under it',
    given: [image],
    allowed: { oldObject: storageClass('mine') },
    denied: { oldObject: imageClass },
    says: /StorageClass lh-uid-1\S* stores the golden image/,
  },
  {
    id: 'protected/golden-volume-in-use',
    what: 'a golden data volume under its image',
    given: [importing],
    allowed: { oldObject: dataVolume('ImportInProgress') },
    denied: { oldObject: dataVolume('Succeeded') },
    says: /delete that image instead/,
  },
  {
    id: 'protected/golden-volume-unmounted',
    what: 'a machine that would write to a golden claim',
    given: [image, claim()],
    allowed: { object: machine('root-disk') },
    denied: { object: machine('ubuntu-image-pvc') },
    says: /volumes\[0\].persistentVolumeClaim.claimName: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'protected/golden-volume-unmounted',
    what: 'the same by the name of its data volume',
    given: [image, claim()],
    allowed: { object: machineOf('root-disk') },
    denied: { object: machineOf('ubuntu-image-pvc') },
    says: /volumes\[0\].dataVolume.name: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'protected/golden-volume-unmounted',
    what: 'a machine that comes to write to a golden claim',
    given: [image, claim()],
    allowed: { oldObject: machine('ubuntu-image-pvc'), object: machine('ubuntu-image-pvc', { labels: { a: 'b' } }) },
    denied: { oldObject: machine('root-disk'), object: machine('ubuntu-image-pvc') },
    says: /is a golden image/,
  },
  {
    id: 'protected/machine-image-allowed',
    what: 'a machine made from an image its author may not see',
    given: [],
    rights: ['get virtualmachineimages open/*'],
    allowed: { object: machine('root', templates('open/leap')) },
    denied: { object: machine('root', templates('vault/leap')) },
    says: /user jane is not allowed to use the image vault\/leap/,
  },
  {
    id: 'protected/exported-claim',
    what: 'a claim that an image is being created from',
    given: [exporting],
    allowed: { oldObject: claim({ name: 'spare' }) },
    denied: { oldObject: claim({ name: 'root', ...exported }) },
    says: /is being exported to the image \S+\/image-a: wait for its end/,
  },
  {
    id: 'protected/machine-disk',
    what: 'a claim under the machine that owns it',
    given: [machine('x', { uid })],
    allowed: { oldObject: claim({ name: 'root' }) },
    denied: { oldObject: claim({ name: 'root', ...ofMachine }) },
    says: /PersistentVolumeClaim \S+\/root is a disk of the virtual machine vm: remove it from/,
  },
  {
    id: 'protected/machine-disk',
    what: 'a claim under the machine it is noted for',
    given: [machine('other')],
    allowed: { oldObject: claim({ name: 'root' }) },
    denied: { oldObject: claim({ name: 'root', ...noted }) },
    says: /is a disk of the virtual machine vm/,
  },
  {
    id: 'protected/machine-disk',
    what: 'a claim of ours under the machine that mounts it',
    given: [machine('root')],
    allowed: { oldObject: claim({ ...owned('disk'), name: 'spare' }) },
    denied: { oldObject: claim({ ...owned('disk'), name: 'root' }) },
    says: /is a disk of the virtual machine vm/,
  },
  {
    id: 'protected/machine-disk',
    what: 'a data volume that is made for a machine',
    given: [machine('root', withDisk)],
    allowed: { oldObject: disk('spare') },
    denied: { oldObject: disk('made') },
    says: /DataVolume \S+\/made is a disk of the virtual machine vm/,
  },
  ...classRows,
];
