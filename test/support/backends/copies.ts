// Images made from existing objects, on a backend: copies of another image, of a disk, encrypted ones. Called by contract.test.ts beside
// life.ts.
import { describe, expect, it } from 'vitest';
import {
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  persistentVolumeClaims,
  persistentVolumes,
  pods,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { backingImages } from '#shared/api/foreign/longhorn.ts';
import { volumeSnapshotClasses } from '#shared/api/foreign/snapshot.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import type { Backend } from '#shared/backends/backend.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { localClasses } from '#test/support/backends/classes.ts';
import { aHarvesterImage, aSnapshotClass, aSuccess } from '#test/support/builders.ts';
import { type World, createWorld } from '#test/support/simulation/world.ts';

const hours = 3_600_000;
const images = harvesterImageKind.type;
const namespace = 'default';
const secret = {
  encrypted: 'true',
  numberOfReplicas: '1',
  'csi.storage.k8s.io/node-publish-secret-name': 'key',
  'csi.storage.k8s.io/node-publish-secret-namespace': 'default',
};

type Spec = Partial<HarvesterImage['spec']>;

export const describeCopies = (name: string, registry: BackendRegistry): void => {
  const registration = registrationOf(registry, name);
  if (!registration.served) throw new Error(registration.because);
  const backend: Backend = registration.backend;
  const takes = (type: Backend['capabilities']['sources'][number]) => backend.capabilities.sources.includes(type);

  const begin = (storage: { readonly storageClass: StorageClass; readonly snapshots: boolean }): World => {
    const world = createWorld({ attempt: () => ({ runMs: 4_000, end: aSuccess() }), backends: registry });
    world.kube.seed(storageClasses, storage.storageClass);
    if (storage.snapshots) world.kube.seed(volumeSnapshotClasses, aSnapshotClass());
    return world;
  };
  const make = async (world: World, imageName: string, asked: Spec): Promise<HarvesterImage> => {
    const { spec, metadata, ...rest } = aHarvesterImage();
    const { url, checksum: _, ...common } = spec;
    const from: Spec = asked.sourceType === undefined ? { url: url ?? '' } : {};
    world.kube.seed(images, {
      ...rest,
      metadata: { namespace, name: imageName, annotations: metadata.annotations ?? {} },
      spec: { ...common, ...from, backend: name as 'csi', displayName: imageName, ...asked },
    });
    await world.run(world.elapsed() + hours);
    expect(world.bugs).toEqual([]);
    return imageNamed(world, imageName)!;
  };
  const imageNamed = (world: World, imageName: string) =>
    world.kube.all(images).find(({ metadata }) => metadata.name === imageName);
  const cloneOf = (imageName: string, operation?: 'encrypt'): Spec => ({
    sourceType: 'clone',
    securityParameters: {
      sourceImageName: imageName,
      sourceImageNamespace: namespace,
      ...(operation === undefined ? {} : { cryptoOperation: operation }),
    } as NonNullable<Spec['securityParameters']>,
  });
  const exportOf = (claim: string): Spec => ({
    sourceType: 'export-from-volume',
    pvcName: claim,
    pvcNamespace: namespace,
  });
  /** Whether its claim, if it has one, is filled. */
  const isFilled = ({ kube, cluster }: World, { status }: HarvesterImage): boolean => {
    const kept = kube.all(persistentVolumeClaims).find(({ metadata }) => metadata.name === status?.children?.volume);
    return kept === undefined || cluster.contents.get(kept.metadata.uid!)?.isFilled === true;
  };

  describe(`copies on ${name}`, () => {
    it.runIf(takes('clone')).each(Object.entries(localClasses))(
      'of an image outlive it, on storage that %s',
      async (_what, storage) => {
        const world = begin(storage);
        await make(world, 'image-leap', {});
        const copy = await make(world, 'image-copy', cloneOf('image-leap'));
        expect(copy.status).toMatchObject({ phase: 'Imported', failed: 0 });
        expect(isFilled(world, copy)).toBe(true);
        await world.kube.delete(images, { namespace, name: 'image-leap' });
        await world.run(world.elapsed() + hours);
        expect(imageNamed(world, 'image-leap')).toBeUndefined();
        const left = imageNamed(world, 'image-copy')!;
        expect(left.status?.phase).toBe('Imported');
        expect(isFilled(world, left)).toBe(true);
      },
    );

    it.runIf(takes('clone'))('of an image that is not ready wait for it, and report it', async () => {
      const world = begin(localClasses['binds at once and takes snapshots']!);
      world.schedule(120_000, () => {
        const { spec, metadata, ...rest } = aHarvesterImage();
        const object = { ...rest, metadata: { ...metadata, namespace, name: 'image-leap' } };
        world.kube.seed(images, { ...object, spec: { ...spec, backend: name as 'csi' } });
      });
      const messages: string[] = [];
      let begunAt = Infinity;
      world.kube.onChange(({ object }) => {
        if (object.metadata.name !== 'image-copy') return;
        const { volume, backingImage } = (object as HarvesterImage).status?.children ?? {};
        if (volume !== undefined || backingImage !== undefined) begunAt = Math.min(begunAt, world.elapsed());
        const ready = (object as HarvesterImage).status?.conditions?.find(({ type }) => type === 'Ready');
        if (ready !== undefined) messages.push(`${ready.reason}: ${ready.message}`);
      });
      const copy = await make(world, 'image-copy', cloneOf('image-leap'));
      expect(messages.join('\n')).toContain('image default/image-leap');
      // Reconciled by the link: the next tick is at three minutes.
      expect(begunAt).toBeLessThan(175_000);
      expect(copy.status?.phase).toBe('Imported');
    });

    it.runIf(takes('clone')).each(Object.entries(localClasses))(
      'of an image keep it until they are complete, on storage that %s',
      async (_what, storage) => {
        const world = begin(storage);
        await make(world, 'image-leap', {});
        let whenDeleted: string | undefined;
        const left: (string | undefined)[] = [];
        world.kube.onChange(({ type, object }) => {
          if (object.kind !== images.kind) return;
          const { phase, children = {} } = (object as HarvesterImage).status ?? {};
          const isBegun = children.volume !== undefined || children.backingImage !== undefined;
          if (object.metadata.name === 'image-copy' && isBegun && whenDeleted === undefined) {
            whenDeleted = phase;
            world.schedule(world.elapsed(), () => void world.kube.delete(images, { namespace, name: 'image-leap' }));
          }
          if (object.metadata.name === 'image-leap' && type === 'DELETED')
            left.push(imageNamed(world, 'image-copy')?.status?.phase);
        });
        const copy = await make(world, 'image-copy', cloneOf('image-leap'));
        expect(whenDeleted).not.toBe('Imported');
        expect(copy.status).toMatchObject({ phase: 'Imported', failed: 0 });
        expect(isFilled(world, copy)).toBe(true);
        expect(left).toEqual(['Imported']);
      },
    );

    it.runIf(takes('export-from-volume')).each(Object.entries(localClasses))(
      'of a disk keep it from being deleted meanwhile, on storage that %s',
      async (_what, storage) => {
        const world = begin(storage);
        seedDisk(world, storage.storageClass);
        const marks: unknown[] = [];
        world.kube.onChange(({ object }) => {
          if (object.metadata.name === 'disk') marks.push(object.metadata.labels?.['bullion.dev/exporting']);
        });
        const image = await make(world, 'image-disk', exportOf('disk'));
        expect(image.status).toMatchObject({ phase: 'Imported', failed: 0 });
        expect(isFilled(world, image)).toBe(true);
        expect(marks).toContain(image.metadata.uid);
      },
    );

    // Copies of volumes in use are up to Longhorn.
    it.runIf(takes('export-from-volume') && backend.needs === undefined).each(Object.entries(localClasses))(
      'of a disk in use are snapshots, or wait and report its user, on storage that %s',
      async (_what, storage) => {
        const world = begin(storage);
        seedDisk(world, storage.storageClass);
        const guest = { namespace, name: 'guest' };
        world.kube.seed(pods, {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: guest,
          spec: {
            containers: [{ name: 'guest' }],
            volumes: [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }],
          },
          status: { phase: 'Running' },
        } as unknown as Pod);
        const made = await make(world, 'image-disk', exportOf('disk'));
        const ready = made.status?.conditions?.find(({ type }) => type === 'Ready');
        expect(`${ready?.reason}: ${ready?.message}`).toMatch(/^Ready: |in use by pod guest/);
        await world.kube.delete(pods, guest);
        await world.run(world.elapsed() + hours);
        expect(imageNamed(world, 'image-disk')?.status?.phase).toBe('Imported');
      },
    );

    it.runIf(takes('clone'))('are encrypted when the storage supports it, and rejected by name otherwise', async () => {
      const world = begin(localClasses['binds at once and takes snapshots']!);
      await make(world, 'image-leap', {});
      const asked = { ...cloneOf('image-leap', 'encrypt'), storageClassParameters: secret };
      const image = await make(world, 'image-secret', asked);
      const ready = image.status?.conditions?.find(({ type }) => type === 'Ready');
      const isEncrypted = JSON.stringify(world.kube.all(backingImages)).includes('"encryption":"encrypt"');
      const { encrypts = false } = backend.capabilities;
      expect(isEncrypted).toBe(encrypts);
      expect(image.status?.phase).toBe(encrypts ? 'Imported' : 'Failed');
      expect(ready?.message).toMatch(encrypts ? /ready/ : /makes plain copies and cannot encrypt/);
    });

    it('report the size of their disk, when the status does not have it yet', async () => {
      const world = begin(localClasses['binds at once and takes snapshots']!);
      const image = harvesterImages.toImage(await make(world, 'image-leap', {}));
      const { inspection, ...state } = image.state;
      const bare = { ...image, state };
      const filled = backend.updateVirtualSize(bare, await backend.check(world.kube, bare));
      expect(filled?.inspection?.virtualSize).toBe(inspection?.virtualSize);
    });
  });

  /** A disk of a stopped machine, with the storage that the backend requires. */
  const seedDisk = ({ kube, cluster }: World, { metadata: { name: className }, provisioner }: StorageClass): void => {
    const driver = backend.needs === undefined ? provisioner : 'driver.longhorn.io';
    const claim = kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: {
        namespace,
        name: 'disk',
        annotations: { 'volume.kubernetes.io/storage-provisioner': driver },
      },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: className,
        volumeName: 'pv-disk',
        resources: { requests: { storage: '2Gi' } },
      },
      status: { phase: 'Bound', capacity: { storage: '2Gi' } },
    } as PersistentVolumeClaim);
    kube.seed(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'pv-disk' },
      spec: { csi: { driver, volumeHandle: 'pv-disk' } },
    } as never);
    (cluster.contents as Map<string, { isFilled: boolean; writers: number }>).set(claim.metadata.uid!, {
      isFilled: true,
      writers: 1,
    });
  };
};
