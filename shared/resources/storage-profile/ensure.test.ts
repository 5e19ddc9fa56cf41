// StorageProfiles are created for classes, and their annotations follow the capabilities of the driver and the existing snapshot classes.
import { beforeEach, describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { ensureProfiles } from '#shared/resources/storage-profile/ensure.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { aSnapshotClass, aStorageClass } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const gke = 'pd.csi.storage.gke.io';
const golden = 'cdi.kubevirt.io/snapshotClassForDataImportCron';
const single = 'cdi.kubevirt.io/useReadWriteOnceForDataImportCron';
const images = aSnapshotClass('images', { driver: gke, parameters: { 'snapshot-type': 'images' } });

let deps: ReturnType<typeof createTestReconciler>;
beforeEach(() => {
  deps = createTestReconciler();
});
const marksOf = (name: string) =>
  deps.kube.all(storageProfiles).find(({ metadata }) => metadata.name === name)?.metadata.annotations;

describe('the profile of a GKE class', () => {
  it('names the snapshot class for golden images while it exists', async () => {
    deps.kube.seed(storageClasses, aStorageClass('gke', { provisioner: gke }));
    await ensureProfiles(deps);
    expect(marksOf('gke')).toEqual({ [single]: 'true' });
    const { metadata } = deps.kube.seed(volumeSnapshotClasses, images);
    await ensureProfiles(deps);
    expect(marksOf('gke')).toEqual({ [single]: 'true', [golden]: 'images' });
    await deps.kube.delete(volumeSnapshotClasses, metadata);
    await ensureProfiles(deps);
    expect(marksOf('gke')).toEqual({ [single]: 'true' });
  });

  it('keeps settings of an administrator, and is not changed when there is nothing to set', async () => {
    deps.kube.seed(storageClasses, aStorageClass('gke', { provisioner: gke }));
    await ensureProfiles(deps);
    const own = { [single]: 'false', [golden]: 'mine' };
    for (const name of ['gke', 'local'])
      deps.kube.edit(storageProfiles, { name }, (profile) => Object.assign(profile.metadata, { annotations: own }));
    await ensureProfiles(deps);
    expect(marksOf('gke')).toEqual({ [single]: 'false' });
    expect(marksOf('local')).toEqual(own);
    deps.kube.calls.length = 0;
    await ensureProfiles(deps);
    expect(deps.kube.calls.filter(({ verb }) => verb !== 'list')).toEqual([]);
  });
});

it('offers what statically provisioned volumes have', async () => {
  deps.kube.seed(storageClasses, aStorageClass('hand', { provisioner: 'kubernetes.io/no-provisioner' }));
  deps.kube.seed(persistentVolumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: 'one' },
    spec: { storageClassName: 'hand', capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
  });
  await ensureProfiles(deps);
  await ensureProfiles(deps);
  const profile = deps.kube.all(storageProfiles).find(({ metadata }) => metadata.name === 'hand');
  expect(profile?.status?.claimPropertySets).toEqual([{ accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' }]);
});

it('keeps the profile of no class from those of others, nor the rest of the tick, while it is refused', async () => {
  for (const name of ['first', 'second']) deps.kube.seed(storageClasses, aStorageClass(name, { provisioner: gke }));
  const create: typeof deps.kube.create = (type, object) =>
    object.metadata.name === 'first' ? Promise.reject(new Unavailable('admission')) : deps.kube.create(type, object);
  const facts = await ensureProfiles({ ...deps, kube: { ...deps.kube, create } });
  expect(facts?.classes.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(['first', 'second']));
  expect([marksOf('first'), marksOf('second')]).toEqual([undefined, { [single]: 'true' }]);
});

describe('a DataVolume in a class without capabilities', () => {
  const ref = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataVolume', namespace: 'default', name: 'disk' };
  const make = (storage: object) => {
    deps.kube.seed(storageClasses, aStorageClass('new', { provisioner: 'new.example' }));
    deps.kube.seed(dataVolumeKind.type, {
      apiVersion: ref.apiVersion,
      kind: ref.kind,
      metadata: { namespace: 'default', name: 'disk' },
      spec: {
        source: { blank: {} },
        storage: { storageClassName: 'new', resources: { requests: { storage: '1Gi' } }, ...storage },
      },
    });
  };
  const look = async () => {
    await reconcile(deps, ref);
    const [object] = deps.kube.all(dataVolumeKind.type);
    const {
      type: _,
      lastTransitionTime: __,
      lastHeartbeatTime: ___,
      ...ready
    } = object?.status?.conditions?.find(({ type }) => type === 'Ready') ?? { type: '' };
    return { ready, claims: deps.kube.all(persistentVolumeClaims).map(({ spec }) => spec) };
  };

  it('reports it, and continues once its profile contains capabilities', async () => {
    make({});
    await ensureProfiles(deps);
    expect(await look()).toEqual({
      ready: {
        status: 'False',
        reason: 'ErrClaimNotValid',
        message: expect.stringMatching(
          /^Spec is missing accessMode and volumeMode, .* StorageProfile new: write accessModes/,
        ) as string,
      },
      claims: [],
    });
    const sets = [{ accessModes: ['ReadWriteMany' as const], volumeMode: 'Filesystem' as const }];
    deps.kube.edit(storageProfiles, { name: 'new' }, (profile) =>
      Object.assign(profile, { spec: { claimPropertySets: sets } }),
    );
    expect((await look()).claims).toMatchObject([{ accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' }]);
  });

  it('is created when it specifies its access modes', async () => {
    make({ accessModes: ['ReadWriteOnce'] });
    expect((await look()).claims).toMatchObject([{ accessModes: ['ReadWriteOnce'], volumeMode: 'Filesystem' }]);
  });
});
