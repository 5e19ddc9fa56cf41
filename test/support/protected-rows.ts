// Objects that must not be pulled from under an image: for each rule a request that passes and one that does not. Asked of the function,
// and of API servers.
import { type Asked, type Draft, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';

export interface ProtectedRow {
  /** That of the rule. */
  readonly id: string;
  readonly what: string;
  /** What is in the cluster. */
  readonly given: readonly Draft[];
  /** Rights of the user, as `rightOf` writes them. */
  readonly rights?: readonly string[];
  readonly allowed: Asked;
  readonly denied: Asked;
  readonly says: RegExp;
}

type Loose = Record<string, unknown>;

const owned = (role: string, over: Loose = {}): Loose => ({
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

const image = aHyperCloudImage({ storageClassName: 'fast' }, { labels: { 'bullion.dev/storage-class': 'fast' } });
const gone = aHyperCloudImage({}, { uid: 'uid-7' });

const claim = (metadata: Loose = owned('volume'), spec: Loose = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'ubuntu-image-pvc', namespace: 'default', ...metadata },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
});
const dataVolume = (phase: string): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'golden', ...owned('volume') },
  spec: { source: { blank: {} }, storage: {} },
  status: { phase },
});
const storageClass = (name: string, metadata: Loose = {}): Draft => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name, ...metadata },
});
const { namespace: _, ...ownedClass } = owned('class');
const imageClass = storageClass('lh-uid-1', ownedClass);
const templateVersion = (uid: string): Draft => ({
  apiVersion: 'harvesterhci.io/v1beta1',
  kind: 'VirtualMachineTemplateVersion',
  metadata: { name: 'web-1', namespace: 'default', uid },
});
const ofTemplate = aHarvesterImage(
  {},
  {
    ownerReferences: [
      { apiVersion: 'harvesterhci.io/v1beta1', kind: 'VirtualMachineTemplateVersion', name: 'web-1', uid: 't-1' },
    ],
  },
);
const machine = (claimName: string, metadata: Loose = {}): Draft => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'vm', namespace: 'default', ...metadata },
  spec: { template: { spec: { volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] } } },
});
/** KubeVirt mounts the claim of that name. */
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
const withoutMark = claim(owned('volume', { annotations: { 'bullion.dev/owner-name': 'ubuntu' } }));
const withLabel = claim(owned('volume', { labels: { ...(owned('volume')['labels'] as object), mine: 'x' } }));

export const protectedRows: readonly ProtectedRow[] = [
  {
    id: 'D2',
    what: 'an image under a template version',
    given: [templateVersion('t-1')],
    allowed: { oldObject: aHarvesterImage() },
    denied: { oldObject: ofTemplate },
    says: /used by VirtualMachineTemplateVersion web-1/,
  },
  {
    id: 'P5',
    what: 'a disk of an image for who may not see it',
    given: [imageClass, image],
    rights: ['get virtualmachineimages other/*'],
    allowed: { object: claim({}, { storageClassName: 'standard' }) },
    denied: { object: claim({}, { storageClassName: 'lh-uid-1' }) },
    says: /user jane is not allowed to use the image of this class/,
  },
  {
    id: 'P6',
    what: 'the marks of a golden claim',
    given: [image],
    allowed: { oldObject: claim(), object: withLabel },
    denied: { oldObject: claim(), object: withoutMark },
    says: /metadata.annotations\[bullion.dev\/owner-namespace\]: marks what holds the image default\/ubuntu.*goldenImage/,
  },
  {
    id: 'P7',
    what: 'a golden claim under its image',
    given: [image],
    allowed: { oldObject: claim({}) },
    denied: { oldObject: claim() },
    says: /delete that image instead/,
  },
  {
    id: 'P7',
    what: 'the class of an image under it',
    given: [image],
    allowed: { oldObject: storageClass('mine') },
    denied: { oldObject: imageClass },
    says: /StorageClass lh-uid-1 holds the golden image/,
  },
  {
    id: 'P10',
    what: 'a golden data volume under its image',
    given: [image],
    allowed: { oldObject: dataVolume('ImportInProgress') },
    denied: { oldObject: dataVolume('Succeeded') },
    says: /delete that image instead/,
  },
  {
    id: 'P12',
    what: 'a machine that would write to a golden claim',
    given: [image, claim()],
    allowed: { object: machine('root-disk') },
    denied: { object: machine('ubuntu-image-pvc') },
    says: /volumes\[0\].persistentVolumeClaim.claimName: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'P12',
    what: 'the same by the name of its data volume',
    given: [image, claim()],
    allowed: { object: machineOf('root-disk') },
    denied: { object: machineOf('ubuntu-image-pvc') },
    says: /volumes\[0\].dataVolume.name: ubuntu-image-pvc is a golden image/,
  },
  {
    id: 'P12',
    what: 'a machine that comes to write to a golden claim',
    given: [image, claim()],
    allowed: { oldObject: machine('ubuntu-image-pvc'), object: machine('ubuntu-image-pvc', { labels: { a: 'b' } }) },
    denied: { oldObject: machine('root-disk'), object: machine('ubuntu-image-pvc') },
    says: /is a golden image/,
  },
  {
    id: 'P13',
    what: 'a machine made from an image its author may not see',
    given: [],
    rights: ['get virtualmachineimages open/*'],
    allowed: { object: machine('root', templates('open/leap')) },
    denied: { object: machine('root', templates('vault/leap')) },
    says: /user jane is not allowed to use the image vault\/leap/,
  },
  {
    id: 'P14',
    what: 'a storage class that images are kept in',
    given: [image],
    allowed: { oldObject: storageClass('slow') },
    denied: { oldObject: storageClass('fast') },
    says: /used by images: virtualmachineimage default\/ubuntu/,
  },
  {
    id: 'P15',
    what: 'a reserved storage class',
    given: [],
    allowed: { oldObject: storageClass('fast') },
    denied: {
      oldObject: storageClass('fast', { annotations: { 'harvesterhci.io/is-reserved-storageclass': 'true' } }),
    },
    says: /is reserved/,
  },
];

/** Rows that pass although they look like those that do not. */
export const exemptRows: readonly (readonly [what: string, given: readonly Draft[], asked: Asked])[] = [
  ['a golden claim whose image is gone', [], { oldObject: claim() }],
  ['a golden claim of an image whose name another one has taken', [gone], { oldObject: claim() }],
  ['marks of a claim whose image is gone', [], { oldObject: claim(), object: withoutMark }],
  ['a template version that was made anew', [templateVersion('t-2')], { oldObject: ofTemplate }],
  ['a class whose images say another one', [aHyperCloudImage({}, image.metadata)], { oldObject: storageClass('fast') }],
  [
    'a class whose last image is on its way out',
    [{ ...image, metadata: { ...image.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    { oldObject: storageClass('fast') },
  ],
  [
    'a machine that was imported whole',
    [image, claim()],
    { object: machine('ubuntu-image-pvc', { labels: { 'migration.harvesterhci.io/imported': 'true' } }) },
  ],
  [
    'a machine with notes that are no JSON',
    [],
    { object: machine('x', { annotations: { 'harvesterhci.io/volumeClaimTemplates': '{' } }) },
  ],
  [
    'a claim by a function of ours',
    [imageClass, image],
    {
      object: claim({}, { storageClassName: 'lh-uid-1' }),
      username: 'system:serviceaccount:bullion-system:initialize',
    },
  ],
];
