// What is stored of images in a cluster: every kind of it, how many disks it has, and what keeps it.
import { describe, expect, it } from 'vitest';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { annotations, deletedOwner, labels } from '#shared/api/names.ts';
import { childMetadata, type KubeObject } from '#shared/api/object.ts';
import { createStored, type StoredThing } from '#shared/catalogue/stored.ts';
import type { PolicyRetention } from '#shared/golden/rollout/policies.ts';
import type { Inventory } from '#shared/resources/consumers.ts';

const cdi = 'cdi.kubevirt.io/v1beta1';
const now = Date.parse('2026-03-01T00:00:00Z');
const day = 24 * 3_600_000;
const ago = (days: number) => new Date(now - days * day).toISOString();

const object = (apiVersion: string, kind: string, name: string, rest: object, metadata: object = {}): KubeObject => ({
  apiVersion,
  kind,
  metadata: { namespace: 'golden', name, uid: `uid-${kind}-${name}`, creationTimestamp: ago(90), ...metadata },
  ...rest,
});
const populated = (content: string) =>
  JSON.stringify({ inspection: { format: 'raw', compression: 'none', size: 7 }, digests: { sha256: content } });
const claim = (name: string, rest: object = {}, metadata: object = {}): PersistentVolumeClaim =>
  object(
    'v1',
    'PersistentVolumeClaim',
    name,
    { spec: { storageClassName: 'fast', ...rest }, status: { phase: 'Bound', capacity: { storage: '5Gi' } } },
    metadata,
  ) as PersistentVolumeClaim;
const ofCron = { [`cdi.kubevirt.io/dataImportCron`]: 'cron' };
const version = (name: string, used: number, marks: object = {}): PersistentVolumeClaim =>
  claim(
    name,
    {},
    {
      labels: { ...ofCron, ...marks },
      annotations: { [annotations.populated]: populated(name), [cdiAnnotations.lastUseTime]: ago(used) },
    },
  );
const cron = (spec: object = {}, status: object = {}) =>
  object(
    cdi,
    'DataImportCron',
    'cron',
    {
      spec: {
        schedule: '',
        managedDataSource: 'fedora',
        importsToKeep: 2,
        template: { spec: { source: { registry: { url: 'docker://quay.io/x/y:latest' } } } },
        ...spec,
      },
      status: { lastImportedPVC: { namespace: 'golden', name: 'v3' }, ...status },
    },
    {},
  );
const offer = object(
  cdi,
  'DataSource',
  'fedora',
  { spec: { source: { pvc: { namespace: 'golden', name: 'v3' } } } },
  { labels: ofCron },
);
const disk = (name: string, spec: object, metadata: object = {}) =>
  object(
    cdi,
    'DataVolume',
    name,
    { spec: { storage: {}, ...spec }, status: { phase: 'Succeeded' } },
    { namespace: 'vms', ...metadata },
  );
const fromFedora = { sourceRef: { kind: 'DataSource', name: 'fedora', namespace: 'golden' } };

const storedOf = (
  some: Partial<Inventory>,
  {
    retention,
    holders = [],
    classes = [],
  }: {
    retention?: PolicyRetention;
    holders?: readonly KubeObject[];
    classes?: readonly StorageClass[] | undefined;
  } = {},
): readonly StoredThing[] =>
  createStored({
    inventory: { objects: [], claims: [], snapshots: [], machines: [], ...some },
    classes,
    holders,
    now,
  })(retention);
const fates = (things: readonly StoredThing[]) =>
  Object.fromEntries(
    things.map(({ name, keptBy, isHeld }) => [name, keptBy === undefined ? 'goes' : isHeld ? 'held' : 'stays']),
  );

const versions = [version('v1', 60), version('v2', 20), version('v3', 1)];

