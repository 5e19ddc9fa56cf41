// Disks of virtual machines as written by clients of Harvester: the objects for each template, by the existing ones.
import { beforeEach, describe, expect, it } from 'vitest';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { subjectAccessReviews } from '#shared/api/foreign/kubernetes.ts';
import { kubeEvents, persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { virtualMachines } from '#shared/api/foreign/kubevirt.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations, finalizers } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { handleObjectEvent } from '#shared/resources/handle.ts';
import { holdMachine, releaseMachine } from '#shared/resources/machine-disks/hold.ts';
import { sweepMachines } from '#shared/resources/machine-disks/sync.ts';
import { aHarvesterImage, aVolume } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import type { MemoryKube } from '#test/support/memory-kube.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

type Backend = 'csi' | 'cdi' | 'backingimage';

let kube: MemoryKube;
let deps: ReconcileDeps;
let time: number;

beforeEach(() => {
  const driver = createTestReconciler();
  kube = driver.kube;
  time = driver.now();
  deps = { ...driver, now: () => time };
});

const aTemplate = (name: string, imageId: string, storage = '10Gi', storageClassName?: string) => ({
  metadata: { name, annotations: imageId === '' ? {} : { [harvesterAnnotations.imageId]: imageId } },
  spec: {
    accessModes: ['ReadWriteMany'],
    volumeMode: 'Block',
    resources: { requests: { storage } },
    ...(storageClassName === undefined ? {} : { storageClassName }),
  },
});
const aMachine = (templates: readonly unknown[] | string, more: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: {
    name: 'web',
    namespace: 'default',
    creationTimestamp: new Date(time).toISOString(),
    annotations: {
      [harvesterAnnotations.claimTemplates]: typeof templates === 'string' ? templates : JSON.stringify(templates),
      ...more,
    },
  },
});
const eventAbout = (type: string, data: unknown) =>
  handleObjectEvent(deps, { specversion: '1.0', id: '1', source: 'test', type, data } as never);
/** An event about a machine contains only its name. */
const tell = ({ apiVersion, kind, metadata: { namespace, name } }: KubeObject) =>
  eventAbout('dev.knative.apiserver.ref.update', { apiVersion, kind, namespace, name });
const imageEventOf = (image: HarvesterImage) => eventAbout('dev.knative.apiserver.resource.update', image);
const seedMachine = (...args: Parameters<typeof aMachine>) => kube.seed(virtualMachines, aMachine(...args) as never);
const seedImage = (name: string, backend: Backend, status: object = {}, namespace = 'default'): HarvesterImage => {
  const image = aHarvesterImage();
  return kube.seed(harvesterImageKind.type, {
    ...image,
    metadata: { name, namespace, finalizers: image.metadata.finalizers ?? [] },
    spec: { ...image.spec, backend, displayName: name },
    status: { phase: 'Imported', storageClassName: 'lh-1', children: { volume: `of-${name}` }, ...status } as never,
  });
};
const claims = () => kube.all(persistentVolumeClaims);
const copies = () => kube.all(dataVolumeKind.type);
const said = () => kube.all(kubeEvents).map(({ reason, message }) => `${reason}: ${message}`);
const writes = () => kube.calls.filter(({ verb }) => !['get', 'list'].includes(verb));

