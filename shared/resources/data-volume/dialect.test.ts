// The settings of a DataVolume for its pods, and the transition times of its conditions.
import { describe, expect, it } from 'vitest';
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims, storageClasses } from '#shared/api/foreign/core.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { reconcile } from '#shared/resources/reconcile.ts';
import { aStorageClass } from '#test/support/builders.ts';
import { createTestReconciler } from '#test/support/reconcile.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';

const aDataVolume = (annotations: Record<string, string> = {}, spec: object = {}): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default', uid: 'u', annotations },
  spec: { source: { http: { url: 'https://a/b' } }, pvc: {}, ...spec } as DataVolume['spec'],
});
const resources = { requests: { storage: '1Gi' } };
const withoutMesh = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' };

describe('the pods of a DataVolume', () => {
  it.each<[what: string, annotations: Record<string, string>, told: object]>([
    ['no mesh', {}, withoutMesh],
    ['a mesh when its user requests one', { 'sidecar.istio.io/inject': 'true' }, { 'sidecar.istio.io/inject': 'true' }],
    ['further networks', { 'k8s.v1.cni.cncf.io/networks': 'storage' }, { 'k8s.v1.cni.cncf.io/networks': 'storage' }],
    ['another network', { 'v1.multus-cni.io/default-network': 'n' }, { 'v1.multus-cni.io/default-network': 'n' }],
    ['open ports', { 'k8s.ovn.org/open-default-ports': 'p' }, { 'k8s.ovn.org/open-default-ports': 'p' }],
  ])('have %s', (_what, annotations, told) => {
    expect(dataVolumes.toVolume(aDataVolume(annotations)).pod?.annotations).toMatchObject(told);
  });

  it('have none of its other annotations', () => {
    expect(dataVolumes.toVolume(aDataVolume({ note: 'mine' })).pod?.annotations).toEqual(withoutMesh);
  });

  it('have its priority class and service account', () => {
    const wishes = { priorityClassName: 'high', serviceAccountName: 'importer' };
    expect(dataVolumes.toVolume(aDataVolume({}, wishes)).pod).toMatchObject(wishes);
  });
});

describe('the storage class of a DataVolume that names none', () => {
  it.each<[what: string, spec: object, className: string]>([
    ['a claim that is written out', { pvc: { accessModes: ['ReadWriteOnce'], resources } }, 'usual'],
    ['a disk', { pvc: undefined, storage: { resources } }, 'virt'],
    ['an archive', { pvc: undefined, storage: { resources }, contentType: 'archive' }, 'usual'],
  ])('is the default class for %s', async (_what, spec, className) => {
    const deps = createTestReconciler();
    for (const [name, mark] of [
      ['usual', 'storageclass.kubernetes.io/is-default-class'],
      ['virt', 'storageclass.kubevirt.io/is-default-virt-class'],
    ] as const)
      deps.kube.seed(storageClasses, aStorageClass(name, { metadata: { name, annotations: { [mark]: 'true' } } }));
    const object = aDataVolume({}, spec);
    deps.kube.seed(dataVolumeKind.type, object);
    const { apiVersion, kind, metadata } = object;
    await reconcile(deps, { apiVersion, kind, namespace: 'default', name: metadata.name });
    expect(deps.kube.all(persistentVolumeClaims).map((claim) => claim.spec.storageClassName)).toEqual([className]);
  });
});

describe('its conditions', () => {
  const object = aDataVolume();
  const volume = dataVolumes.toVolume(object);
  const [first, later] = ['2026-01-02T03:04:05Z', '2026-01-02T03:05:05Z'];
  const told = (state: Partial<ImageState>, now: string, status?: DataVolumeStatus): DataVolumeStatus =>
    dataVolumes.toStatus(
      status === undefined ? object : { ...object, status },
      volume,
      { ...initialState, children: { volume: 'disk' }, ...state },
      now,
    ) as DataVolumeStatus;
  const before = told({ phase: 'Cloning', reason: 'Starting', message: 'a' }, first);
  const readyOf = ({ conditions = [] }: DataVolumeStatus) => conditions.find(({ type }) => type === 'Ready');

  it.each<[what: string, state: Partial<ImageState>, transition: string, heartbeat: string]>([
    ['nothing', { phase: 'Cloning', reason: 'Starting', message: 'a' }, first, first],
    ['a change of the message', { phase: 'Cloning', reason: 'Starting', message: 'b' }, first, later],
    ['whether it is so', { phase: 'Available', reason: 'Ready', message: 'c' }, later, later],
  ])('change on %s', (_what, state, lastTransitionTime, lastHeartbeatTime) => {
    expect(readyOf(told(state, later, before))).toMatchObject({ lastTransitionTime, lastHeartbeatTime });
  });
});
