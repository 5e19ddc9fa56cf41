import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { labels } from '#shared/api/names.ts';
import { asksForUpload, planUploadClaim } from './sync.ts';

const target = { 'cdi.kubevirt.io/storage.upload.target': '' };
const aClaim = (
  annotations: Record<string, string> = target,
  more: Partial<PersistentVolumeClaim['metadata']> = {},
  spec: Partial<PersistentVolumeClaim['spec']> = {},
): PersistentVolumeClaim => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'disk', namespace: 'vms', uid: 'u', annotations, ...more },
  spec: {
    accessModes: ['ReadWriteMany', 'ReadWriteOnce'],
    storageClassName: 'fast',
    volumeMode: 'Block',
    resources: { requests: { storage: '10Gi' } },
    ...spec,
  },
});

describe('a claim requests an upload', () => {
  it.each<[string, PersistentVolumeClaim, boolean]>([
    ['by its annotation', aClaim(), true],
    ['not without', aClaim({}), false],
    ['not once it is filled', aClaim({ ...target, 'cdi.kubevirt.io/storage.pod.phase': 'Succeeded' }), false],
    ['again after a failure', aClaim({ ...target, 'cdi.kubevirt.io/storage.pod.phase': 'Failed' }), true],
    ['not on its way out', aClaim(target, { deletionTimestamp: '2026-01-01T00:00:00Z' }), false],
    ['not when its storage fills it', aClaim(target, {}, { dataSource: { kind: 'VolumeSnapshot', name: 's' } }), false],
    ['not when a DataVolume created it', aClaim({ ...target, 'cdi.kubevirt.io/createdForDataVolume': 'x' }), false],
    [
      'not when it is a child of Bullion',
      aClaim(
        { ...target, 'bullion.dev/owner-name': 'd', 'bullion.dev/owner-namespace': 'vms' },
        { labels: { [labels.ownerUid]: 'o', [labels.ownerKind]: 'DataVolume.cdi.kubevirt.io' } },
      ),
      false,
    ],
  ])('%s', (_what, claim, asks) => expect(asksForUpload(claim)).toBe(asks));
});

describe('an upload claim is populated by', () => {
  const dataVolume = (owner: string) =>
    ({
      apiVersion: 'cdi.kubevirt.io/v1beta1',
      kind: 'DataVolume',
      metadata: { name: 'disk', ownerReferences: [{ apiVersion: 'v1', kind: 'X', name: 'disk', uid: owner }] },
      spec: {},
    }) as const;

  it('a DataVolume of its name that is deleted with it', () => {
    const marks = {
      ...target,
      'cdi.kubevirt.io/storage.contentType': 'archive',
      'cdi.kubevirt.io/storage.bind.immediate.requested': '',
      'kubectl.kubernetes.io/last-applied-configuration': '{}',
    };
    const { actions } = planUploadClaim(aClaim(marks), {});
    expect(actions).toMatchObject([
      {
        do: 'create',
        object: {
          kind: 'DataVolume',
          metadata: {
            name: 'disk',
            namespace: 'vms',
            annotations: { 'cdi.kubevirt.io/storage.bind.immediate.requested': '' },
            ownerReferences: [{ apiVersion: 'v1', kind: 'PersistentVolumeClaim', name: 'disk', uid: 'u' }],
          },
          spec: {
            source: { upload: {} },
            contentType: 'archive',
            pvc: {
              accessModes: ['ReadWriteMany'],
              storageClassName: 'fast',
              volumeMode: 'Block',
              resources: { requests: { storage: '10Gi' } },
            },
          },
        },
      },
    ]);
    expect(JSON.stringify(actions)).not.toContain('last-applied');
  });

  it('the existing DataVolume', () =>
    expect(planUploadClaim(aClaim(), { dataVolume: dataVolume('u') })).toEqual({ actions: [] }));

  it.each([
    [{ dataVolume: dataVolume('other') }, 'NameTaken'],
    [
      { writer: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'guest' }, spec: { containers: [] } } as never },
      'TargetInUse',
    ],
  ])('nothing, with %j: %s', (observed, reason) => {
    const { actions, obstacle } = planUploadClaim(aClaim(), observed);
    expect([actions, obstacle?.reason]).toEqual([[], reason]);
  });
});
