// Rules about images and volumes that read other objects, one row each: existing objects, an accepted and a rejected request.
import { type Draft, type Loose, aHarvesterImage, aHyperCloudImage } from '#test/support/admission.ts';
import { claim, storageClass } from '#test/support/row-objects.ts';
import type { ProtectedRow } from '#test/support/rule-row.ts';

const imported = { conditions: [{ type: 'Imported', status: 'True' }] };

/** Stored in Longhorn, as a source of another image. */
const source = (name: string, spec: Loose = {}, status: Loose = imported): Draft => ({
  ...aHarvesterImage({ backend: 'backingimage', displayName: name, ...spec }, { name, uid: `uid-${name}` }),
  status,
});
const cryptoOf = (cryptoOperation: string, sourceImageName: string, sourceImageNamespace = 'default'): Loose => ({
  sourceType: 'clone',
  url: undefined,
  securityParameters: { cryptoOperation, sourceImageName, sourceImageNamespace },
});
const plain = source('plain');
const encrypted = source('encrypted', cryptoOf('encrypt', 'plain'));
const fresh = source('fresh', {}, { conditions: [] });

const encrypting = storageClass('vault', {}, { encrypted: 'true' });
const readable = storageClass('readable');
const tied = storageClass('tied', {}, { encrypted: 'true', backingImage: 'vmi-other' });

const copy = (operation: string, of: string, spec: Loose = {}): Draft =>
  aHarvesterImage(
    { backend: 'backingimage', displayName: 'copy', ...cryptoOf(operation, of), ...spec },
    { name: 'copy', uid: undefined },
  );
const into = (className: string): Draft => copy('encrypt', 'plain', { targetStorageClassName: className });

/** The obstacle of an otherwise valid encryption from `plain` into `vault`. */
const copying = (
  id: string,
  what: string,
  given: readonly Draft[],
  { object, says }: { readonly object: Draft; readonly says: RegExp },
): ProtectedRow => ({
  id,
  what,
  given: [plain, encrypting, ...given],
  allowed: { object: into('vault') },
  denied: { object },
  says,
});

const exporting = (pvcName: string, pvcNamespace = 'default'): Draft =>
  aHarvesterImage(
    { backend: 'backingimage', sourceType: 'export-from-volume', url: undefined, pvcName, pvcNamespace },
    { uid: undefined },
  );
const dataVolume = (name: string, from: Loose = { blank: {} }): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: 'default' },
  spec: { source: from, storage: { resources: { requests: { storage: '1Gi' } } } },
});
const virtualDisk = (storage: string): Draft => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachinePvc',
  metadata: { name: 'disk', namespace: 'default' },
  spec: { virtualMachineImageName: 'ubuntu', pvc: { resources: { requests: { storage } } } },
});

const releasedDisk = (storage: string): Draft => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineVolume',
  metadata: { name: 'disk', namespace: 'default' },
  spec: { virtualMachineImage: { name: 'ubuntu' }, capacity: { storage } },
});

const parameters = (numberOfReplicas: string): Draft =>
  aHarvesterImage(
    { backend: 'backingimage', storageClassParameters: { numberOfReplicas, staleReplicaTimeout: '30' } },
    { uid: undefined },
  );
const withLabel = (draft: Draft): Draft => ({ ...draft, metadata: { ...draft.metadata, labels: { mine: 'x' } } });

