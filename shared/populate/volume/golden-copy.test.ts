// When a disk is cloned from a golden copy in its class, waits for one, has one made, or is copied by a Job of its own.
import { describe, expect, it } from 'vitest';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { labels } from '#shared/api/names.ts';
import type { Plan } from '#shared/populate/actions.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';
import { initialState } from '#shared/populate/filled.ts';
import { isoTime } from '#shared/populate/state.ts';
import { buildCopy, copyNameOf, type ObservedCopy, originalOf } from '#shared/populate/volume/golden-copy.ts';
import { worthOf } from '#shared/populate/volume/golden-copy-use.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import { aPopulation, aStorageClass, testSettings, testTime } from '#test/support/builders.ts';

const context = { now: testTime, settings: testSettings };
const gib = 2 ** 30;
const golden = 'golden-images';

const version: PersistentVolumeClaim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'fedora-a', namespace: golden, uid: 'version', labels: { [cdiLabels.cron]: 'fedora' } },
  spec: {},
};
const slow: ReadyOrigin = {
  is: 'ready',
  namespace: golden,
  clone: {
    what: 'DataSource golden-images/fedora',
    driver: 'slow.example',
    volumeMode: 'Block',
    bytes: gib,
    diskBytes: gib,
    hasSnapshot: false,
    hasClaim: true,
  },
  claim: version,
  population: aPopulation,
  className: 'slow',
  accessModes: ['ReadWriteOnce'],
};
const fast = aStorageClass('fast', { allowVolumeExpansion: true });
const place = { storageClass: fast, profile: undefined, volumeMode: 'Block' } as const;

const copied = (over: Partial<DataVolume['status']> = {}, seconds = 0): DataVolume => {
  const copy = buildCopy(version, place);
  const creationTimestamp = isoTime(testTime - seconds * 1000);
  return {
    ...copy,
    metadata: { ...copy.metadata, uid: 'copy', resourceVersion: '7', creationTimestamp },
    status: over,
  };
};
const name = copied().metadata.name;
const claimOfCopy: PersistentVolumeClaim = {
  ...version,
  metadata: { name, namespace: golden, uid: 'copied', labels: { [labels.copyOf]: 'version', [labels.role]: 'volume' } },
};
const complete: ReadyOrigin = {
  ...slow,
  clone: { ...slow.clone, driver: fast.provisioner, snapshotClass: 'snapshots' },
  claim: claimOfCopy,
  className: 'fast',
};

const aDisk = (over: Partial<Volume['claim']> = {}, more: Partial<Volume> = {}): Volume => ({
  ref: { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', namespace: golden, name: 'disk', uid: 'disk' },
  generation: 1,
  deleting: false,
  finalizers: [],
  faults: [],
  source: {
    type: 'object',
    groupKind: 'DataSource.cdi.kubevirt.io',
    namespace: golden,
    name: 'fedora',
    mayLeadOn: true,
  },
  claim: { name: 'disk', className: 'fast', diskBytes: 2 * gib, ...over },
  waitsForConsumer: true,
  retries: 3,
  ...more,
  state: initialState,
});
const seen = (over: Partial<ObservedCopy> = {}, more: Partial<ObservedVolume> = {}): ObservedVolume => ({
  pods: [],
  origin: slow,
  storageClass: fast,
  goldenCopy: { original: version, right: 'make', snapshotClass: 'snapshots', ...over },
  ...more,
});
const taken = (claim: string): VolumeSnapshot => ({
  apiVersion: 'snapshot.storage.k8s.io/v1',
  kind: 'VolumeSnapshot',
  metadata: { name: 'clone-disk', uid: 'taken' },
  spec: { source: { persistentVolumeClaimName: claim } },
  status: { readyToUse: true },
});

const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) =>
    [action.do, action.type.kind, action.do === 'create' ? action.object.metadata.name : action.key.name].join(' '),
  );

const byJob = ['create PersistentVolumeClaim disk', 'create Job import-disk'];
const makes = [`create DataVolume ${name}`];
const touches = [`patch DataVolume ${name}`, 'patch PersistentVolumeClaim fedora-a'];
const wffc = { ...fast, volumeBindingMode: 'WaitForFirstConsumer' } as const;
const keyed = { ...fast, parameters: { 'csi.storage.k8s.io/provisioner-secret-name': '${pvc.name}' } };
const ofImage = { ...fast, parameters: { backingImage: 'vmi-1' } };
const shared = { ...fast, parameters: { 'csi.storage.k8s.io/provisioner-secret-name': 'key' } };

