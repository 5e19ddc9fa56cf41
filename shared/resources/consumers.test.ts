// Which disks were made from which image: every way in which a disk records its source, and which of them contain an earlier version.
import { describe, expect, it } from 'vitest';
import { annotations } from '#shared/api/names.ts';
import { type KubeObject, childMetadata, refOf } from '#shared/api/object.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { VirtualMachine } from '#shared/api/foreign/kubevirt.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { type Inventory, consumersOf, offeredTo } from '#shared/resources/consumers.ts';
import { outdatedDisks } from '#shared/resources/outdated-disks.ts';

const cdi = 'cdi.kubevirt.io/v1beta1';
const hyperCloud = 'hypercloud.tmaxanc.com/v1alpha1';
const harvester = 'harvesterhci.io/v1beta1';

const object = (
  apiVersion: string,
  kind: string,
  name: string,
  rest: object = {},
  metadata: object = {},
): KubeObject => ({
  apiVersion,
  kind,
  metadata: { namespace: 'vms', name, uid: `uid-${kind}-${name}`, ...metadata },
  ...rest,
});

const populated = (digest: string) =>
  JSON.stringify({
    inspection: { format: 'raw', compression: 'none' },
    digests: { sha256: digest },
  });

const claim = (name: string, spec: object = {}, metadata: object = {}): PersistentVolumeClaim =>
  object('v1', 'PersistentVolumeClaim', name, { spec }, metadata) as PersistentVolumeClaim;

const filled = (name: string, digest: string, metadata: object = {}): PersistentVolumeClaim =>
  claim(name, {}, { annotations: { [annotations.populated]: populated(digest) }, ...metadata });

const inventory = (some: Partial<Inventory>): Inventory => ({
  objects: [],
  claims: [],
  snapshots: [],
  machines: [],
  ...some,
});

const machine = (name: string, ...volumes: object[]): VirtualMachine =>
  object('kubevirt.io/v1', 'VirtualMachine', name, { spec: { template: { spec: { volumes } } } }) as VirtualMachine;

const names = (target: KubeObject, all: Inventory): readonly string[] =>
  consumersOf(target, all).map(({ object: { kind, metadata } }) => `${kind}/${metadata.name}`);

const hyperCloudImage = object(hyperCloud, 'VirtualMachineImage', 'fedora', {
  spec: { source: { http: 'http://files/x' } },
  status: { detail: { children: { volume: 'fedora-image-pvc', snapshot: 'fedora-image-snapshot' } } },
});
const harvesterImage = object(harvester, 'VirtualMachineImage', 'jammy', {
  spec: { displayName: 'jammy', sourceType: 'download', url: 'http://files/x', backend: 'csi' },
});
const goldenVolume = object(cdi, 'DataVolume', 'golden', { spec: { source: { blank: {} }, storage: {} } });
const pointer = object(cdi, 'DataSource', 'pointer', {
  spec: { source: { pvc: { namespace: 'vms', name: 'golden' } } },
});

const offered = object(
  cdi,
  'DataSource',
  'offered',
  { spec: { source: { pvc: { namespace: 'vms', name: 'golden' } } } },
  { annotations: { [annotations.offeredBy]: 'golden-images/offered' } },
);

