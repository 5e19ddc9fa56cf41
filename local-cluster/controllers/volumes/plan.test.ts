import { describe, expect, it } from 'vitest';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import { directoryDriver, plainDriver } from '#local-cluster/controllers/volumes/classes.ts';
import { selectedNode } from '#local-cluster/controllers/volumes/facts.ts';
import { type ClaimSeen, type SourceSeen, planClaim } from '#local-cluster/controllers/volumes/plan.ts';

const aClass = (fields: Partial<StorageClass> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'local' },
  provisioner: directoryDriver,
  allowVolumeExpansion: true,
  ...fields,
});

interface ClaimFields {
  readonly spec?: Partial<PersistentVolumeClaim['spec']>;
  readonly status?: PersistentVolumeClaim['status'];
  readonly annotations?: Record<string, string>;
  readonly deletionTimestamp?: string;
}
const aClaim = ({ spec, status, ...metadata }: ClaimFields = {}): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'claim', namespace: 'default', uid: 'u', ...metadata },
  spec: { storageClassName: 'local', resources: { requests: { storage: '2Gi' } }, ...spec },
  ...(status === undefined ? {} : { status }),
});
const aVolume = (owner = 'u'): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec: {
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    claimRef: { namespace: 'default', name: 'claim', uid: owner },
    csi: { driver: directoryDriver, volumeHandle: 'pv' },
  },
});
const ready: Extract<SourceSeen, { kind: 'ready' }> = {
  kind: 'ready',
  what: 'snapshot "s"',
  from: { what: 'snapshot', handle: 's' },
  driver: directoryDriver,
  mode: 'Filesystem',
  bytes: 2 ** 30,
};
const plan = (seen: Partial<ClaimSeen> = {}) =>
  planClaim({ claim: aClaim(), storageClass: aClass(), volume: undefined, source: undefined, ...seen });
const bound = { phase: 'Bound', capacity: { storage: '2Gi' } } as const;

describe('planClaim', () => {
  it('provisions the requested size, and copies the data source', () => {
    expect(plan()).toMatchObject({ do: 'provision', bytes: 2 * 2 ** 30 });
    expect(plan({ source: ready })).toMatchObject({ do: 'provision', from: ready.from });
  });

  it.each<[string, Partial<ClaimSeen>]>([
    ['is being deleted', { claim: aClaim({ deletionTimestamp: '2026-01-01T00:00:00Z' }) }],
    ['belongs to another provisioner', { storageClass: aClass({ provisioner: 'other' }) }],
    ['is filled by a populator', { source: { kind: 'foreign' } }],
    ['is bound and has its size', { claim: aClaim({ status: bound }), volume: aVolume() }],
  ])('ignores a claim that %s', (_, seen) => {
    expect(plan(seen)).toEqual({ do: 'nothing' });
  });

  it.each<[string, Partial<ClaimSeen>, RegExp, boolean]>([
    ['an unknown class', { storageClass: undefined }, /storageclass "local" not found/, true],
    [
      'no class',
      { claim: aClaim({ spec: { storageClassName: '' } }), storageClass: undefined },
      /no storage class/,
      false,
    ],
    ['no size', { claim: aClaim({ spec: { resources: {} } }) }, /not a size/, true],
    [
      'no consumer yet',
      { storageClass: aClass({ volumeBindingMode: 'WaitForFirstConsumer' }) },
      /first consumer/,
      false,
    ],
    [
      'a class that cannot copy',
      { source: ready, storageClass: aClass({ provisioner: plainDriver }) },
      /neither clone nor restore/,
      true,
    ],
    ['a source of another driver', { source: { ...ready, driver: plainDriver } }, /belongs to driver/, true],
    ['a source of another mode', { source: { ...ready, mode: 'Block' } }, /mode Block/, true],
    ['a source that is larger', { source: { ...ready, bytes: 3 * 2 ** 30 } }, /ask for at least 3Gi/, true],
    ['a source that is missing', { source: { kind: 'missing', what: 'snapshot "s"' } }, /"s" not found/, true],
    ['a source that is going', { source: { kind: 'deleting', what: 'snapshot "s"' } }, /being deleted/, true],
    ['a source that is not ready', { source: { kind: 'unready', what: 'snapshot "s"' } }, /not ready/, false],
  ])('waits and reports why with %s', (_, seen, words, warn) => {
    expect(plan(seen)).toMatchObject({ do: 'wait', warn, message: expect.stringMatching(words) });
  });

  it('provisions for the first consumer once its node is selected', () => {
    const storageClass = aClass({ volumeBindingMode: 'WaitForFirstConsumer' });
    expect(plan({ storageClass, claim: aClaim({ annotations: { [selectedNode]: 'local' } }) }).do).toBe('provision');
  });

  it('binds a volume that was created before a crash, and creates no second one', () => {
    expect(plan({ volume: aVolume() })).toMatchObject({ do: 'bind' });
  });

  it('sets the default class on a claim without one', () => {
    const { storageClassName: _, ...spec } = aClaim().spec;
    expect(plan({ claim: { ...aClaim(), spec } })).toEqual({ do: 'set-class', className: 'local' });
  });

  it('marks a bound claim as lost when its volume is deleted or bound to another', () => {
    const claim = aClaim({ status: bound });
    expect(plan({ claim }).do).toBe('mark-lost');
    expect(plan({ claim, volume: aVolume('other') }).do).toBe('mark-lost');
  });

  it('expands a bound claim when its class allows it, and never shrinks one', () => {
    const grown = aClaim({ status: bound, spec: { resources: { requests: { storage: '3Gi' } } } });
    expect(plan({ claim: grown, volume: aVolume() })).toMatchObject({ do: 'expand', bytes: 3 * 2 ** 30 });
    const fixed = aClass({ allowVolumeExpansion: false });
    expect(plan({ claim: grown, volume: aVolume(), storageClass: fixed }).do).toBe('nothing');
    const shrunk = aClaim({ status: bound, spec: { resources: { requests: { storage: '1Gi' } } } });
    expect(plan({ claim: shrunk, volume: aVolume() }).do).toBe('nothing');
  });
});