describe('a disk in another class than its golden image', () => {
  it.each<[what: string, disk: Volume, observed: ObservedVolume, actions: readonly string[]]>([
    ['has a copy made', aDisk(), seen(), makes],
    ['waits for one that is on its way', aDisk(), seen({ dataVolume: copied({ claimName: name }, 9999) }), []],
    ['waits for one that was made just now', aDisk(), seen({ dataVolume: copied({}, 60) }), []],
    ['is not held up by one that is refused', aDisk(), seen({ dataVolume: copied({}, 121) }), byJob],
    ['is not held up by one that failed', aDisk(), seen({ dataVolume: copied({ phase: 'Failed' }) }), byJob],
    [
      'is not held up by one whose claim is lost',
      aDisk(),
      seen({ dataVolume: copied({ phase: 'Succeeded', claimName: name }) }),
      byJob,
    ],
    ['may not have one made', aDisk(), seen({ right: 'use' }), byJob],
    ['may use one that is there', aDisk(), seen({ right: 'use', dataVolume: copied() }), []],
    ['may not use any', aDisk(), seen({ right: 'never', dataVolume: copied(), origin: complete }), byJob],
    [
      'takes a snapshot of the copy, which is in use then',
      aDisk(),
      seen({ dataVolume: copied(), origin: complete }),
      [...touches, 'create VolumeSnapshot clone-disk'],
    ],
    [
      'is restored from that snapshot',
      aDisk(),
      seen({ dataVolume: copied(), origin: complete }, { sourceSnapshot: taken(name) }),
      [...touches, 'create PersistentVolumeClaim disk'],
    ],
    [
      'is not restored from a snapshot of the version as if it were one of the copy',
      aDisk(),
      seen({ dataVolume: copied(), origin: complete }, { sourceSnapshot: taken('fedora-a') }),
      byJob,
    ],
    ['gains nothing where the class takes no snapshots', aDisk(), seen({ snapshotClass: undefined }), byJob],
    ['gains nothing where its file system grows', aDisk({ volumeMode: 'Filesystem' }), seen(), byJob],
    ['gains nothing where it is smaller', aDisk({ diskBytes: gib / 2 }), seen(), []],
    [
      'gains nothing where the storage clones across its classes',
      aDisk(),
      seen({}, { origin: { ...slow, clone: { ...slow.clone, driver: fast.provisioner, snapshotClass: 'snapshots' } } }),
      ['patch PersistentVolumeClaim fedora-a', 'create VolumeSnapshot clone-disk'].slice(1),
    ],
    ['has none in a class with a key for each claim', aDisk(), seen({}, { storageClass: keyed }), byJob],
    ['has none in the class of an image', aDisk(), seen({}, { storageClass: ofImage }), byJob],
    ['has one in a class with one key', aDisk(), seen({}, { storageClass: shared }), makes],
    ['has one where it waits for its consumer', aDisk(), seen({}, { storageClass: wffc }), makes],
    [
      'gains nothing where a Job is its consumer',
      aDisk({}, { isBoundAtOnce: true, waitsForConsumer: false }),
      seen({}, { storageClass: wffc }),
      byJob,
    ],
    [
      'gains nothing where its consumer is in another namespace',
      aDisk({}, { ref: { ...aDisk().ref, namespace: 'team' } }),
      seen({}, { storageClass: wffc, stage: { namespace: golden, pods: [] } }),
      ['create PersistentVolumeClaim clone-disk', 'create Job import-disk'],
    ],
  ])('%s', (_what, disk, observed, actions) => {
    const plan = planVolume(disk, observed, context);
    expect(
      actionsOf(plan).filter((action) => !action.startsWith('patch PersistentVolumeClaim') || actions.includes(action)),
    ).toEqual(actions);
  });

  it('reports what it waits for, without a deadline', () => {
    const { state } = planVolume(aDisk(), seen(), context);
    expect(state).toMatchObject({ phase: 'Pending', reason: 'SameContent', deadline: undefined });
    expect(state.message).toContain(`into class fast once, by DataVolume golden-images/${name}`);
  });
});

describe('a golden copy', () => {
  it('has another name for another version, class or volume mode, also where one was created again under its name', () => {
    const again = { ...fast, metadata: { ...fast.metadata, uid: 'again' } };
    const names = [
      copyNameOf(version, place),
      copyNameOf({ ...version, metadata: { ...version.metadata, uid: 'again' } }, place),
      copyNameOf(version, { ...place, storageClass: again }),
      copyNameOf(version, { ...place, volumeMode: 'Filesystem' }),
    ];
    expect(new Set(names).size).toBe(4);
    expect(
      copyNameOf({ ...version, metadata: { ...version.metadata, name: 'x'.repeat(253) } }, place).length,
    ).toBeLessThan(64);
  });

  it.each<[what: string, over: Partial<PersistentVolumeClaim['metadata']>, isOne: boolean]>([
    ['of a version', {}, true],
    ['of no other claim', { labels: {} }, false],
    ['of no version in a namespace where anybody may write our marks', { namespace: 'kube-system' }, false],
  ])('is one %s', (_what, over, isOne) => {
    const claim = { ...version, metadata: { ...version.metadata, ...over } };
    expect(originalOf({ ...slow, claim }) !== undefined).toBe(isOne);
    expect(originalOf({ ...slow, claim, population: undefined })).toBeUndefined();
  });

  it.each([
    ['worth', {}, 'snapshots', slow],
    ['useless', {}, undefined, slow],
    ['useless', { parameters: keyed.parameters }, 'snapshots', slow],
    ['not needed', {}, 'snapshots', { ...slow, className: 'fast' }],
    ['not needed', {}, 'snapshots', complete],
  ] as const)('made ahead is %s', (is, over, snapshotClass, origin) => {
    const storageClass = { ...fast, ...over };
    expect(worthOf(origin, { ...place, storageClass, snapshotClass }, context).is).toBe(is);
  });
});