describe('consumers', () => {
  it.each<[string, KubeObject, Partial<Inventory>, readonly string[]]>([
    [
      'no volume that stores the image itself',
      harvesterImage,
      {
        objects: [
          object(
            cdi,
            'DataVolume',
            'jammy',
            { spec: { source: { blank: {} }, storage: {} } },
            {
              ...childMetadata(refOf(harvesterImage), 'volume', 'jammy'),
              annotations: {
                ...childMetadata(refOf(harvesterImage), '', '').annotations,
                'harvesterhci.io/imageId': 'vms/jammy',
              },
            },
          ),
        ],
      },
      [],
    ],
    [
      'a volume made from an image by its name',
      hyperCloudImage,
      {
        objects: [
          object(hyperCloud, 'VirtualMachineVolume', 'root', { spec: { virtualMachineImage: { name: 'fedora' } } }),
        ],
      },
      ['VirtualMachineVolume/root'],
    ],
    [
      'an image that is a copy of another one',
      harvesterImage,
      {
        objects: [
          object(harvester, 'VirtualMachineImage', 'encrypted', {
            spec: {
              displayName: 'encrypted',
              sourceType: 'clone',
              backend: 'backingimage',
              securityParameters: { cryptoOperation: 'encrypt', sourceImageName: 'jammy', sourceImageNamespace: 'vms' },
            },
          }),
        ],
      },
      ['VirtualMachineImage/encrypted'],
    ],
    [
      'a claim that names the image in the annotation of Harvester',
      harvesterImage,
      { claims: [claim('root', {}, { annotations: { 'harvesterhci.io/imageId': 'vms/jammy' } })] },
      ['PersistentVolumeClaim/root'],
    ],
    [
      'a DataVolume cloned from a claim',
      goldenVolume,
      {
        objects: [
          object(cdi, 'DataVolume', 'root', {
            spec: { source: { pvc: { namespace: 'vms', name: 'golden' } }, storage: {} },
          }),
        ],
      },
      ['DataVolume/root'],
    ],
    [
      'a claim cloned by the storage',
      goldenVolume,
      { claims: [claim('root', { dataSource: { kind: 'PersistentVolumeClaim', name: 'golden' } })] },
      ['PersistentVolumeClaim/root'],
    ],
    [
      'a disk made through a DataSource, and the DataSource',
      goldenVolume,
      {
        objects: [
          pointer,
          object(cdi, 'DataVolume', 'root', {
            spec: { sourceRef: { kind: 'DataSource', name: 'pointer' }, storage: {} },
          }),
        ],
      },
      ['DataSource/pointer', 'DataVolume/root'],
    ],
    [
      'disks of a namespace that it is offered to, and no DataSource there',
      goldenVolume,
      {
        objects: [
          offered,
          object(cdi, 'DataVolume', 'root', {
            spec: { sourceRef: { kind: 'DataSource', name: 'offered' }, storage: {} },
          }),
        ],
      },
      ['DataVolume/root'],
    ],
    [
      'a namesake in another namespace is not meant',
      goldenVolume,
      {
        objects: [
          object(cdi, 'DataVolume', 'root', {
            spec: { source: { pvc: { namespace: 'others', name: 'golden' } }, storage: {} },
          }),
        ],
      },
      [],
    ],
    [
      'images of one server are not made from each other',
      hyperCloudImage,
      {
        objects: [object(hyperCloud, 'VirtualMachineImage', 'twin', { spec: { source: { http: 'http://files/x' } } })],
      },
      [],
    ],
  ])('%s', (_what, target, some, expected) => {
    const all = inventory({ ...some, objects: [target, ...(some.objects ?? [])] });
    expect(names(target, all)).toEqual(expected);
  });

  it('are exports that read it, until they have ended', () => {
    const root = claim('root');
    const exported = (name: string, status?: object): KubeObject =>
      object(hyperCloud, 'VirtualMachineVolumeExport', name, {
        spec: { pvcName: 'root', destination: { local: {} } },
        status,
      });
    const objects = [
      exported('new'),
      exported('going', { state: 'Creating' }),
      exported('over', { state: 'Completed' }),
      exported('failed', { state: 'Error' }),
    ];
    expect(names(root, inventory({ claims: [root], objects }))).toEqual([
      'VirtualMachineVolumeExport/going',
      'VirtualMachineVolumeExport/new',
    ]);
  });

  it('are not the namespaces that it is offered to', () => {
    expect(offeredTo(goldenVolume, inventory({ objects: [goldenVolume, pointer, offered] }))).toEqual(['vms']);
  });

  it('count a claim and the object that created it once, with the machines that mount it', () => {
    const root = object(cdi, 'DataVolume', 'root', {
      spec: { source: { pvc: { namespace: 'vms', name: 'golden' } }, storage: {} },
    });
    const its = claim(
      'root',
      { dataSource: { kind: 'PersistentVolumeClaim', name: 'golden' } },
      { ownerReferences: [{ apiVersion: cdi, kind: 'DataVolume', name: 'root', uid: root.metadata.uid! }] },
    );
    const all = inventory({
      objects: [goldenVolume, root],
      claims: [its],
      machines: [machine('web', { dataVolume: { name: 'root' } }), machine('db', { dataVolume: { name: 'other' } })],
    });
    expect(consumersOf(goldenVolume, all).map(({ object: { kind }, machines }) => ({ kind, machines }))).toEqual([
      { kind: 'DataVolume', machines: ['web'] },
    ]);
  });
});

