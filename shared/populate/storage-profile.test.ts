// What is known of drivers, what an administrator says instead, and what is asked for where the user does not say.
import { describe, expect, it } from 'vitest';
import type { StorageProfile, StorageProfileSpec } from '#shared/api/cdi/storage-profile.ts';
import { overheadOf } from '#shared/populate/class-annotations.ts';
import { claimSetsOf, completeClaim, leastBytesOf, toldSnapshotClass } from '#shared/populate/profile.ts';
import { describeClass } from '#shared/populate/storage-profile.ts';
import { aSnapshotClass, aStorageClass, aStorageProfile } from '#test/support/builders.ts';

const classOf = (provisioner: string, parameters: Record<string, string> = {}) =>
  aStorageClass('a', { provisioner, parameters });
const snapshotsOf = (driver: string) => [aSnapshotClass('snaps', { driver })];
const rwo = ['ReadWriteOnce'] as const;

describe('a storage class', () => {
  it.each<[driver: string, parameters: Record<string, string>, modes: string, clone: string, format: string]>([
    ['rook-ceph.rbd.csi.ceph.com', {}, 'Block/ReadWriteMany', 'csi-clone', 'snapshot'],
    ['rook-ceph.cephfs.csi.ceph.com', {}, 'Filesystem/ReadWriteMany', 'csi-clone', 'pvc'],
    ['ebs.csi.aws.com', { type: 'gp3' }, 'Block/ReadWriteOnce', 'snapshot', 'pvc'],
    ['ebs.csi.aws.com', { type: 'io2' }, 'Block/ReadWriteMany', 'snapshot', 'pvc'],
    ['pd.csi.storage.gke.io', {}, 'Block/ReadWriteOnce', 'snapshot', 'snapshot'],
    ['pd.csi.storage.gke.io', { type: 'hyperdisk-balanced' }, 'Block/ReadWriteMany', 'snapshot', 'snapshot'],
    ['driver.longhorn.io', { migratable: 'true' }, 'Block/ReadWriteMany', 'snapshot', 'pvc'],
    ['driver.longhorn.io', { nfsOptions: 'x' }, 'Filesystem/ReadWriteMany', 'snapshot', 'pvc'],
    ['driver.longhorn.io', {}, 'Block/ReadWriteOnce', 'snapshot', 'pvc'],
    ['csi.trident.netapp.io', { backendType: 'ontap-san' }, 'Block/ReadWriteMany', 'snapshot', 'snapshot'],
    ['topolvm.io', {}, 'Block/ReadWriteOnce', 'copy', 'pvc'],
    ['nfs.csi.k8s.io', {}, 'Filesystem/ReadWriteMany', 'snapshot', 'pvc'],
    ['local.bullion.dev', {}, 'Block/ReadWriteOnce', 'snapshot', 'pvc'],
    ['plain.local.bullion.dev', {}, 'Block/ReadWriteOnce', 'snapshot', 'pvc'],
  ])('of %s with %o is known', (driver, parameters, ...[modes, clone, format]) => {
    const { status, isRecognized } = describeClass(classOf(driver, parameters), snapshotsOf(driver), {});
    const [first] = status.claimPropertySets ?? [];
    expect(`${first?.volumeMode}/${first?.accessModes[0]}`).toBe(modes);
    expect(status).toMatchObject({ cloneStrategy: clone, dataImportCronSourceFormat: format, snapshotClass: 'snaps' });
    expect(isRecognized).toBe(true);
  });

  it('without a class for snapshots is copied, and its images are volumes', () => {
    const { status } = describeClass(classOf('pd.csi.storage.gke.io'), [], { dataImportCronSourceFormat: 'snapshot' });
    expect(status).toMatchObject({ dataImportCronSourceFormat: 'pvc' });
    expect(status).not.toHaveProperty('snapshotClass');
    expect(describeClass(classOf('nfs.csi.k8s.io'), [], {}).status.cloneStrategy).toBe('copy');
  });

  it('of a driver nobody knows says so, and what is assumed', () => {
    const { isRecognized, reason, message, status } = describeClass(classOf('new.example'), [], {});
    expect({ isRecognized, reason }).toEqual({ isRecognized: false, reason: 'UnrecognizedProvisioner' });
    expect(message).toContain('spec.claimPropertySets');
    expect(status.claimPropertySets).toEqual([{ accessModes: rwo, volumeMode: 'Block' }]);
  });

  it('is what an administrator says', () => {
    const asked: StorageProfileSpec = {
      cloneStrategy: 'copy',
      claimPropertySets: [{ accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' }],
      dataImportCronSourceFormat: 'snapshot',
      snapshotClass: 'mine',
    };
    const classes = [...snapshotsOf('local.bullion.dev'), aSnapshotClass('mine')];
    expect(describeClass(classOf('local.bullion.dev'), classes, asked).status).toMatchObject(asked);
    const wrong = describeClass(classOf('topolvm.io'), classes, asked);
    expect(wrong).toMatchObject({ reason: 'SnapshotClassInvalid', message: expect.stringContaining('"mine"') });
  });
});

describe("an administrator's word on a class, as Harvester writes it there", () => {
  const annotated = (annotations: Record<string, string>) =>
    aStorageClass('a', { provisioner: 'local.bullion.dev', metadata: { name: 'a', annotations } });
  const prefix = 'cdi.harvesterhci.io/storageProfile';
  const classes = [...snapshotsOf('local.bullion.dev'), aSnapshotClass('mine')];

  it.each<[what: string, annotations: Record<string, string>, asked: StorageProfileSpec, told: object]>([
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
      'nothing that its profile says otherwise',
      { [`${prefix}CloneStrategy`]: 'csi-clone', [`${prefix}VolumeSnapshotClass`]: 'mine' },
      { cloneStrategy: 'copy', snapshotClass: 'snaps' },
      { cloneStrategy: 'copy', snapshotClass: 'snaps' },
    ],
  ])('tells %s', (_what, annotations, asked, told) => {
    expect(describeClass(annotated(annotations), classes, asked).status).toMatchObject(told);
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

describe('what a claim leaves out', () => {
  const sets = claimSetsOf(classOf('rook-ceph.rbd.csi.ceph.com'));
  it.each([
    [{}, { volumeMode: 'Block', accessModes: ['ReadWriteMany'] }],
    [{ volumeMode: 'Filesystem' }, { volumeMode: 'Filesystem', accessModes: rwo }],
    [{ accessModes: rwo }, { volumeMode: 'Block', accessModes: rwo }],
    [{ accessModes: ['ReadWriteOncePod'] }, { volumeMode: 'Filesystem', accessModes: ['ReadWriteOncePod'] }],
    [
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
      { volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
    ],
  ] as const)('%o becomes %o', (asked, expected) => {
    expect(completeClaim(sets, asked)).toEqual(expected);
  });
});

describe('the least volume of a class', () => {
  const gib = 2 ** 30;
  it.each<[told: string | undefined, driver: string, bytes: number]>([
    [undefined, 'local.bullion.dev', 0],
    [undefined, 'ebs.csi.aws.com', gib],
    ['4Gi', 'local.bullion.dev', 4 * gib],
    ['4Gi', 'nobody.example', 4 * gib],
    ['10Mi', 'ebs.csi.aws.com', 10 * 2 ** 20],
    ['', 'ebs.csi.aws.com', gib],
    ['bla', 'local.bullion.dev', 0],
  ])('whose profile says %j of driver %s has %d bytes', (told, driver, bytes) => {
    const annotations = told === undefined ? {} : { 'cdi.kubevirt.io/minimumSupportedPvcSize': told };
    expect(leastBytesOf(classOf(driver), aStorageProfile({ annotations }))).toBe(bytes);
  });
});

describe('the snapshot class that a profile tells', () => {
  it.each<[what: string, profile: Partial<StorageProfile>, told: string | undefined]>([
    ['is the one found to fit', { status: { snapshotClass: 'snaps' } }, 'snaps'],
    ['is the one asked for, once found to fit', { spec: { snapshotClass: 'a' }, status: { snapshotClass: 'a' } }, 'a'],
    ['is none while another is asked for', { spec: { snapshotClass: 'b' }, status: { snapshotClass: 'a' } }, undefined],
    ['is none before anybody looked', {}, undefined],
  ])('%s', (_what, profile, told) => {
    expect(toldSnapshotClass(aStorageProfile(profile))).toBe(told);
  });
});
