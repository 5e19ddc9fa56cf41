// Objects that the original controllers made, as they are found after a migration: what is finished is taken over without a transfer.
import { describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { jobs, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { labels } from '#shared/api/names.ts';
import { type KubeObject, type ResourceType, apiVersionOf, refOf } from '#shared/api/object.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const namespace = 'vms';
const url = 'http://images.example/a.img';
const resources = { requests: { storage: '3Gi' } };
const condition = (type: string) => ({ type, status: 'True', reason: type, message: '' });
const block = { volumeMode: 'Block', storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources };

const world = (type: unknown, name: string, spec: object, status: object) => {
  const deps = createTestReconciler();
  const seed = <T extends KubeObject>(of: unknown, named: string, over: object): T =>
    deps.kube.seed(
      of as ResourceType<T>,
      {
        apiVersion: apiVersionOf(of as ResourceType),
        kind: (of as ResourceType).kind,
        ...over,
        metadata: { name: named, namespace, generation: 1, ...(over as Partial<KubeObject>).metadata },
      } as unknown as T,
    );
  const object = seed(type, name, { spec, status });
  const { apiVersion, kind, metadata } = object;
  const ownedBy = (uid = metadata.uid ?? '') => ({
    ownerReferences: [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }],
  });
  return {
    ...deps,
    uid: metadata.uid ?? '',
    seed,
    ownedBy,
    aClaim: (claim: string, over: object = ownedBy()) =>
      seed(persistentVolumeClaims, claim, {
        metadata: over,
        spec: { ...block, volumeName: 'pv' },
        status: { phase: 'Bound', capacity: { storage: '3Gi' } },
      }),
    /** As ticks do it, unless all are asked for. */
    drive: async (which: 'unsettled' | 'all' = 'unsettled') => {
      for (let pass = 0; pass < 3; pass += 1) await reconcile(deps, refOf(object), { which });
      const [now] = deps.kube.all(type as ResourceType) as readonly (KubeObject & {
        readonly status?: Readonly<Record<string, unknown>>;
      })[];
      const conditions = (now?.status?.['conditions'] ?? []) as readonly {
        readonly type: string;
        readonly status: string;
        readonly reason: string;
      }[];
      const ready = conditions.find((one) => one.type === 'Ready');
      return { status: now?.status ?? {}, reason: ready?.reason, isReady: ready?.status === 'True' };
    },
  };
};
const ownerOf = (object: KubeObject | undefined) => object?.metadata.labels?.[labels.ownerUid];

const aDataVolume = (status: object = { phase: 'Succeeded', progress: '100.0%', claimName: 'disk' }) =>
  world(dataVolumeKind.type, 'disk', { source: { http: { url } }, storage: { resources } }, status);
const anImage = (status: object = { state: 'Available', conditions: [condition('ReadyToUse')] }) =>
  world(
    hyperCloudImageKind.type,
    'ubuntu',
    { source: { http: url }, pvc: block, snapshotClassName: 'snapshots' },
    status,
  );

describe('what CDI filled', () => {
  it('is usable at once, and its claim is watched', async () => {
    const { aClaim, drive, kube, uid, ownedBy } = aDataVolume();
    aClaim('disk');
    expect(await drive()).toMatchObject({ isReady: true, status: { phase: 'Succeeded', claimName: 'disk' } });
    const [claim] = kube.all(persistentVolumeClaims);
    expect(ownerOf(claim)).toBe(uid);
    expect(claim?.metadata.ownerReferences).toEqual(ownedBy().ownerReferences);
    expect(kube.all(jobs)).toEqual([]);
  });

  it.each([
    ["of a claim that is another object's", aDataVolume(), 'uid-of-another'],
    ['of a DataVolume that CDI has not finished', aDataVolume({ phase: 'ImportInProgress' }), undefined],
    [
      'once Bullion has written a status',
      aDataVolume({ phase: 'Succeeded', detail: { phase: 'Available' } }),
      undefined,
    ],
  ])('is not taken for granted %s', async (_, { aClaim, ownedBy, drive, kube }, owner) => {
    aClaim('disk', ownedBy(owner));
    expect((await drive()).isReady).toBe(false);
    expect(ownerOf(kube.all(persistentVolumeClaims)[0])).toBeUndefined();
  });
});

describe('what the operator of HyperCloud made', () => {
  it('is usable at once, with its snapshot', async () => {
    const { aClaim, seed, ownedBy, drive, kube, uid } = anImage();
    aClaim('ubuntu-image-pvc');
    const snapshot = {
      metadata: ownedBy(),
      spec: { source: { persistentVolumeClaimName: 'ubuntu-image-pvc' } },
      status: { readyToUse: true },
    };
    seed(volumeSnapshots, 'ubuntu-image-snapshot', snapshot);
    expect(await drive()).toMatchObject({
      isReady: true,
      status: { state: 'Available', children: { volume: 'ubuntu-image-pvc', snapshot: 'ubuntu-image-snapshot' } },
    });
    expect([kube.all(persistentVolumeClaims)[0], kube.all(volumeSnapshots)[0]].map(ownerOf)).toEqual([uid, uid]);
    expect(kube.all(jobs)).toEqual([]);
  });

  it('is lost, as any image, if its volume is gone', async () => {
    const { drive } = anImage();
    expect(await drive()).toMatchObject({ isReady: false, reason: 'VolumeLost' });
  });

  it('is a volume that is bound', async () => {
    const { aClaim, drive } = world(
      virtualMachineVolumeKind.type,
      'root',
      { virtualMachineImage: { name: 'ubuntu' }, capacity: { storage: '3Gi' } },
      { state: 'Available' },
    );
    aClaim('root-vmv-pvc');
    expect(await drive()).toMatchObject({ isReady: true, status: { state: 'Available', claimName: 'root-vmv-pvc' } });
  });
});

describe('an export that the operator of HyperCloud completed', () => {
  it.each([{ local: {} }, { s3: { url: 'https://b.store.example/disk.qcow2', secretRef: 'keys' } }])(
    'is not made again: %j',
    async (destination) => {
      const spec = { virtualMachineVolume: { name: 'root' }, destination };
      const { drive, kube } = world(volumeExportKind.type, 'out', spec, { state: 'Completed' });
      expect(await drive('all')).toMatchObject({
        isReady: true,
        reason: 'Ready',
        status: { state: 'Completed', progress: 100 },
      });
      expect(kube.all(jobs)).toEqual([]);
    },
  );
});

describe('what Harvester made', () => {
  it('is usable at once: its DataVolume, and is lost without it', async () => {
    const spec = {
      backend: 'cdi',
      displayName: 'jammy',
      sourceType: 'upload',
      retry: 3,
      targetStorageClassName: 'local',
    };
    const status = {
      progress: 100,
      virtualSize: 4096,
      storageClassName: 'local',
      conditions: [condition('Initialized'), condition('Imported')],
    };
    const { seed, aClaim, ownedBy, drive, kube, uid } = world(harvesterImageKind.type, 'image-abc', spec, status);
    const made = seed(dataVolumeKind.type, 'image-abc', {
      metadata: ownedBy(),
      spec: { source: { upload: {} } },
      status: { phase: 'Succeeded' },
    });
    aClaim('image-abc', {
      ownerReferences: [{ kind: 'DataVolume', name: 'image-abc', uid: made.metadata.uid, controller: true }],
    });
    expect(await drive()).toMatchObject({ isReady: true, status: { phase: 'Imported', storageClassName: 'local' } });
    expect(ownerOf(kube.all(dataVolumeKind.type)[0])).toBe(uid);
    expect(await world(harvesterImageKind.type, 'image-abc', spec, status).drive()).toMatchObject({
      reason: 'VolumeLost',
    });
  });

  it('is usable at once: its backing image and its class', async () => {
    const { seed, drive, kube, uid } = world(
      harvesterImageKind.type,
      'image-abc',
      {
        backend: 'backingimage',
        displayName: 'jammy',
        sourceType: 'download',
        url,
        retry: 3,
        targetStorageClassName: 'local',
      },
      { progress: 100, size: 1024, virtualSize: 4096, conditions: [condition('Initialized'), condition('Imported')] },
    );
    const parts = {
      spec: { sourceType: 'download', sourceParameters: { url } },
      status: { size: 1024, virtualSize: 4096, diskFileStatusMap: { d: { state: 'ready', progress: 100 } } },
    };
    seed(backingImages, `vmi-${uid}`, {
      metadata: {
        namespace: 'longhorn-system',
        annotations: { [harvesterAnnotations.imageId]: `${namespace}/image-abc` },
      },
      ...parts,
    });
    seed(storageClasses, `lh-${uid}`, {
      metadata: { namespace: undefined },
      provisioner: 'driver.longhorn.io',
      parameters: { backingImage: `vmi-${uid}` },
    });
    expect(await drive()).toMatchObject({ isReady: true, status: { progress: 100, storageClassName: `lh-${uid}` } });
    expect(ownerOf(kube.all(backingImages)[0])).toBe(uid);
  });
});