export const imageRows: readonly ProtectedRow[] = [
  {
    id: 'harvester/unique-display-name',
    what: 'display names from being taken twice',
    given: [
      aHarvesterImage({}, { name: 'image-b', uid: 'uid-9', labels: { 'harvesterhci.io/imageDisplayName': 'leap' } }),
    ],
    allowed: { object: aHarvesterImage({ displayName: 'another' }, { uid: undefined }) },
    denied: { object: aHarvesterImage({}, { uid: undefined }) },
    says: /image image-b of this namespace has this display name/,
  },
  {
    id: 'harvester/source-image-allowed',
    what: 'images from being made from one their author may not see',
    given: [{ ...plain, metadata: { ...plain.metadata, namespace: 'golden' } }, encrypting],
    rights: ['get virtualmachineimages golden/*'],
    allowed: {
      object: copy('encrypt', 'plain', { ...cryptoOf('encrypt', 'plain', 'golden'), targetStorageClassName: 'vault' }),
    },
    denied: {
      object: copy('encrypt', 'plain', { ...cryptoOf('encrypt', 'plain', 'closed'), targetStorageClassName: 'vault' }),
    },
    says: /user jane is not allowed to use the image closed/,
  },
  copying('harvester/source-image-exists', 'clones from naming an image that is not there', [], {
    object: copy('encrypt', 'missing', { targetStorageClassName: 'vault' }),
    says: /image \S+\/missing does not exist/,
  }),
  copying('harvester/not-encrypted-twice', 'what is encrypted from being encrypted again', [encrypted], {
    object: copy('encrypt', 'encrypted', { targetStorageClassName: 'vault' }),
    says: /image \S+\/encrypted is encrypted already/,
  }),
  {
    id: 'harvester/decrypt-encrypted',
    what: 'what is not encrypted from being decrypted',
    given: [plain, encrypted],
    allowed: { object: copy('decrypt', 'encrypted') },
    denied: { object: copy('decrypt', 'plain') },
    says: /image \S+\/plain is not encrypted/,
  },
  copying('harvester/source-image-ready', 'clones from an image that is not ready', [fresh], {
    object: copy('encrypt', 'fresh', { targetStorageClassName: 'vault' }),
    says: /image \S+\/fresh is not ready/,
  }),
  copying('harvester/encrypting-class-given', 'an encrypted image from having no class', [], {
    object: copy('encrypt', 'plain'),
    says: /targetStorageClassName.*is required to encrypt/,
  }),
  copying('harvester/class-exists', 'an encrypted image from a class that is not there', [], {
    object: into('missing'),
    says: /storage class "missing" does not exist/,
  }),
  copying('harvester/class-encrypts', 'an encrypted image from a class that does not encrypt', [readable], {
    object: into('readable'),
    says: /storage class "readable\S*" does not encrypt/,
  }),
  copying('harvester/class-not-of-image', 'an encrypted image from the class of another image', [tied], {
    object: into('tied'),
    says: /belongs to the backing image vmi-other/,
  }),
  {
    id: 'harvester/claim-allowed',
    what: 'claims from being exported by who may not read them',
    given: [claim({ name: 'exported', namespace: 'golden' })],
    rights: ['get persistentvolumeclaims golden/*'],
    allowed: { object: exporting('exported', 'golden') },
    denied: { object: exporting('exported', 'closed') },
    says: /user jane is not allowed to export the claim closed\/exported/,
  },
  {
    id: 'harvester/claim-exists',
    what: 'exports from naming a claim that is not there',
    given: [claim({ name: 'disk' })],
    allowed: { object: exporting('disk') },
    denied: { object: exporting('missing') },
    says: /claim \S+\/missing does not exist/,
  },
  {
    id: 'harvester/fixed-parameters',
    what: 'the parameters disks are made with',
    given: [],
    allowed: { oldObject: parameters('2'), object: withLabel(parameters('2')) },
    denied: { oldObject: parameters('2'), object: parameters('1') },
    says: /storageClassParameters.*cannot be changed/,
  },
  {
    id: 'data-volume/free-claim',
    what: 'claims from being taken over by a DataVolume of their name',
    given: [claim({ name: 'taken' })],
    allowed: { object: dataVolume('free') },
    denied: { object: dataVolume('taken') },
    says: /claim taken exists and was not made for this DataVolume/,
  },
  {
    id: 'data-volume/clone-allowed',
    what: 'volumes of other namespaces from being cloned without the right to',
    given: [],
    rights: ['create datavolumes/source golden/*'],
    allowed: { object: dataVolume('disk', { pvc: { namespace: 'golden', name: 'fedora' } }) },
    denied: { object: dataVolume('disk', { pvc: { namespace: 'closed', name: 'fedora' } }) },
    says: /user jane is not allowed to clone from closed\/fedora/,
  },
  ...(
    [
      ['pvc/fits-image', virtualDisk],
      ['volume/fits-image', releasedDisk],
    ] as const
  ).map(([id, diskOf]) => ({
    id,
    what: 'volumes from being smaller than the disk of their image',
    given: [{ ...aHyperCloudImage(), status: { virtualSize: 2 ** 31 } }],
    allowed: { object: diskOf('2Gi') },
    denied: { object: diskOf('1Gi') },
    says: /1073741824 bytes.*2147483648/,
  })),
];
