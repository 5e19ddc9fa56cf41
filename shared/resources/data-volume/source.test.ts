// What a DataVolume is filled from: one row for each field of each source.
import { describe, expect, it } from 'vitest';
import type { DataVolumeSpec } from '#shared/api/cdi/data-volume.ts';
import { readSource } from '#shared/resources/data-volume/source.ts';

const url = 'https://images.example/a.qcow2';
const transfer = (from: object) => ({ type: 'transfer', from });
const object = (groupKind: string, namespace: string) => ({ type: 'object', groupKind, namespace, name: 'x' });

describe('the source of a DataVolume', () => {
  it.each<[what: string, source: DataVolumeSpec['source'], expected: object]>([
    ['a web server', { http: { url } }, transfer({ type: 'http', url })],
    [
      'a web server with everything',
      { http: { url, secretRef: 's', certConfigMap: 'c', extraHeaders: ['A: 1'], secretExtraHeaders: ['h'] } },
      transfer({ type: 'http', url, secretName: 's', bundleName: 'c', headers: ['A: 1'], headerSecrets: ['h'] }),
    ],
    ['empty names', { http: { url, secretRef: '', certConfigMap: '' } }, transfer({ type: 'http', url })],
    [
      'a registry',
      { registry: { url: 'docker://q/a', secretRef: 's', certConfigMap: 'c', platform: { architecture: 'arm64' } } },
      transfer({ type: 'registry', url: 'docker://q/a', architecture: 'arm64', secretName: 's', bundleName: 'c' }),
    ],
    [
      'a store',
      { s3: { url: 'https://s3.eu-west-1.amazonaws.com/bucket/a%20b/c.qcow2', secretRef: 's' } },
      transfer({
        type: 's3',
        endpoint: 'https://s3.eu-west-1.amazonaws.com',
        region: 'eu-west-1',
        bucket: 'bucket',
        key: 'a b/c.qcow2',
        secretName: 's',
      }),
    ],
    [
      'a store of ones own',
      { s3: { url: 'http://minio.example:9000/bucket/c' } },
      transfer({ type: 's3', endpoint: 'http://minio.example:9000', region: 'us-east-1', bucket: 'bucket', key: 'c' }),
    ],
    [
      'an object of Google',
      { gcs: { url: 'gs://bucket-1/a b/c.qcow2' } },
      transfer({ type: 'http', url: 'https://storage.googleapis.com/bucket-1/a%20b/c.qcow2' }),
    ],
    [
      'another store that speaks so',
      { gcs: { url: 'https://gcs.example/b/c' } },
      transfer({ type: 'http', url: 'https://gcs.example/b/c' }),
    ],
    ['nothing', { blank: {} }, transfer({ type: 'blank' })],
    ['a claim', { pvc: { namespace: 'a', name: 'x' } }, object('PersistentVolumeClaim', 'a')],
    ['a snapshot', { snapshot: { namespace: 'a', name: 'x' } }, object('VolumeSnapshot.snapshot.storage.k8s.io', 'a')],
  ])('is %s', (_what, source, expected) => {
    expect(readSource({ source }, 'own')).toEqual(expected);
  });

  it('is what a DataSource refers to, in the same namespace when none is named', () => {
    const sourceRef = { kind: 'DataSource', name: 'x' };
    expect(readSource({ sourceRef }, 'own')).toMatchObject(object('DataSource.cdi.kubevirt.io', 'own'));
    expect(readSource({ sourceRef: { ...sourceRef, namespace: 'golden' } }, 'own')).toMatchObject(
      object('DataSource.cdi.kubevirt.io', 'golden'),
    );
  });
});
