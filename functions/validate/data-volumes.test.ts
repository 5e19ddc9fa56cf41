// The rules of DataVolumes: one row for each, rejected and accepted.
import { describe, expect, it } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp } from '#functions/validate/app.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, ask, clusterOf, patched, withAccess } from '#test/support/admission.ts';

const aClaim = (name: string, annotations: object = {}): Draft => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, namespace: 'default', annotations },
});
const prepared = aClaim('prepared', { 'cdi.kubevirt.io/storage.populatedFor': 'prepared' });
const kube = withAccess(clusterOf(aClaim('taken'), prepared), () => true);
const app = createApp({ kube, log: silentLogger });
const mutate = createMutate({ kube, log: silentLogger });
/** As sent by the API server: the result of mutation. */
const review = async (object: Draft) =>
  ask(app, '/validate', { object: patched(object, await ask(mutate, '/mutate', { object })) });
const theirs = createApp({ kube: clusterOf(), log: silentLogger, cdi: () => Promise.resolve('use') });

const aDataVolume = (spec: Record<string, unknown>): Draft => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default' },
  spec,
});
const storage = { resources: { requests: { storage: '1Gi' } } };
const http = { http: { url: 'https://images.example/a.qcow2' } };
const of = (source: object) => aDataVolume({ source, storage });
const httpWith = (more: object) => of({ http: { ...http.http, ...more } });