describe('disks of a virtual machine', () => {
  it('are claims of its class when the storage clones them', async () => {
    seedImage('leap', 'backingimage');
    expect(await tell(seedMachine([aTemplate('web-root', 'default/leap')]))).toEqual({ kind: 'done' });
    expect(claims()).toMatchObject([
      {
        metadata: { name: 'web-root', annotations: { [harvesterAnnotations.imageId]: 'default/leap' } },
        spec: {
          storageClassName: 'lh-1',
          accessModes: ['ReadWriteMany'],
          resources: { requests: { storage: '10Gi' } },
        },
      },
    ]);
    expect(copies()).toEqual([]);
  });

  it('are data volumes of the golden volume, in the modes of their own class, when they are copied', async () => {
    seedImage('leap', 'cdi', { storageClassName: 'local' });
    await tell(seedMachine([aTemplate('web-root', 'default/leap')]));
    const [copy] = copies();
    expect(copy).toMatchObject({ metadata: { name: 'web-root', namespace: 'default' } });
    expect(copy?.spec).toEqual({
      source: { pvc: { namespace: 'default', name: 'leap' } },
      storage: { storageClassName: 'local', resources: { requests: { storage: '10Gi' } } },
    });
    expect(copy?.metadata.ownerReferences ?? []).toEqual([]);
  });

  it('are made from the snapshot of the golden volume when there is one, in the requested class', async () => {
    seedImage('leap', 'csi', { children: { volume: 'vmi-1', snapshot: 'vmi-1' } });
    await tell(seedMachine([aTemplate('web-root', 'default/leap', '10Gi', 'fast')]));
    expect(copies()[0]?.spec).toMatchObject({
      source: { snapshot: { namespace: 'default', name: 'vmi-1' } },
      storage: { storageClassName: 'fast' },
    });
  });

  it('are empty claims without an image, as they are specified', async () => {
    await tell(seedMachine([aTemplate('web-data', '', '5Gi', 'local')]));
    expect(claims()[0]?.spec).toMatchObject({ storageClassName: 'local', volumeMode: 'Block' });
  });

  it('are created once, however often the event is sent', async () => {
    seedImage('leap', 'cdi');
    seedImage('tumbleweed', 'backingimage');
    const machine = seedMachine([aTemplate('a', 'default/leap'), aTemplate('b', 'default/tumbleweed')]);
    await tell(machine);
    const before = writes().length;
    for (let again = 0; again < 2; again += 1) await tell(machine);
    await sweepMachines(deps);
    expect(writes()).toHaveLength(before);
  });

  it('wait for their image, which reports it once and has them created when it is ready', async () => {
    const machine = seedMachine([aTemplate('web-root', 'default/leap')]);
    expect(await tell(machine)).toMatchObject({ kind: 'waiting' });
    await tell(machine);
    expect(said()).toEqual(['ImageNotFound: disk web-root waits for the image default/leap, which does not exist']);
    const image = seedImage('leap', 'cdi', { phase: 'Importing' });
    await tell(machine);
    expect(said()[1]).toMatch(/^ImageNotReady/);
    expect(copies()).toEqual([]);
    kube.edit(harvesterImageKind.type, image.metadata, (edited) => {
      edited.status = { ...edited.status, phase: 'Imported', observedGeneration: 1, announced: 'Available/1/0/' };
    });
    await imageEventOf((await kube.get(harvesterImageKind.type, image.metadata))!);
    expect(copies()).toHaveLength(1);
  });

  it('of an image of another namespace are subject to the permission to use it there', async () => {
    seedImage('leap', 'cdi', {}, 'images');
    let isAllowed = false;
    const create: MemoryKube['create'] = (type, object, options) =>
      type.plural === subjectAccessReviews.plural
        ? Promise.resolve({ ...object, status: { allowed: isAllowed } })
        : kube.create(type, object, options);
    deps = { ...deps, kube: { ...kube, create } };
    const machine = seedMachine([aTemplate('web-root', 'images/leap')]);
    await tell(machine);
    expect(said()).toEqual([expect.stringMatching(/^ImageNotAllowed: .*system:serviceaccounts:default/)]);
    expect(copies()).toEqual([]);
    isAllowed = true;
    await tell(machine);
    expect(JSON.parse(copies()[0]?.metadata.annotations?.[annotations.granted] ?? '')).toEqual([
      { use: 'clone-claim', namespace: 'images', name: 'leap' },
    ]);
  });

  it('grow with the requested size, when their class supports it', async () => {
    kube.edit(storageClasses, { name: 'local' }, (edited) => {
      Object.assign(edited, { allowVolumeExpansion: true });
    });
    kube.seed(
      persistentVolumeClaims,
      aVolume({ metadata: { name: 'web-root', namespace: 'default' }, status: { phase: 'Bound' } }),
    );
    const request = () => claims()[0]?.spec.resources?.requests?.['storage'];
    const before = request();
    await tell(seedMachine([aTemplate('web-root', 'default/leap', '1Mi')]));
    expect(request()).toBe(before);
    kube.edit(virtualMachines, { namespace: 'default', name: 'web' }, (edited) => {
      edited.metadata.annotations = aMachine([aTemplate('web-root', 'default/leap', '900Gi')]).metadata.annotations!;
    });
    await sweepMachines(deps);
    expect(request()).toBe('900Gi');
    kube.edit(storageClasses, { name: 'local' }, (edited) => {
      Object.assign(edited, { allowVolumeExpansion: false });
    });
    kube.edit(virtualMachines, { namespace: 'default', name: 'web' }, (edited) => {
      edited.metadata.annotations = aMachine([aTemplate('web-root', 'default/leap', '990Gi')]).metadata.annotations!;
    });
    await sweepMachines(deps);
    expect(request()).toBe('900Gi');
    expect(said().at(-1)).toMatch(/^DiskCannotGrow/);
  });

  it('are deleted with it when that is configured, the data volume and not its claim', async () => {
    seedImage('leap', 'cdi');
    seedImage('tumbleweed', 'backingimage');
    const machine = seedMachine(
      [
        aTemplate('copied', 'default/leap'),
        aTemplate('shared', 'default/tumbleweed'),
        aTemplate('kept', '', '1Gi', 'local'),
      ],
      { [harvesterAnnotations.removedClaims]: 'copied, shared,leap' },
    );
    await tell(machine);
    const golden = { name: 'leap', namespace: 'default', annotations: { [harvesterAnnotations.goldenImage]: 'true' } };
    kube.seed(persistentVolumeClaims, aVolume({ metadata: golden }));
    kube.seed(persistentVolumeClaims, aVolume({ metadata: { name: 'copied', namespace: 'default' } }));
    expect(copies()).toHaveLength(1);
    await kube.delete(virtualMachines, { namespace: 'default', name: 'web' });
    await tell(machine);
    expect(copies()).toEqual([]);
    expect(
      claims()
        .map(({ metadata }) => metadata.name)
        .toSorted(),
    ).toEqual(['copied', 'kept', 'leap']);
  });

  it('are deleted with it although its deletion event is lost, and release it afterwards', async () => {
    seedImage('leap', 'cdi');
    const machine = seedMachine([aTemplate('web-root', 'default/leap'), aTemplate('web-data', '', '1Gi', 'local')]);
    await tell(machine);
    const key = { namespace: 'default', name: 'web' };
    kube.edit(virtualMachines, key, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [harvesterAnnotations.removedClaims]: 'web-root,web-data' };
    });
    // There is no event for either change; the tick follows hours later.
    await kube.delete(virtualMachines, key);
    time += 7_200_000;
    expect(await kube.get(virtualMachines, key)).toBeDefined();
    await sweepMachines(deps);
    expect(copies()).toEqual([]);
    expect(claims().filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toEqual([]);
    expect(await kube.get(virtualMachines, key)).toBeUndefined();
  });

  it('keep their finalizer on the machine together with others, however often it is written', async () => {
    const machine = seedMachine([aTemplate('web-data', '', '1Gi', 'local')]);
    const key = { namespace: 'default', name: 'web' };
    kube.edit(virtualMachines, key, ({ metadata }) => void (metadata.finalizers = ['kubevirt.io/controller']));
    await holdMachine(kube, machine);
    expect((await kube.get(virtualMachines, key))?.metadata.finalizers).toEqual([
      'kubevirt.io/controller',
      finalizers.machine,
    ]);
    await releaseMachine(kube, machine);
    await releaseMachine(kube, (await kube.get(virtualMachines, key))!);
    expect((await kube.get(virtualMachines, key))?.metadata.finalizers).toEqual(['kubevirt.io/controller']);
  });

  it('are not created when the annotation is invalid, or when the machine existed before', async () => {
    await tell(seedMachine('{'));
    expect(writes()).toEqual([]);
    await kube.delete(virtualMachines, { namespace: 'default', name: 'web' });
    seedMachine([aTemplate('web-data', '', '5Gi', 'local')]);
    time += 7_200_000;
    await sweepMachines(deps);
    expect(claims()).toEqual([]);
  });

  it('add a finalizer to an existing machine within a minute, for its later deletion', async () => {
    const key = { namespace: 'default', name: 'web' };
    seedMachine([aTemplate('web-data', '', '5Gi', 'local')]);
    time += 7_200_000;
    await sweepMachines(deps);
    expect((await kube.get(virtualMachines, key))?.metadata.finalizers).toEqual([finalizers.machine]);
    const before = writes().length;
    await sweepMachines(deps);
    expect(writes()).toHaveLength(before);
  });
});
