// What becomes of the bytes of deleted images where something else happens to them at the same moment, or limits of their namespace are in the way.
import { beforeEach, describe, expect, it } from 'vitest';
import { type TenantLimit, tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { type PersistentVolumeClaim, jobs, namespaces, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf, childMetadata, refOf } from '#shared/api/object.ts';
import { type Population, populatedMark } from '#shared/populate/population.ts';
import { listHolders, removePast } from '#shared/resources/deleted-images/keep.ts';
import { detach } from '#shared/resources/deleted-images/record.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { execute } from '#shared/resources/execute.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { createLimitsLook } from '#shared/resources/tenant-limit/applied.ts';
import { aHarvesterImage, aSuccess } from '#test/support/builders.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';

const { type } = harvesterImageKind;
let deps: ReconcileDeps & { readonly kube: MemoryKube };
let kube: MemoryKube;
beforeEach(() => {
  deps = createTestReconciler();
  kube = deps.kube;
  deps = { ...deps, limits: createLimitsLook(kube, () => Number.POSITIVE_INFINITY) };
});

const namespace = 'default';

/** What a deleted image has left: a volume that was filled. */
const seedLeft = async (name = 'image-leap', volume = 'left'): Promise<HarvesterImage> => {
  const image = aHarvesterImage();
  const old = {
    ...image,
    metadata: { ...image.metadata, name, uid: `old-${name}`, deletionTimestamp: '2026-11-30T10:00:00Z' },
  };
  const metadata = childMetadata(refOf(old), 'volume', volume);
  const { inspection, digests } = aSuccess() as Population;
  const marks = populatedMark({ inspection, digests });
  const object = kube.seed(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...metadata, annotations: { ...metadata.annotations, ...marks } },
    spec: { storageClassName: 'local', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
    status: { phase: 'Bound', capacity: { storage: '2Gi' } },
  } as PersistentVolumeClaim);
  await execute(kube, [
    detach(old, { type: persistentVolumeClaims, child: 'volume', object }, { grace: 3_600_000, bytes: 2 ** 30 }),
  ]);
  return { ...image, metadata: { namespace, name, annotations: { [annotations.undelete]: volume } } };
};
const left = async () => (await listHolders(kube)).map(({ object }) => object.metadata.name);
const pass = async (image: HarvesterImage) => {
  await reconcile(deps, refOf(image), { which: 'all' });
  const found = await kube.get(type, image.metadata);
  return JSON.stringify(found?.status);
};
const limit = (spec: Partial<TenantLimit['spec']>): TenantLimit => {
  kube.seed(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: {} } });
  return kube.seed(tenantLimitKind.type, {
    apiVersion: apiVersionOf(tenantLimitKind.type),
    kind: 'TenantLimit',
    metadata: { name: 'limit' },
    spec: { namespaceSelector: {}, ...spec },
  });
};

const lift = (): Promise<void> => kube.delete(tenantLimitKind.type, { name: 'limit' });
const now = async (image: HarvesterImage) => {
  const { status } = (await kube.get(type, image.metadata)) ?? {};
  const ready = status?.conditions?.find((one) => one.type === 'Ready');
  return { reason: ready?.reason, volume: status?.children?.volume };
};
const jobsOf = () => kube.all(jobs).length;

describe.each<[reason: string, spec: Partial<TenantLimit['spec']>]>([
  ['QuotaReached', { quota: { images: 0 } }],
  ['SourceNotAllowed', { sources: { allow: [] } }],
  ['StorageClassNotAllowed', { storageClasses: { allow: [] } }],
])('an image that is brought back under a limit, with %s', (reason, spec) => {
  it('waits as long as the limit says, and loses nothing', async () => {
    const image = kube.seed(type, await seedLeft());
    limit(spec);
    for (let round = 0; round < 3; round += 1) {
      await pass(image);
      await removePast({ ...deps, now: () => Number.POSITIVE_INFINITY });
      expect(await now(image)).toEqual({ reason, volume: 'left' });
    }
    await lift();
    await pass(image);
    expect({ ...(await now(image)), jobs: jobsOf() }).toEqual({ reason: 'Snapshotting', volume: 'left', jobs: 0 });
  });

  it('leaves its bytes for another try if it is deleted', async () => {
    const image = kube.seed(type, await seedLeft());
    limit(spec);
    await pass(image);
    expect(await left()).toEqual([]);
    await kube.delete(type, image.metadata);
    await pass(image);
    expect(await kube.get(type, image.metadata)).toBeUndefined();
    expect(await left()).toEqual(['left']);
  });
});

describe('the end of the time', () => {
  it('does not take the bytes of an image that was brought back meanwhile', async () => {
    const image = kube.seed(type, await seedLeft());
    // Brought back between the listing and the deletion.
    const late = {
      ...kube,
      listAll: async function* listAll(...asked: Parameters<typeof kube.listAll>) {
        const found = await Array.fromAsync(kube.listAll(...asked));
        if (found.length > 0) await pass(image);
        yield* found;
      } as typeof kube.listAll,
    };
    await removePast({ ...deps, kube: late, now: () => Number.POSITIVE_INFINITY });
    expect(kube.all(persistentVolumeClaims).map(({ metadata }) => metadata.name)).toEqual(['left']);
    await pass(image);
    expect(await now(image)).toEqual({ reason: 'Snapshotting', volume: 'left' });
  });
});