describe('DataVolumes', () => {
  it.each<[rule: string, denied: Draft, fault: RegExp]>([
    [
      'one access mode in pvc (10, 11)',
      aDataVolume({ source: http, pvc: { ...storage, accessModes: ['ReadWriteOnce', 'ReadWriteMany'] } }),
      /spec\.pvc\.accessModes.*exactly one/,
    ],
    ['an access mode in pvc (10)', aDataVolume({ source: http, pvc: storage }), /spec\.pvc\.accessModes.*exactly one/],
    [
      'a class name that can be one (9)',
      aDataVolume({ source: http, storage: { ...storage, storageClassName: 'x'.repeat(254) } }),
      /spec\.storage\.storageClassName.*253/,
    ],
    [
      'a name of its DataSource (17)',
      aDataVolume({ sourceRef: { kind: 'DataSource', name: '' }, storage }),
      /spec\.sourceRef\.name.*empty/,
    ],
    ['a name to clone (30)', of({ pvc: { namespace: 'default', name: '' } }), /spec\.source\.pvc\.name.*empty/],
    [
      'a claim that is free (3)',
      { ...of(http), metadata: { name: 'taken', namespace: 'default' } },
      /claim taken exists/,
    ],
    ['a source', aDataVolume({ storage }), /spec\.source.*exactly one/],
    ['one source', of({ ...http, blank: {} }), /spec\.source.*exactly one/],
    ['one form', aDataVolume({ source: http, storage, pvc: storage }), /spec\.storage/],
    ['a form', aDataVolume({ source: http }), /spec\.storage/],
    ['a DataSource', aDataVolume({ sourceRef: { kind: 'Other', name: 'x' }, storage }), /spec\.sourceRef\.kind/],
    ['no oVirt', of({ imageio: { url: 'https://a/b', diskId: 'x' } }), /spec\.source\.imageio.*http/],
    ['no VMware', of({ vddk: { url: 'https://a/b' } }), /spec\.source\.vddk.*vmdk/],
    ['an object of a store', of({ s3: { url: 's3://a/b' } }), /spec\.source\.s3\.url.*scheme "s3"/],
    [
      'an object, not a bucket',
      of({ s3: { url: 'https://s3.example/bucket' } }),
      /spec\.source\.s3\.url.*not refer to an object/,
    ],
    ['an object of Google', of({ gcs: { url: 'gs://bucket' } }), /spec\.source\.gcs\.url.*gs:/],
    ['headers', httpWith({ extraHeaders: ['X-A: 1', 'X-B'] }), /spec\.source\.http\.extraHeaders\[1\].*Name: value/],
    [
      'no image stream',
      of({ registry: { imageStream: 'fedora', pullMethod: 'node' } }),
      /spec\.source\.registry\.imageStream.*url/,
    ],
    [
      'a way to pull',
      of({ registry: { url: 'docker://quay.io/containerdisks/fedora', pullMethod: 'mail' } }),
      /spec\.source\.registry\.pullMethod/,
    ],
    ['no skipped verification', httpWith({ insecureSkipVerify: true }), /insecureSkipVerify.*not supported/],
    [
      'no archive of an empty disk',
      aDataVolume({ source: { blank: {} }, storage, contentType: 'archive' }),
      /spec\.contentType/,
    ],
    [
      'no checkpoints',
      aDataVolume({ source: http, storage, checkpoints: [{ previous: '', current: 'a' }] }),
      /spec\.checkpoints/,
    ],
    [
      'a volume of its own',
      aDataVolume({ source: http, storage: { ...storage, volumeName: 'pv' } }),
      /spec\.storage\.volumeName/,
    ],
    ['an address', of({ http: { url: 'ftp://a/b' } }), /spec\.source\.http\.url/],
    ['an image of a registry', of({ registry: { url: 'https://a/b' } }), /spec\.source\.registry\.url.*docker:/],
    ['a digest', httpWith({ checksum: 'md5:1' }), /spec\.source\.http\.checksum/],
    [
      'a size',
      aDataVolume({ source: { blank: {} }, storage: {} }),
      /spec\.storage\.resources\.requests\.storage.*missing/,
    ],
    [
      'a size in pvc, also of a clone',
      aDataVolume({ source: { pvc: { namespace: 'default', name: 'a' } }, pvc: {} }),
      /spec\.pvc\.resources/,
    ],
    [
      'a claim that can be written',
      aDataVolume({ source: http, storage: { ...storage, accessModes: ['ReadOnlyMany'] } }),
      /accessModes/,
    ],
  ])('must have %s', async (_rule, denied, fault) => {
    const { allowed, status } = await review(denied);
    expect(allowed).toBe(false);
    expect(status?.message).toMatch(fault);
    expect(await ask(theirs, '/validate', { object: denied })).toMatchObject({ allowed: true });
  });

  it.each<[what: string, object: Draft]>([
    ['one access mode in pvc', aDataVolume({ source: http, pvc: { ...storage, accessModes: ['ReadWriteOnce'] } })],
    ['a claim prepared for it', { ...of(http), metadata: { name: 'prepared', namespace: 'default' } }],
    ['a web server', of(http)],
    ['a registry', of({ registry: { url: 'docker://quay.io/containerdisks/fedora:latest' } })],
    ['a clone without a size', aDataVolume({ source: { pvc: { namespace: 'default', name: 'a' } }, storage: {} })],
    [
      'a DataSource of another namespace',
      aDataVolume({ sourceRef: { kind: 'DataSource', name: 'a', namespace: 'golden' }, storage: {} }),
    ],
    ['nothing in it', of({ blank: {} })],
    ['a size that is to be found', aDataVolume({ source: http, storage: {} })],
    [
      'a web server that requires authentication',
      httpWith({
        secretRef: 'login',
        certConfigMap: 'ca',
        extraHeaders: ['X-A: 1'],
        secretExtraHeaders: ['headers'],
        checksum: `sha256:${'ab'.repeat(32)}`,
      }),
    ],
    [
      'a private registry',
      of({
        registry: {
          url: 'docker://quay.io/private/disk:1',
          secretRef: 'login',
          certConfigMap: 'ca',
          pullMethod: 'node',
          platform: { architecture: 'arm64' },
        },
      }),
    ],
    ['an object store', of({ s3: { url: 'https://s3.example/bucket/a/b.qcow2', secretRef: 'login' } })],
    ['a public object of Google', of({ gcs: { url: 'gs://bucket-1/a b.qcow2' } })],
  ])('are accepted with %s', async (_what, object) => {
    expect(await review(object)).toMatchObject({ allowed: true });
  });
});
