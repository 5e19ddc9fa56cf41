// The known capabilities of drivers, the settings of an administrator that override them, and the defaults for requests of users.
import { describe, expect, it } from 'vitest';
import type { StorageProfile, StorageProfileSpec } from '#shared/api/cdi/storage-profile.ts';
import type { AccessMode, PersistentVolume, VolumeMode } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshotClass } from '#shared/api/foreign/snapshot.ts';
import {
  type ClaimProfile,
  claimSetsOf,
  completeClaim,
  leastBytesOf,
  namedSnapshotClass,
  overheadOf,
} from './profile.ts';
import { describeClass } from '#shared/populate/storage/storage-profile.ts';
import { aSnapshotClass, aStorageClass, aStorageProfile } from '#test/support/builders.ts';

const classOf = (provisioner: string, parameters: Record<string, string> = {}) =>
  aStorageClass('a', { provisioner, parameters });
const described = (
  driver: string,
  snapshotClasses: readonly VolumeSnapshotClass[] = [],
  asked: StorageProfileSpec = {},
) => describeClass({ storageClass: classOf(driver), snapshotClasses }, asked);
const aPersistentVolume: PersistentVolume = {
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'one' },
  spec: { capacity: { storage: '1Gi' }, accessModes: [] },
};
const snapshotsOf = (driver: string) => [aSnapshotClass('snaps', { driver })];
const rwo = ['ReadWriteOnce'] as const;