describe('what is stored', () => {
  const policy = (retention: object, channel = 'v3') =>
    object('bullion.dev/v1alpha1', 'GoldenImagePolicy', 'fedora', {
      spec: { dataImportCrons: { names: ['cron'] }, channels: [{ name: 'stable', dataSource: 'fedora' }], retention },
      status: {
        versions: ['v1', 'v2', 'v3'].map((name) => ({ name, cron: 'cron', state: 'Verified' })),
        channels: [{ name: 'stable', dataSource: 'fedora', version: channel }],
      },
    });

  it.each<[what: string, objects: readonly KubeObject[], retention: PolicyRetention | undefined, fates: object]>([
    ['as the cron says', [cron()], undefined, { v1: 'goes', v2: 'stays', v3: 'stays' }],
    [
      'as its policy says in place of the cron',
      [cron(), policy({ keep: 1 })],
      undefined,
      { v1: 'goes', v2: 'goes', v3: 'stays' },
    ],
    [
      'with what a channel needs',
      [cron(), policy({ keep: 1 }, 'v1')],
      undefined,
      { v1: 'held', v2: 'goes', v3: 'stays' },
    ],
    ['with another number', [cron()], { keep: 1 }, { v1: 'goes', v2: 'goes', v3: 'stays' }],
    [
      'with another number than its policy',
      [cron(), policy({ keep: 1 })],
      { keep: 3 },
      { v1: 'stays', v2: 'stays', v3: 'stays' },
    ],
    ['with a limit of use', [cron()], { keep: 1, unusedFor: 30 * day }, { v1: 'goes', v2: 'stays', v3: 'stays' }],
    ['with a limit of age', [cron()], { keep: 1, maxAge: 100 * day }, { v1: 'stays', v2: 'stays', v3: 'stays' }],
    [
      'where the cron keeps all',
      [cron({ garbageCollect: 'Never' })],
      { keep: 1 },
      { v1: 'stays', v2: 'stays', v3: 'stays' },
    ],
    ['where the cron is gone', [], { keep: 1 }, { v1: 'stays', v2: 'stays', v3: 'stays' }],
    [
      'with a disk that is being made from it',
      [cron(), disk('root', { source: { pvc: { namespace: 'golden', name: 'v1' } } }, {}), offer].map((one) =>
        one.kind === 'DataVolume' ? { ...one, status: { phase: 'CloneInProgress' } } : one,
      ),
      undefined,
      { v1: 'held', v2: 'stays', v3: 'stays' },
    ],
  ])('is judged %s', (_, objects, retention, expected) => {
    expect(fates(storedOf({ objects, claims: versions }, retention && { retention }))).toEqual(expected);
  });

  it('is held by a lock', () => {
    const claims = [version('v1', 60, { [labels.protected]: 'true' }), ...versions.slice(1)];
    expect(fates(storedOf({ objects: [cron()], claims }))).toMatchObject({ v1: 'held' });
  });

  it('can be brought back for the time that the policy says', () => {
    const [v1] = storedOf({ objects: [cron(), policy({ keep: 1, undeleteFor: '7d' })], claims: versions });
    expect(v1).toMatchObject({ name: 'v1', keptBy: undefined, until: now + 7 * day });
  });

  it('is counted by the size of its volume, else by that of its snapshot', () => {
    const snapshot = object(
      'snapshot.storage.k8s.io/v1',
      'VolumeSnapshot',
      's',
      { spec: { source: {}, volumeSnapshotClassName: 'shots' }, status: { readyToUse: true, restoreSize: '3Gi' } },
      { labels: ofCron },
    ) as VolumeSnapshot;
    const both = { ...snapshot, metadata: { ...snapshot.metadata, name: 'v1' } };
    const things = storedOf({ objects: [cron()], claims: [versions[0]!], snapshots: [snapshot, both] });
    expect(things.map(({ key, bytes, className }) => [key, bytes / 2 ** 30, className])).toEqual([
      ['claim golden/v1', 5, 'fast'],
      ['snapshot golden/s', 3, 'shots'],
    ]);
  });

  it('has the disks that were made from it, by whatever name, each once', () => {
    const filled = (name: string, content: string) =>
      claim(name, {}, { namespace: 'vms', annotations: { [annotations.populated]: populated(content) } });
    const objects = [
      cron(),
      offer,
      disk('now', fromFedora),
      disk('before', fromFedora),
      disk('removed', fromFedora),
      disk('direct', { source: { pvc: { namespace: 'golden', name: 'v1' } } }),
      disk('check', fromFedora, { labels: { [labels.role]: 'check' } }),
      disk('other', { source: { blank: {} } }),
    ];
    const claims = [...versions, filled('now', 'v3'), filled('before', 'v2'), filled('removed', 'v0')];
    const disks = storedOf({ objects, claims }).map(({ name, disks: found }) => [
      name,
      [...found.keys()].map((key) => key.split('/').at(-1)),
    ]);
    expect(disks).toEqual([
      ['v1', ['direct']],
      ['v2', ['before']],
      ['v3', ['now']],
    ]);
  });

  it('includes images, one stored thing for those that share it', () => {
    const image = (name: string) =>
      object('harvesterhci.io/v1beta1', 'VirtualMachineImage', name, {
        spec: { displayName: name, sourceType: 'download', url: 'http://files/x' },
        status: {
          phase: 'Available',
          format: 'raw',
          compression: 'none',
          virtualSize: 9,
          size: 4,
          children: { backingImage: 'vmi-1' },
        },
      });
    expect(storedOf({ objects: [image('a'), image('b')] })).toMatchObject([
      {
        key: 'backing image vmi-1',
        kind: 'image',
        bytes: 9,
        storedFor: [{ image: 'harvester/a' }, { image: 'harvester/b' }],
      },
    ]);
    const own = object('hypercloud.tmaxanc.com/v1alpha1', 'VirtualMachineImage', 'fedora', {
      spec: { source: { http: 'http://files/x' } },
      status: { phase: 'Available', children: { volume: 'fedora-image-pvc' } },
    });
    const things = storedOf({
      objects: [own, disk('d', {}, {})],
      claims: [
        claim('fedora-image-pvc'),
        claim(
          'web',
          { dataSource: { kind: 'PersistentVolumeClaim', name: 'fedora-image-pvc' } },
          { creationTimestamp: ago(3) },
        ),
      ],
    });
    expect(things).toMatchObject([
      { key: 'claim golden/fedora-image-pvc', bytes: 5 * 2 ** 30, className: 'fast', lastUse: ago(3), isHeld: false },
    ]);
    expect(things[0]?.disks.size).toBe(1);
  });

  it('includes what can be brought back, unless it is back already', () => {
    const deleted = [
      { name: 'v0', time: ago(1), until: ago(-6), bytes: 11 },
      { name: 'v3', time: ago(1), until: ago(-6), bytes: 11 },
    ];
    const record = {
      deleted: ago(2),
      until: ago(-5),
      child: 'volume',
      isOwned: true,
      image: { spec: {} },
    };
    const owner = {
      apiVersion: 'harvesterhci.io/v1beta1',
      kind: 'VirtualMachineImage',
      namespace: 'golden',
      name: 'jammy',
      uid: deletedOwner,
    };
    const metadata = childMetadata(owner, 'volume', 'vmi-2');
    const holder = claim(
      'vmi-2',
      {},
      {
        ...metadata,
        annotations: { ...metadata.annotations, [annotations.deleted]: JSON.stringify(record) },
      },
    );
    const things = storedOf({ objects: [cron({}, { deleted })], claims: [...versions, holder] });
    expect(things.filter(({ kind }) => kind === 'deleted')).toMatchObject([
      { key: 'claim golden/v0', bytes: 11, storedFor: [{ image: 'datasource/fedora' }] },
      { key: 'claim golden/vmi-2', bytes: 5 * 2 ** 30, storedFor: [{ image: 'harvester/jammy' }] },
    ]);
    expect(things).toHaveLength(5);
  });

  it('includes copies, which go with their version', () => {
    const copy = disk(
      'copy',
      { source: { pvc: { namespace: 'golden', name: 'v1' } }, storage: { storageClassName: 'slow' } },
      {
        namespace: 'golden',
        labels: { [labels.copyOf]: 'uid-PersistentVolumeClaim-v1' },
        annotations: {
          [annotations.goldenCopy]: JSON.stringify({ cron: 'cron', classUid: 'slow' }),
          [cdiAnnotations.lastUseTime]: ago(1),
        },
      },
    );
    const slow = { metadata: { name: 'slow', uid: 'slow' }, provisioner: 'x' } as StorageClass;
    const done = { ...copy, status: { phase: 'Succeeded', claimName: 'copy' } } as KubeObject;
    const some = { objects: [cron(), done], claims: [...versions, claim('copy', { storageClassName: 'slow' })] };
    const seen = (options: Parameters<typeof storedOf>[1]) =>
      storedOf(some, options).filter(({ kind }) => kind === 'copy');
    expect(seen({ classes: [slow], retention: { keep: 3 } })).toMatchObject([
      {
        className: 'slow',
        bytes: 5 * 2 ** 30,
        keptBy: 'it is a copy of v1, which stays',
        storedFor: [{ image: 'datasource/fedora' }],
      },
    ]);
    expect(seen({ classes: [slow], retention: { keep: 2 } })).toMatchObject([{ keptBy: undefined }]);
    // Its class is gone.
    expect(seen({ classes: [], retention: { keep: 3 } })).toMatchObject([{ keptBy: undefined }]);
  });
});
