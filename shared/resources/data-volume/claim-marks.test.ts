// The marks on the claim of a DataVolume for its clients, and which claims that users prepared it adopts. One row each.
import { describe, expect, it } from 'vitest';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { claimMarks, mayAdopt } from '#shared/resources/data-volume/claim-marks.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { buildClaim } from '#shared/populate/volume/making.ts';

const cdi = 'cdi.kubevirt.io';
const http = { http: { url: 'https://a/b' } };
const aDataVolume = (spec: object = {}, metadata: object = {}): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name: 'disk', namespace: 'default', uid: 'u', ...metadata },
  spec: { source: http, storage: {}, ...spec } as DataVolume['spec'],
});

describe('the claim of a DataVolume', () => {
  it.each<[what: string, object: DataVolume, marks: object]>([
    [
      'a disk',
      aDataVolume(),
      {
        [`${cdi}/storage.populatedFor`]: 'disk',
        [`${cdi}/createdForDataVolume`]: 'u',
        [`${cdi}/storage.contentType`]: 'kubevirt',
      },
    ],
    ['files', aDataVolume({ contentType: 'archive' }), { [`${cdi}/storage.contentType`]: 'archive' }],
    ['an upload', aDataVolume({ source: { upload: {} } }), { [`${cdi}/storage.upload.target`]: '' }],
    ['preallocation', aDataVolume({ preallocation: true }), { [`${cdi}/storage.preallocation.requested`]: 'true' }],
    [
      'its priority class',
      aDataVolume({ priorityClassName: 'high' }),
      { [`${cdi}/storage.pod.priorityclassname`]: 'high' },
    ],
    [
      'immediate binding',
      aDataVolume({}, { annotations: { [`${cdi}/storage.bind.immediate.requested`]: '' } }),
      { [`${cdi}/storage.bind.immediate.requested`]: '' },
    ],
    ['an annotation of its user', aDataVolume({}, { annotations: { note: 'mine' } }), { note: 'mine' }],
  ])('records %s', (_what, object, marks) => {
    expect(claimMarks(object)).toMatchObject(marks);
  });

  it('does not repeat annotations that apply only to the object', () => {
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': '{}', 'bullion.dev/granted': '[]' };
    expect(Object.keys(claimMarks(aDataVolume({}, { annotations })))).not.toEqual(
      expect.arrayContaining([expect.stringMatching(/last-applied|bullion/)]),
    );
  });

  it.each<[mode: 'Filesystem' | 'Block', alert: string | undefined]>([
    ['Filesystem', 'disabled'],
    ['Block', undefined],
  ])('in mode %s has the labels that its clients and alerts use', (volumeMode, alert) => {
    const volume = dataVolumes.toVolume(aDataVolume({}, { labels: { os: 'linux' } }));
    const claim = buildClaim(volume, {
      className: 'local',
      volumeMode,
      accessModes: ['ReadWriteOnce'],
      bytes: 2 ** 30,
    });
    expect(claim.metadata.labels).toMatchObject({ app: 'containerized-data-importer', os: 'linux' });
    expect(claim.metadata.labels?.['alerts.k8s.io/KubePersistentVolumeFillingUp']).toBe(alert);
    expect(claim.metadata.ownerReferences).toMatchObject([{ kind: 'DataVolume', name: 'disk', controller: true }]);
  });
});

describe('an existing claim', () => {
  it.each<[may: boolean, what: string, own: Record<string, string>, found: Record<string, string>]>([
    [false, 'says nothing', {}, {}],
    [true, 'was populated for it', {}, { [`${cdi}/storage.populatedFor`]: 'disk' }],
    [false, 'was populated for another', {}, { [`${cdi}/storage.populatedFor`]: 'other' }],
    [true, 'says that it is filled', {}, { [`${cdi}/storage.prePopulated`]: 'disk' }],
    [true, 'is said to be filled', { [`${cdi}/storage.prePopulated`]: 'disk' }, {}],
    [true, 'is given to it', { [`${cdi}/allowClaimAdoption`]: 'true' }, {}],
    [true, 'is given to it, as Go writes it', { [`${cdi}/allowClaimAdoption`]: '1' }, {}],
    [false, 'is not given to it', { [`${cdi}/allowClaimAdoption`]: 'false' }, {}],
    [false, 'is given to nobody by a mark of its own', {}, { [`${cdi}/allowClaimAdoption`]: 'true' }],
  ])('is adopted (%s) when it %s', (may, _what, annotations, found) => {
    expect(mayAdopt({ name: 'disk', annotations }, found)).toBe(may);
  });
});