describe('a storage class', () => {
  it('without a snapshot class is copied, and its images are volumes', () => {
    const { status } = described('pd.csi.storage.gke.io', [], { dataImportCronSourceFormat: 'snapshot' });
    expect(status).toMatchObject({ cloneStrategy: 'copy', dataImportCronSourceFormat: 'pvc' });
    expect(status).not.toHaveProperty('snapshotClass');
    expect(described('nfs.csi.k8s.io').status.cloneStrategy).toBe('copy');
    expect(described('nfs.csi.k8s.io', snapshotsOf('nfs.csi.k8s.io')).status.cloneStrategy).toBe('snapshot');
    expect(described('csi.hpe.com').status.cloneStrategy).toBe('csi-clone');
    expect(described('nfs.csi.k8s.io', [], { cloneStrategy: 'snapshot' }).status.cloneStrategy).toBe('snapshot');
  });

  it.each([
    ['new.example', {}, 'UnrecognizedProvisioner'],
    ['kubernetes.io/no-provisioner', {}, 'UnrecognizedProvisioner'],
    ['openshift-storage.noobaa.io/obc', {}, 'UnrecognizedProvisioner'],
    ['csi.trident.netapp.io', {}, 'UnrecognizedStorageClassParameters'],
    ['infinibox-csi-driver', { storage_protocol: 'tape' }, 'UnrecognizedStorageClassParameters'],
    ['csi.san.synology.com', { protocol: 'tape' }, 'UnrecognizedStorageClassParameters'],
  ])('of %s with %o offers nothing, and reports why: %s', (driver, parameters, expected) => {
    const facts = { storageClass: classOf(driver, parameters), snapshotClasses: [] };
    const { isRecognized, reason, message, status } = describeClass(facts, {});
    expect({ isRecognized, reason }).toEqual({ isRecognized: false, reason: expected });
    expect(message).toContain('spec.claimPropertySets');
    expect(status.claimPropertySets).toEqual([]);
  });

  it('with statically provisioned volumes offers what those offer, each once', () => {
    const volumeOf = (storageClassName: string, volumeMode: VolumeMode | undefined, ...modes: AccessMode[]) => {
      const { spec, ...rest } = aPersistentVolume;
      return { ...rest, spec: { ...spec, storageClassName, accessModes: modes, ...(volumeMode && { volumeMode }) } };
    };
    const volumes = [
      volumeOf('a', 'Block', 'ReadWriteOnce'),
      volumeOf('a', undefined, 'ReadWriteOnce', 'ReadWriteMany'),
      volumeOf('a', 'Block', 'ReadWriteOnce'),
      volumeOf('other', 'Block', 'ReadWriteMany'),
    ];
    const byHand = { storageClass: classOf('kubernetes.io/no-provisioner'), snapshotClasses: [], volumes };
    const { status } = describeClass(byHand, {});
    expect(status.claimPropertySets).toEqual([
      { volumeMode: 'Block', accessModes: ['ReadWriteOnce'] },
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
    ]);
    expect(claimSetsOf(byHand.storageClass, { status })).toEqual(status.claimPropertySets);
    expect(describeClass({ ...byHand, storageClass: classOf('new.example') }, {}).status.claimPropertySets).toEqual([]);
  });

  it('is what an administrator configured', () => {
    const asked: StorageProfileSpec = {
      cloneStrategy: 'copy',
      claimPropertySets: [{ accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' }],
      dataImportCronSourceFormat: 'snapshot',
      snapshotClass: 'mine',
    };
    const classes = [...snapshotsOf('local.bullion.dev'), aSnapshotClass('mine')];
    expect(described('local.bullion.dev', classes, asked).status).toMatchObject(asked);
    const wrong = described('topolvm.io', classes, asked);
    expect(wrong).toMatchObject({ reason: 'SnapshotClassInvalid', message: expect.stringContaining('"mine"') });
  });
});

describe('the annotations of a class, as Harvester sets them', () => {
  const annotated = (annotations: Record<string, string>) =>
    aStorageClass('a', { provisioner: 'local.bullion.dev', metadata: { name: 'a', annotations } });
  const prefix = 'cdi.harvesterhci.io/storageProfile';
  const classes = [...snapshotsOf('local.bullion.dev'), aSnapshotClass('mine')];

  it.each<[what: string, annotations: Record<string, string>, asked: StorageProfileSpec, expected: object]>([
    [
      'modes',
      { [`${prefix}VolumeModeAccessModes`]: '{"Filesystem":["ReadWriteMany"]}' },
      {},
      { claimPropertySets: [{ accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' }] },
    ],
    ['how it is cloned', { [`${prefix}CloneStrategy`]: 'csi-clone' }, {}, { cloneStrategy: 'csi-clone' }],
    ["how it is cloned, in CDI's word", { 'cdi.kubevirt.io/clone-strategy': 'copy' }, {}, { cloneStrategy: 'copy' }],
    ['its class of snapshots', { [`${prefix}VolumeSnapshotClass`]: 'mine' }, {}, { snapshotClass: 'mine' }],
    [
      'nothing that its profile overrides',
      { [`${prefix}CloneStrategy`]: 'csi-clone', [`${prefix}VolumeSnapshotClass`]: 'mine' },
      { cloneStrategy: 'copy', snapshotClass: 'snaps' },
      { cloneStrategy: 'copy', snapshotClass: 'snaps' },
    ],
  ])('results in %s', (_what, annotations, asked, expected) => {
    expect(
      describeClass({ storageClass: annotated(annotations), snapshotClasses: classes }, asked).status,
    ).toMatchObject(expected);
  });

  it.each([
    ['0.2', 0.2],
    ['0', 0],
    ['1', 1],
    ['0.1234', 0.06],
    ['a lot', 0.06],
    [undefined, 0.06],
  ])('of file systems: %s is %d', (text, share) => {
    const marks = text === undefined ? {} : { 'cdi.harvesterhci.io/filesystemOverhead': text };
    expect(overheadOf(annotated(marks), { filesystemOverhead: 0.06 })).toBe(share);
  });
});

describe('the defaults of a claim', () => {
  const sets = claimSetsOf(classOf('rook-ceph.rbd.csi.ceph.com'));
  it.each([
    [{}, { volumeMode: 'Block', accessModes: ['ReadWriteMany'] }],
    [{ volumeMode: 'Filesystem' }, { volumeMode: 'Filesystem', accessModes: rwo }],
    [{ accessModes: rwo }, { volumeMode: 'Block', accessModes: rwo }],
    [{ volumeMode: 'Block' }, { volumeMode: 'Block', accessModes: ['ReadWriteMany'] }],
    [{ accessModes: ['ReadWriteOncePod'] }, { volumeMode: 'Filesystem', accessModes: ['ReadWriteOncePod'] }],
    [
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
    ],
  ] as const)('%o becomes %o', (asked, expected) => {
    expect(completeClaim(sets, asked)).toEqual(expected);
  });
});

describe('the defaults of a claim for a class', () => {
  it.each<
    [driver: string, parameters: Record<string, string>, asked: Partial<ClaimProfile>, modes: string | undefined]
  >([
    ['new.example', {}, {}, undefined],
    ['new.example', {}, { volumeMode: 'Block' }, undefined],
    ['new.example', {}, { volumeMode: 'Filesystem' }, undefined],
    ['new.example', {}, { accessModes: ['ReadWriteMany'] }, 'Filesystem/ReadWriteMany'],
    ['new.example', {}, { volumeMode: 'Block', accessModes: ['ReadWriteMany'] }, 'Block/ReadWriteMany'],
    ['csi.trident.netapp.io', {}, {}, undefined],
    ['nfs.csi.k8s.io', {}, { volumeMode: 'Block' }, undefined],
    ['ebs.csi.aws.com', {}, { volumeMode: 'Filesystem' }, 'Filesystem/ReadWriteOnce'],
  ])('of %s %o: %o becomes %s', (driver, parameters, asked, modes) => {
    const made = completeClaim(claimSetsOf(classOf(driver, parameters)), asked);
    expect(made && `${made.volumeMode}/${made.accessModes.join()}`).toBe(modes);
  });
});

describe('the minimum volume size of a class', () => {
  const gib = 2 ** 30;
  it.each<[minimum: string | undefined, driver: string, bytes: number]>([
    [undefined, 'local.bullion.dev', 0],
    [undefined, 'xspc.csi.hpe.com', gib],
    ['4Gi', 'local.bullion.dev', 4 * gib],
    ['4Gi', 'nobody.example', 4 * gib],
    ['10Mi', 'xspc.csi.hpe.com', 10 * 2 ** 20],
    ['', 'xspc.csi.hpe.com', gib],
    ['bla', 'local.bullion.dev', 0],
  ])('with the profile %j and the driver %s is %d bytes', (minimum, driver, bytes) => {
    const annotations = minimum === undefined ? {} : { 'cdi.kubevirt.io/minimumSupportedPvcSize': minimum };
    expect(leastBytesOf(classOf(driver), aStorageProfile({ annotations }))).toBe(bytes);
  });
});

describe('the snapshot class in a profile', () => {
  it.each<[what: string, profile: Partial<StorageProfile>, expected: string | undefined]>([
    ['is the one found to fit', { status: { snapshotClass: 'snaps' } }, 'snaps'],
    [
      'is the requested one, once it was found to match',
      { spec: { snapshotClass: 'a' }, status: { snapshotClass: 'a' } },
      'a',
    ],
    [
      'is none while another one is requested',
      { spec: { snapshotClass: 'b' }, status: { snapshotClass: 'a' } },
      undefined,
    ],
    ['is none before it was determined', {}, undefined],
  ])('%s', (_what, profile, expected) => {
    expect(namedSnapshotClass(aStorageProfile(profile))).toBe(expected);
  });
});
