// What a DataVolume asks of the pods that fill it, and when its conditions say that they changed.
import { describe, expect, it } from 'vitest';
import type { DataVolume, DataVolumeStatus } from '#shared/api/cdi/data-volume.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';

const aDataVolume = (annotations: Record<string, string> = {}, spec: object = {}): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default', uid: 'u', annotations },
  spec: { source: { http: { url: 'https://a/b' } }, pvc: {}, ...spec } as DataVolume['spec'],
});
const withoutMesh = { 'sidecar.istio.io/inject': 'false', 'linkerd.io/inject': 'disabled' };

describe('the pods of a DataVolume', () => {
  it.each<[what: string, annotations: Record<string, string>, told: object]>([
    ['no mesh', {}, withoutMesh],
    ['a mesh where its user wants one', { 'sidecar.istio.io/inject': 'true' }, { 'sidecar.istio.io/inject': 'true' }],
    ['further networks', { 'k8s.v1.cni.cncf.io/networks': 'storage' }, { 'k8s.v1.cni.cncf.io/networks': 'storage' }],
    ['another network', { 'v1.multus-cni.io/default-network': 'n' }, { 'v1.multus-cni.io/default-network': 'n' }],
    ['open ports', { 'k8s.ovn.org/open-default-ports': 'p' }, { 'k8s.ovn.org/open-default-ports': 'p' }],
  ])('have %s', (_what, annotations, told) => {
    expect(dataVolumes.toVolume(aDataVolume(annotations)).pod?.annotations).toMatchObject(told);
  });

  it('have nothing else of its annotations', () => {
    expect(dataVolumes.toVolume(aDataVolume({ note: 'mine' })).pod?.annotations).toEqual(withoutMesh);
  });

  it('run in its class of priority, and under its account', () => {
    const wishes = { priorityClassName: 'high', serviceAccountName: 'importer' };
    expect(dataVolumes.toVolume(aDataVolume({}, wishes)).pod).toMatchObject(wishes);
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
    ['what is said', { phase: 'Cloning', reason: 'Starting', message: 'b' }, first, later],
    ['whether it is so', { phase: 'Available', reason: 'Ready', message: 'c' }, later, later],
  ])('change with %s', (_what, state, lastTransitionTime, lastHeartbeatTime) => {
    expect(readyOf(told(state, later, before))).toMatchObject({ lastTransitionTime, lastHeartbeatTime });
  });
});
