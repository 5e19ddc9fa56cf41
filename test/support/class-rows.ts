// Rules about storage classes and encryption, one row each.
import { type Asked, type Draft, type Loose, aHarvesterImage } from '#test/support/admission.ts';
import { image, storageClass } from '#test/support/row-objects.ts';
import { type ExemptRow, type ProtectedRow, exempt } from '#test/support/rule-row.ts';

const secretParameters = (name: string, ...stages: readonly string[]): Loose =>
  Object.fromEntries(
    stages.flatMap((stage) => [
      [`csi.storage.k8s.io/${stage}-secret-name`, name],
      [`csi.storage.k8s.io/${stage}-secret-namespace`, 'default'],
    ]),
  );

const stages = ['provisioner', 'node-stage', 'node-publish'];

const encrypting = { encrypted: 'true', ...secretParameters('key', ...stages) };

const key = (name: string, data: Loose = {}, metadata: Loose = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default', ...metadata },
  data: { CRYPTO_KEY_VALUE: 'eA==', ...data },
});
const withoutKey: Draft = { ...key('key'), data: {} };
const opened: Draft = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pvc-1' },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'gone',
    csi: {
      driver: 'driver.longhorn.io',
      volumeHandle: 'pvc-1',
      nodePublishSecretRef: { name: 'key', namespace: 'default' },
    },
  },
};

/** Of an image in another namespace, whose author had the permission for the Secret or not. */
const foreignClass = storageClass(
  'lh-uid-9',
  {
    labels: {
      'bullion.dev/owner-uid': 'uid-9',
      'bullion.dev/owner-kind': 'VirtualMachineImage.harvesterhci.io',
      'bullion.dev/role': 'class',
    },
    annotations: { 'bullion.dev/owner-name': 'taken', 'bullion.dev/owner-namespace': 'tenant' },
  },
  encrypting,
);
const foreignImage = (granted: boolean): Draft =>
  aHarvesterImage(
    { backend: 'backingimage', storageClassParameters: encrypting },
    {
      name: 'taken',
      namespace: 'tenant',
      uid: 'uid-9',
      annotations: granted
        ? { 'bullion.dev/granted': '[{"use":"read-secret","namespace":"default","name":"key"}]' }
        : {},
    },
  );
const deletedKey = { oldObject: key('key') };
/** Changes of the Secret that do not affect existing volumes. */
const harmlessChanges: readonly (readonly [what: string, asked: Asked])[] = [
  ['a label', { object: key('key', {}, { labels: { a: 'b' } }), oldObject: key('key') }],
  ['another field', { object: key('key', { note: 'eA==' }), oldObject: key('key') }],
  ['the cipher of volumes to come', { object: key('key', { CRYPTO_KEY_CIPHER: 'eA==' }), oldObject: key('key') }],
  ['the provider there is anyway', { object: key('key', { CRYPTO_KEY_PROVIDER: 'c2VjcmV0' }), oldObject: key('key') }],
];

export const advised = (annotations: Record<string, string>, parameters: Loose = {}): { readonly object: Draft } => ({
  object: storageClass(
    'fast',
    {
      annotations: Object.fromEntries(
        Object.entries(annotations).map(([name, value]) => [`cdi.harvesterhci.io/${name}`, value]),
      ),
    },
    parameters,
  ),
});

export const goodAdvice = {
  filesystemOverhead: '0.06',
  storageProfileVolumeModeAccessModes: '{"Block":["ReadWriteOnce"]}',
};

const badAdvice: readonly (readonly [annotations: Record<string, string>, says: RegExp])[] = [
  [{ filesystemOverhead: '1.5' }, /filesystemOverhead\]: must be a share/],
  [{ storageProfileCloneStrategy: 'magic' }, /storageProfileCloneStrategy\]: must be copy/],
  [{ storageProfileCloneStrategy: 'snapshot' }, /storageProfileVolumeSnapshotClass\]: is required/],
  [{ storageProfileVolumeSnapshotClass: 'missing' }, /snapshot class "missing" does not exist/],
  [{ storageProfileVolumeModeAccessModes: '{"Block":["Any"]}' }, /storageProfileVolumeModeAccessModes\]: must be JSON/],
];

