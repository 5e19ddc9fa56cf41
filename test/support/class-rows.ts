// Rules about storage classes and what encrypts them, one row each.
import type { Draft, Loose } from '#test/support/admission.ts';
import { image, storageClass } from '#test/support/row-objects.ts';
import type { ProtectedRow } from '#test/support/rule-row.ts';

const secretParameters = (name: string, ...stages: readonly string[]): Loose =>
  Object.fromEntries(
    stages.flatMap((stage) => [
      [`csi.storage.k8s.io/${stage}-secret-name`, name],
      [`csi.storage.k8s.io/${stage}-secret-namespace`, 'default'],
    ]),
  );

const stages = ['provisioner', 'node-stage', 'node-publish'];

const encrypting = { encrypted: 'true', ...secretParameters('key', ...stages) };

const key = (name: string): Draft => {
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'default' },
    data: { CRYPTO_KEY_VALUE: 'eA==' },
  };
  return secret;
};

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
    id: 'P14',
    what: 'a storage class that images are kept in',
    given: [image],
    allowed: { oldObject: storageClass('slow') },
    denied: { oldObject: storageClass('fast') },
    says: /used by images: virtualmachineimage \S+\/ubuntu/,
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
  {
    id: 'P16',
    what: 'encrypting classes from naming no Secret',
    given: [],
    allowed: { object: storageClass('fast', {}, encrypting) },
    denied: { object: storageClass('fast', {}, { encrypted: 'true', ...secretParameters('key', ...stages.slice(1)) }) },
    says: /provisioner-secret-name\]: and \S+ are required to encrypt/,
  },
  {
    id: 'P16',
    what: 'encrypting classes from naming two Secrets',
    given: [],
    allowed: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('key', 'node-expand') }) },
    denied: { object: storageClass('fast', {}, { ...encrypting, ...secretParameters('other', 'node-expand') }) },
    says: /node-expand-secret-name\]: names another Secret/,
  },
  {
    id: 'P18',
    what: 'advice from classes that cannot follow it',
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(goodAdvice, { dataEngine: 'v1' }),
    says: /have no effect beside the parameter dataEngine=v1/,
  },
  ...badAdvice.map(([annotations, says]) => ({
    id: 'P19',
    what: `classes from advice such as ${JSON.stringify(annotations)}`,
    given: [],
    allowed: advised(goodAdvice),
    denied: advised(annotations),
    says,
  })),
  {
    id: 'P21',
    what: 'classes from holding disks where their machine runs',
    given: [],
    allowed: { object: storageClass('fast', {}, { dataLocality: 'best-effort' }) },
    denied: { object: storageClass('fast', {}, { dataLocality: 'strict-local' }) },
    says: /parameters\[dataLocality\]: must be disabled or best-effort/,
  },
  {
    id: 'P22',
    what: 'the key of an encrypting class',
    given: [storageClass('fast', {}, encrypting)],
    allowed: { oldObject: key('spare') },
    denied: { oldObject: key('key') },
    says: /Secret \S+\/key encrypts the volumes of storage class fast/,
  },
];