describe('outdated disks', () => {
  const cron = { labels: { 'cdi.kubevirt.io/dataImportCron': 'fedora' } };
  const version = (name: string, digest: string, day: number) =>
    filled(name, digest, {
      ...cron,
      creationTimestamp: `2026-01-0${day}T00:00:00Z`,
      annotations: { [annotations.populated]: populated(digest) },
    });
  const offers = (name: string, form: 'pvc' | 'snapshot' = 'pvc') =>
    object(cdi, 'DataSource', 'fedora', { spec: { source: { [form]: { namespace: 'vms', name } } } }, cron);
  const disk = (name: string) =>
    object(cdi, 'DataVolume', name, { spec: { sourceRef: { kind: 'DataSource', name: 'fedora' }, storage: {} } });
  const rows = (all: Inventory) =>
    outdatedDisks(all).map(({ object: { metadata }, version: its, current, behind }) => ({
      name: metadata.name,
      version: its,
      current,
      behind,
    }));
  const versions = [version('fedora-1', 'one', 1), version('fedora-2', 'two', 2), version('fedora-3', 'three', 3)];
  const disks = { objects: ['a', 'b', 'c', 'd'].map(disk) };
  const claims = [filled('a', 'one'), filled('b', 'three'), filled('c', 'gone'), claim('d')];

  it('are reported with how many versions they are behind, or that their version was removed', () => {
    const all = inventory({ objects: [offers('fedora-3'), ...disks.objects], claims: [...versions, ...claims] });
    expect(rows(all)).toEqual([
      { name: 'a', version: 'fedora-1', current: 'fedora-3', behind: 2 },
      { name: 'c', version: undefined, current: 'fedora-3', behind: undefined },
    ]);
  });

  it('are outdated by the channel that they name, and by no other of the same image', () => {
    const stable = {
      ...offers('fedora-2'),
      metadata: { ...offers('fedora-2').metadata, name: 'stable', uid: 'stable' },
    };
    const ofStable = object(cdi, 'DataVolume', 's', {
      spec: { sourceRef: { kind: 'DataSource', name: 'stable' }, storage: {} },
    });
    const all = (content: string) =>
      inventory({ objects: [offers('fedora-3'), stable, ofStable], claims: [...versions, filled('s', content)] });
    expect(rows(all('two'))).toEqual([]);
    expect(rows(all('one'))).toEqual([{ name: 's', version: 'fedora-1', current: 'fedora-2', behind: 1 }]);
  });

  it('include those made from a later version, once an earlier one is offered again', () => {
    const all = inventory({ objects: [offers('fedora-1'), ...disks.objects], claims: [...versions, ...claims] });
    expect(rows(all)).toContainEqual({ name: 'b', version: 'fedora-3', current: 'fedora-1', behind: -2 });
  });

  it('are recognized by the record of a copy, and by snapshots that contain the version', () => {
    const snapshot = {
      ...version('fedora-2', 'two', 2),
      kind: 'VolumeSnapshot',
      apiVersion: 'snapshot.storage.k8s.io/v1',
    };
    const copied = claim(
      'a',
      {},
      {
        annotations: {
          [annotations.clone]: JSON.stringify({
            strategy: 'copy',
            because: 'x',
            population: JSON.parse(populated('one')) as object,
          }),
        },
      },
    );
    const all = inventory({
      objects: [offers('fedora-2', 'snapshot'), disk('a')],
      claims: [copied],
      snapshots: [snapshot as unknown as VolumeSnapshot],
    });
    expect(rows(all)).toEqual([{ name: 'a', version: undefined, current: 'fedora-2', behind: undefined }]);
  });

  it('are not searched for when no cron follows a source', () => {
    const plain = object(cdi, 'DataSource', 'fedora', {
      spec: { source: { pvc: { namespace: 'vms', name: 'fedora-3' } } },
    });
    const all = inventory({ objects: [plain, disk('a')], claims: [...versions, filled('a', 'one')] });
    expect(rows(all)).toEqual([]);
  });
});