export const classRows: readonly ProtectedRow[] = [
  {
    id: 'protected/class-in-use',
    what: 'a storage class that images are kept in',
    given: [image],
    allowed: { oldObject: storageClass('slow') },
    denied: { oldObject: storageClass('fast') },
    says: /used by images: virtualmachineimage \S+\/ubuntu/,
  },
  {
    id: 'protected/reserved-class',
    what: 'a reserved storage class',
    given: [],
    allowed: { oldObject: storageClass('fast') },
    denied: {
      oldObject: storageClass('fast', { annotations: { 'harvesterhci.io/is-reserved-storageclass': 'true' } }),
    },
    says: /is reserved/,
  },
  {
    id: 'class/one-secret',
    what: 'encrypting classes from naming no Secret',
    given: [],
    allowed: { object: storageClass('fast', {}, encrypting) },
    denied: { object: storageClass('fast', {}, { encrypted: 'true', ...secretParameters('key', ...stages.slice(1)) }) },
    says: /provisioner-secret-name\]: and \S+ are required to encrypt/,
  },
  {
    id: 'class/one-secret',
    what: 'encrypting classes from naming two Secrets',
    given: [],
    allowed: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('key', 'node-expand') }) },
    denied: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('other', 'node-expand') }) },
    says: /node-expand-secret-name\]: refers to another Secret/,
  },
  {
    id: 'class/advice-followed',
    what: 'advice from classes that cannot follow it',
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(goodAdvice, { dataEngine: 'v1' }),
    says: /have no effect beside the parameter dataEngine=v1/,
  },
  ...badAdvice.map(([annotations, says]) => ({
    id: 'class/advice-well-formed',
    what: `classes from advice such as ${JSON.stringify(annotations)}`,
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(annotations),
    says,
  })),
  {
    id: 'class/movable-disks',
    what: 'classes from holding disks where their machine runs',
    given: [],
    allowed: { object: storageClass('fast', {}, { dataLocality: 'best-effort' }) },
    denied: { object: storageClass('fast', {}, { dataLocality: 'strict-local' }) },
    says: /parameters\[dataLocality\]: must be disabled or best-effort/,
  },
  {
    id: 'protected/encryption-key-in-use',
    what: 'the key of an encrypting class',
    given: [storageClass('fast', {}, encrypting)],
    allowed: { oldObject: key('spare') },
    denied: { oldObject: key('key') },
    says: /Secret \S+\/key encrypts the volumes of storage class fast/,
  },
  ...(
    [
      ['emptied', key('key', { CRYPTO_KEY_VALUE: '' }), key('key')],
      ['changed', key('key', { CRYPTO_KEY_VALUE: 'eQ==' }), key('key')],
      ['removed', withoutKey, key('key')],
      ['given to another provider', key('key', { CRYPTO_KEY_PROVIDER: 'a21z' }), key('key')],
      ['of Ceph changed', key('key', { encryptionPassphrase: 'eQ==' }), key('key', { encryptionPassphrase: 'eA==' })],
    ] as const
  ).map(([what, object, oldObject]) => ({
    id: 'protected/encryption-key-in-use',
    what: `the key of an encrypting class from being ${what}`,
    given: [storageClass('fast', {}, encrypting)],
    allowed: { object: key('key', { note: 'eA==' }), oldObject: key('key') },
    denied: { object, oldObject },
    says: /data\[(CRYPTO_KEY_(VALUE|PROVIDER)|encryptionPassphrase)\]: must stay as it is: Secret \S+\/key/,
  })),
  {
    id: 'protected/encryption-key-in-use',
    what: 'the key of a volume whose class is gone',
    given: [opened],
    allowed: { oldObject: key('spare') },
    denied: { oldObject: key('key') },
    says: /Secret \S+\/key encrypts volume pvc-1/,
  },
  {
    id: 'protected/encryption-key-in-use',
    what: 'the key that the author of an image of elsewhere may read',
    given: [foreignClass, foreignImage(true)],
    allowed: { oldObject: key('spare') },
    denied: deletedKey,
    says: /storage class lh-uid-9/,
  },
];

/** Created without the permission of its author, before the check existed, or with admission bypassed. */
const stolen: Draft = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pvc-9' },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'lh-uid-9',
    csi: {
      driver: 'driver.longhorn.io',
      volumeHandle: 'pvc-9',
      nodeStageSecretRef: { name: 'key', namespace: 'default' },
    },
  },
};

/** Accepted although a Secret with that name is an encryption key elsewhere. */
export const exemptKeyRows: readonly ExemptRow[] = [
  exempt(
    'protected/encryption-key-in-use',
    'a key that an image of elsewhere names without a right',
    [foreignClass, foreignImage(false), stolen],
    deletedKey,
  ),
  exempt(
    'protected/encryption-key-in-use',
    'a key that is named by a class whose image is gone',
    [foreignClass],
    deletedKey,
  ),
  ...harmlessChanges.map(([what, asked]) =>
    exempt(
      'protected/encryption-key-in-use',
      `a key Secret beside whose key changes ${what}`,
      [foreignClass, foreignImage(true)],
      asked,
    ),
  ),
];
