// One pass over one image: what is read, what is written, and what is returned to the sender of an event.
import { beforeEach, describe, expect, it } from 'vitest';
import { jobs, kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { annotations, finalizers, labels } from '#shared/api/names.ts';
import { type KubeObject, refOf, type ResourceType, sourceLabel } from '#shared/api/object.ts';
import { removeAbandoned } from '#shared/populate/job/start-transfer.ts';
import { backends } from '#shared/backends/registry.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { toKubeEvent } from '#shared/resources/transitions.ts';
import { reconcilers } from '#shared/resources/registry.ts';
import { sweep } from '#shared/resources/sweep.ts';
import { Conflict, Denied, InvalidInput, Unavailable } from '#shared/runtime/errors.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import {
  aHarvesterImage,
  aHyperCloudImage,
  aStorageClass,
  aVolume,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import { type MemoryKube, createMemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';
import { nothingElse } from '#test/support/reconcile.ts';

const clouds = hyperCloudImageKind.type;
const key = { namespace: 'default', name: 'ubuntu' };
const sized = aHyperCloudImage({
  spec: {
    source: { http: 'https://images.example/ubuntu.img' },
    pvc: { resources: { requests: { storage: '3Gi' } }, storageClassName: 'local' },
  },
});

let kube: MemoryKube;
let clock: number;
let deps: ReconcileDeps;

beforeEach(() => {
  clock = testTime;
  kube = createMemoryKube({ now: () => clock });
  kube.seed(storageClasses, aStorageClass());
  deps = { ...nothingElse, kube, backends, settings: testSettings, now: () => clock, log: silentLogger };
});

const imageNow = async () => (await kube.get(clouds, key))!;
const reconcileOne = (object: HyperCloudImage | HarvesterImage) => reconcile(deps, refOf(object));
const writesOf = () =>
  kube.calls.filter(({ verb }) => !['get', 'list'].includes(verb)).map(({ verb, resource }) => `${verb} ${resource}`);

describe('reconcile', () => {
  it.each([
    ['an image of HyperCloud', clouds, sized],
    ['an image of Harvester', harvesterImageKind.type, aHarvesterImage({ metadata: key })],
  ])('records its decision on %s although others keep changing its labels', async (_what, type, object) => {
    const seeded = kube.seed<KubeObject>(type, object);
    let disturbances = 0;
    const disturbed = {
      ...kube,
      replace: (...args: Parameters<typeof kube.replace>) => {
        if (disturbances < 3) {
          disturbances += 1;
          kube.edit<KubeObject>(
            type,
            seeded.metadata,
            ({ metadata }) => void (metadata.labels = { count: String(disturbances) }),
          );
        }
        return kube.replace(...args);
      },
    } as typeof kube;
    await reconcile({ ...deps, kube: disturbed }, refOf(seeded));
    const written = (await kube.get(
      type as unknown as ResourceType<KubeObject & { status?: object }>,
      seeded.metadata,
    ))!;
    expect([written.metadata.labels, written.status !== undefined]).toEqual([{ count: '3' }, true]);
    // The object was read again for it, and nothing else.
    const others = kube.calls.filter((call) => call.verb === 'get' && call.resource !== type.plural);
    const lookups = others.map((call) => JSON.stringify(call));
    expect(lookups).toEqual([...new Set(lookups)]);
  });

  it('adds the finalizer, creates its children, and then writes the status once', async () => {
    const outcome = await reconcileOne(kube.seed(clouds, sized));
    expect(outcome).toEqual({ kind: 'waiting', for: 'the transfer is being started' });
    expect(writesOf()).toEqual([
      'patch virtualmachineimages',
      'create persistentvolumeclaims',
      'create jobs',
      'create secrets',
      'patch jobs',
      'replace virtualmachineimages/status',
    ]);
    expect(await imageNow()).toMatchObject({
      metadata: { finalizers: [finalizers.image] },
      status: { state: 'Creating', phase: 'Pending', observedGeneration: 1 },
    });
  });

  it('writes nothing when nothing changed', async () => {
    const image = kube.seed(clouds, sized);
    await reconcileOne(image);
    const before = writesOf().length;
    clock += 30_000;
    await reconcileOne(image);
    expect(writesOf()).toHaveLength(before);
  });

  it('is done with an image that was deleted, or replaced by another one of the same name', async () => {
    expect(await reconcile(deps, { ...refOf(sized), uid: 'x' })).toEqual({ kind: 'done' });
    kube.seed(clouds, sized);
    expect(await reconcile(deps, { ...refOf(sized), uid: 'that of an earlier one' })).toEqual({ kind: 'done' });
    expect(writesOf()).toEqual([]);
  });

  it('reads again after a conflict', async () => {
    const image = kube.seed(clouds, sized);
    kube.failNext({ verb: 'replace' }, { error: new Conflict('modified'), when: 'before' });
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting' });
    expect((await imageNow()).status?.phase).toBe('Pending');
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('requests another delivery when the conflicts do not end', async () => {
    const image = kube.seed(clouds, sized);
    for (let round = 0; round < 30; round += 1) {
      kube.failNext({ verb: 'replace' }, { error: new Conflict('modified'), when: 'before' });
    }
    expect(await reconcileOne(image)).toMatchObject({ kind: 'retry' });
  });

  it('throws when the API is down, so that the event is delivered again', async () => {
    const image = kube.seed(clouds, sized);
    kube.failNext({ verb: 'create', resource: 'jobs' }, { error: new Unavailable('down'), when: 'after' });
    await expect(reconcileOne(image)).rejects.toThrow(Unavailable);
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting' });
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('gives a restarted transfer the full time when its earlier start was interrupted', async () => {
    const image = kube.seed(clouds, sized);
    kube.failNext({ verb: 'patch', resource: 'jobs' }, { error: new Unavailable('down'), when: 'before' });
    kube.failNext({ verb: 'delete', resource: 'jobs' }, { error: new Unavailable('down'), when: 'before' });
    await expect(reconcileOne(image)).rejects.toThrow(Unavailable);
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting' });
    clock += testSettings.childSeconds * 1000;
    await removeAbandoned(kube, clock);
    kube.collectGarbage();
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting' });
    expect(kube.all(jobs).map(({ spec: { suspend } }) => suspend)).toEqual([false]);
  });

  it('starts no transfer for an image that fails in the same pass', async () => {
    const image = kube.seed(clouds, sized);
    await reconcileOne(image);
    for (const job of kube.all(jobs))
      await kube.delete(jobs, job.metadata, { uid: job.metadata.uid!, propagation: 'Background' });
    clock += testSettings.childSeconds * 1000;
    expect(await reconcileOne(image)).toMatchObject({ kind: 'failed', reason: 'Starting' });
    expect(kube.all(jobs)).toEqual([]);
  });

  it.each([
    ['a quota', new Denied('exceeded quota: storage'), 'ApiDenied'],
    ['a rule of the cluster', new InvalidInput('spec.resources: too large'), 'ApiInvalidInput'],
  ])('reports a rejection by %s to the user, and fails after its deadline', async (_name, error, reason) => {
    const image = kube.seed(clouds, sized);
    const refuse = () =>
      kube.failNext({ verb: 'create', resource: 'persistentvolumeclaims' }, { error, when: 'before' });
    refuse();
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting', for: expect.stringContaining(error.message) });
    expect((await imageNow()).status?.conditions?.find(({ type }) => type === 'Ready')).toMatchObject({ reason });
    clock += testSettings.childSeconds * 1000;
    refuse();
    expect(await reconcileOne(image)).toMatchObject({ kind: 'failed', reason });
  });

  it('fails an image that bypassed admission, with the error of every field', async () => {
    const image = kube.seed(clouds, aHyperCloudImage({ spec: { source: { http: 'ftp://a/b' }, checksum: 'md5:1' } }));
    const outcome = await reconcileOne(image);
    expect(outcome).toMatchObject({ kind: 'failed', reason: 'InvalidSpec' });
    expect(outcome).toMatchObject({ message: expect.stringMatching(/spec\.source\.http.*spec\.checksum/) });
    expect(kube.all(jobs)).toEqual([]);
  });

  it('fails an image from an object store when none is configured, and accepts it when one is', async () => {
    const source = { objectStore: { bucketName: 'vmimage', objectName: 'disk.img' } };
    const image = kube.seed(clouds, { ...sized, spec: { ...sized.spec, source } });
    expect(await reconcileOne(image)).toMatchObject({
      kind: 'failed',
      reason: 'InvalidSpec',
      message: expect.stringContaining('OBJECT_STORE_ENDPOINT'),
    });
    const objectStore = { endpoint: 'https://s3.example', region: 'us-east-1', pathStyle: true };
    const configured = { ...deps, settings: { ...deps.settings, objectStore } };
    expect(await reconcile(configured, refOf(image), { which: 'all' })).toMatchObject({ kind: 'waiting' });
    expect(kube.all(jobs)).toHaveLength(1);
  });

  it('fails an image whose backend is not served, and names the one to use', async () => {
    const object = aHarvesterImage();
    const image = kube.seed(harvesterImageKind.type, {
      ...object,
      spec: { ...object.spec, backend: 'tape' as never },
    });
    expect(await reconcileOne(image)).toMatchObject({
      kind: 'failed',
      reason: 'BackendUnavailable',
      message: expect.stringContaining('write one of backingimage, cdi, csi'),
    });
  });

  it('starts an image whose errors were corrected', async () => {
    const image = kube.seed(clouds, aHyperCloudImage({ spec: { ...sized.spec, checksum: 'md5:1' } }));
    await reconcileOne(image);
    kube.edit(clouds, key, (edited) => void delete edited.spec.checksum);
    expect(await reconcileOne(image)).toMatchObject({ kind: 'waiting' });
    expect(kube.all(jobs)).toHaveLength(1);
    expect((await imageNow()).status).toMatchObject({ phase: 'Pending', state: 'Creating' });
  });

  it('reports why a child does not progress, with the message of the cluster', async () => {
    const image = kube.seed(clouds, sized);
    await reconcileOne(image);
    const [volume] = kube.all(persistentVolumeClaims);
    const note = { type: 'Warning', reason: 'ProvisioningFailed', message: 'the pool is full' } as const;
    kube.seed(kubeEvents, { ...toKubeEvent(refOf(volume!), { ...note, occurrence: '1' }, '2026-01-02T03:04:06Z') });
    expect(await reconcileOne(image)).toEqual({
      kind: 'waiting',
      for: 'PersistentVolumeClaim ubuntu-image-pvc: the pool is full',
    });
  });

  it('does not delete an image while it is being cloned, and reports for which volume', async () => {
    const finalized = { name: 'ubuntu', namespace: 'default', finalizers: [finalizers.image] };
    const image = kube.seed(clouds, { ...sized, metadata: finalized });
    const volume = kube.seed(virtualMachineVolumeKind.type, {
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineVolume',
      metadata: {
        name: 'disk',
        namespace: 'default',
        labels: {
          [labels.source]: sourceLabel({
            groupKind: 'VirtualMachineImage.hypercloud.tmaxanc.com',
            namespace: 'default',
            name: 'ubuntu',
          }),
        },
      },
      spec: { virtualMachineImage: { name: 'ubuntu' } },
      status: { phase: 'Cloning', children: { volume: 'disk-vmv-pvc' } },
    });
    await kube.delete(clouds, key);
    expect(await reconcileOne(image)).toEqual({
      kind: 'waiting',
      for: expect.stringContaining('VirtualMachineVolume disk') as string,
    });
    expect((await imageNow()).status?.conditions?.find(({ type }) => type === 'Ready')?.reason).toBe('BeingCloned');
    kube.edit(virtualMachineVolumeKind.type, refOf(volume), (edited) => {
      edited.status = { phase: 'Available' };
    });
    expect(await reconcileOne(image)).toEqual({ kind: 'done' });
    expect(await kube.get(clouds, key)).toBeUndefined();
  });

  it('ignores the kinds of an installed CDI', async () => {
    const object = kube.seed(dataVolumeKind.type, {
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { namespace: 'default', name: 'theirs' },
      spec: {
        source: { blank: {} },
        storage: { storageClassName: 'local', resources: { requests: { storage: '1Gi' } } },
      },
    });
    expect(await reconcile({ ...deps, cdi: () => Promise.resolve('use') }, refOf(object))).toEqual({ kind: 'done' });
    expect(kube.all(persistentVolumeClaims)).toEqual([]);
    expect(await reconcile(deps, refOf(object))).toMatchObject({ kind: 'waiting' });
    expect(kube.all(persistentVolumeClaims)).toHaveLength(1);
  });

  it('never adopts a volume of another owner', async () => {
    kube.seed(
      persistentVolumeClaims,
      aVolume({ metadata: { name: 'ubuntu-image-pvc', namespace: 'default', labels: {} } }),
    );
    const image = kube.seed(clouds, sized);
    expect(await reconcileOne(image)).toMatchObject({
      kind: 'waiting',
      for: expect.stringContaining('belongs to something else'),
    });
    await kube.delete(clouds, key);
    await reconcileOne(image);
    expect(await kube.get(clouds, key)).toBeUndefined();
    expect(kube.all(persistentVolumeClaims)).toHaveLength(1);
  });

  it('deletes the children of a deleted image before it removes its finalizer', async () => {
    const image = kube.seed(clouds, sized);
    await reconcileOne(image);
    await kube.delete(clouds, key);
    await reconcileOne(image);
    expect(kube.all(jobs)).toEqual([]);
    expect(kube.all(persistentVolumeClaims)).toEqual([]);
    expect(await imageNow()).toMatchObject({ status: { phase: 'Terminating' } });
    expect(await reconcileOne(image)).toEqual({ kind: 'done' });
    expect(await kube.get(clouds, key)).toBeUndefined();
  });

  it('does nothing for a deleted image that never had the finalizer', async () => {
    const image = kube.seed(clouds, { ...sized, metadata: { ...sized.metadata, finalizers: ['someone/else'] } });
    await kube.delete(clouds, key);
    expect(await reconcileOne(image)).toEqual({ kind: 'done' });
    expect(writesOf()).toEqual(['delete virtualmachineimages']);
  });

  it('announces a failure until it is delivered, and settles only then', async () => {
    const heard: string[] = [];
    let isUp = false;
    const announce: ReconcileDeps['announce'] = async (_image, { reason }) => {
      if (isUp) heard.push(reason);
      return isUp;
    };
    deps = { ...deps, announce };
    const image = kube.seed(clouds, aHyperCloudImage({ spec: { source: { http: 'ftp://a/b' } } }));
    expect(await reconcileOne(image)).toMatchObject({ kind: 'retry' });
    isUp = true;
    await reconcileOne(image);
    await reconcileOne(image);
    expect(heard).toEqual(['InvalidSpec']);
    const events = kube.all(kubeEvents);
    expect(events).toMatchObject([{ type: 'Warning', reason: 'InvalidSpec', involvedObject: { name: 'ubuntu' } }]);
  });

  it('acts on a retry annotation, and on each value once', async () => {
    const image = kube.seed(clouds, aHyperCloudImage({ spec: { source: { http: 'ftp://a/b' } } }));
    await reconcileOne(image);
    kube.edit(clouds, key, (edited) => void (edited.metadata.annotations = { [annotations.retry]: '1' }));
    await reconcileOne(image);
    expect((await imageNow()).status?.retryHandled).toBe('1');
    const before = kube.calls.length;
    await reconcileOne(image);
    expect(kube.calls.length - before).toBe(1);
  });
});

describe('sweep', () => {
  it('reconciles what is not settled, even if others fail', async () => {
    const first = kube.seed(clouds, sized);
    kube.seed(clouds, { ...sized, metadata: { name: 'second', namespace: 'default' } });
    kube.failNext(
      { verb: 'get', resource: 'virtualmachineimages', name: first.metadata.name },
      { error: new Unavailable('down'), when: 'before' },
    );
    expect(await sweep(deps)).toEqual({ kind: 'done' });
    expect(kube.all(jobs)).toHaveLength(1);
    await sweep(deps);
    expect(kube.all(jobs)).toHaveLength(2);
  });

  it('costs one page per kind when everything is settled', async () => {
    const image = kube.seed(clouds, aHyperCloudImage({ spec: { source: { http: 'ftp://a/b' } } }));
    await reconcileOne(image);
    const before = kube.calls.length;
    await sweep(deps);
    expect(kube.calls.slice(before).map(({ verb }) => verb)).toEqual(reconcilers.map(() => 'list'));
  });
});
