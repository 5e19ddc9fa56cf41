// What a DataVolume's `storage` leaves open is completed at its creation.
import { describe, expect, it } from 'vitest';
import { createApp } from './app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Asked, type Draft, ask, clusterOf, patched, withAccess } from '#test/support/admission.ts';

const aClass = (name: string, provisioner: string, annotations: object = {}): Draft => {
  const object = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name, annotations },
    provisioner,
  };
  return object;
};
const aProfile = (name: string, spec: Record<string, unknown>): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'StorageProfile',
  metadata: { name },
  spec,
});
const file = [{ accessModes: ['ReadWriteMany'], volumeMode: 'Filesystem' }];
const kube = withAccess(
  clusterOf(
    aClass('ceph', 'rook-ceph.rbd.csi.ceph.com', { 'storageclass.kubernetes.io/is-default-class': 'true' }),
    aClass('mine', 'mine.example'),
    aClass('new', 'new.example'),
    aProfile('mine', { claimPropertySets: file }),
  ),
  () => true,
);
const app = createApp({ kube, log: silentLogger });
const mutate = async (asked: Asked): Promise<Draft> => patched(asked.object!, await ask(app, '/mutate', asked));

const http = { http: { url: 'https://images.example/a.qcow2' } };
const resources = { requests: { storage: '1Gi' } };
const dataVolume = (spec: Record<string, unknown>): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default' },
  spec,
});
const of = (storage: object, source: object = http): Draft => dataVolume({ source, storage });
const storageOf = async (asked: Asked): Promise<unknown> => (await mutate(asked)).spec?.['storage'];

describe('storage of a DataVolume', () => {
  it('of an archive uses the default class of the cluster, not the default for virtual disks', async () => {
    const virt = aClass('virt', 'nfs.csi.k8s.io', { 'storageclass.kubevirt.io/is-default-virt-class': 'true' });
    const usual = aClass('usual', 'nfs.csi.k8s.io', { 'storageclass.kubernetes.io/is-default-class': 'true' });
    const both = createApp({ kube: withAccess(clusterOf(virt, usual), () => true), log: silentLogger });
    const classOf = async (contentType?: string) => {
      const object = dataVolume({ source: http, storage: { resources }, ...(contentType && { contentType }) });
      return patched(object, await ask(both, '/mutate', { object })).spec?.['storage'];
    };
    expect(await classOf()).toMatchObject({ storageClassName: 'virt' });
    expect(await classOf('archive')).toMatchObject({ storageClassName: 'usual' });
  });

  it('has the mode Filesystem for an archive, whatever its class prefers', async () => {
    const object = dataVolume({ source: http, storage: { resources }, contentType: 'archive' });
    expect(await storageOf({ object })).toMatchObject({ storageClassName: 'ceph', volumeMode: 'Filesystem' });
  });

  it.each<[what: string, storage: object, completed: object]>([
    [
      'the default class, by the capabilities of its driver',
      {},
      { storageClassName: 'ceph', volumeMode: 'Block', accessModes: ['ReadWriteMany'] },
    ],
    [
      'a class whose StorageProfile an administrator filled in',
      { storageClassName: 'mine' },
      { storageClassName: 'mine', volumeMode: 'Filesystem', accessModes: ['ReadWriteMany'] },
    ],
    ['a class that nothing is known of', { storageClassName: 'new' }, { storageClassName: 'new' }],
    [
      'the volume mode that is written',
      { volumeMode: 'Filesystem' },
      { storageClassName: 'ceph', volumeMode: 'Filesystem', accessModes: ['ReadWriteOnce'] },
    ],
    [
      'the access mode that is written',
      { accessModes: ['ReadWriteOnce'] },
      { storageClassName: 'ceph', volumeMode: 'Block', accessModes: ['ReadWriteOnce'] },
    ],
  ])('is completed from %s', async (_what, storage, completed) => {
    const once = await mutate({ object: of({ resources, ...storage }) });
    expect(once.spec?.['storage']).toEqual({ resources, ...completed });
    expect(await mutate({ object: once })).toEqual(once);
  });

  it('has the mode Filesystem for the files of an archive, whatever its class prefers', async () => {
    const object = dataVolume({ source: http, storage: { resources }, contentType: 'archive' });
    expect(await storageOf({ object })).toEqual({
      resources,
      storageClassName: 'ceph',
      volumeMode: 'Filesystem',
      accessModes: ['ReadWriteOnce'],
    });
  });

  it.each<[what: string, object: Draft]>([
    ['pvc, which is taken as it is', dataVolume({ source: http, pvc: { resources, accessModes: ['ReadWriteOnce'] } })],
    ['a clone, which is as its source', of({ resources }, { pvc: { namespace: 'default', name: 'a' } })],
    [
      'what a DataSource leads to',
      dataVolume({ sourceRef: { kind: 'DataSource', name: 'fedora' }, storage: { resources } }),
    ],
    ['a class that is not there yet', of({ resources, storageClassName: 'later' })],
  ])('is left unchanged: %s', async (_what, object) => {
    expect((await mutate({ object })).spec).toEqual(object.spec);
  });

  it('keeps its defaulted values when a client replaces the object with its own manifest', async () => {
    const oldObject = of({ resources, storageClassName: 'mine', volumeMode: 'Block', accessModes: ['ReadWriteOnce'] });
    const object = { ...of({ resources }), metadata: { ...oldObject.metadata, labels: { a: 'b' } } };
    expect(await storageOf({ object, oldObject })).toEqual(oldObject.spec?.['storage']);
  });
});
