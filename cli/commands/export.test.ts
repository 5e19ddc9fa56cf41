import { describe, expect, it } from 'vitest';
import { claimOf, exportOf } from '#cli/commands/export.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const call = (place: string, values: Record<string, string> = {}) => ({
  namespace: 'ns',
  positionals: ['disk', place],
  values,
});

describe('bullion export', () => {
  it.each([
    ['s3://b/a/key.qcow2', {}, { objectStore: { bucketName: 'b', objectName: 'a/key.qcow2' } }],
    ['local', {}, { destination: { local: {} } }],
    ['https://s3.example/b/k', {}, { destination: { s3: { url: 'https://s3.example/b/k' } } }],
    [
      'https://s3.example/b/k',
      { secret: 'c' },
      { destination: { s3: { url: 'https://s3.example/b/k', secretRef: 'c' } } },
    ],
    ['docker://reg.example/a:b', {}, { destination: { registry: { url: 'docker://reg.example/a:b' } } }],
    [
      'oci://reg.example/a:b',
      { secret: 'c' },
      { destination: { registry: { url: 'docker://reg.example/a:b', secretRef: 'c' } } },
    ],
    [
      'docker://reg.example/a:b',
      { compress: 'zstd', 'sign-with': 'keys' },
      {
        destination: {
          registry: { url: 'docker://reg.example/a:b', compression: 'zstd', signingSecretRef: 'keys' },
        },
      },
    ],
  ])('to %s', (place, values, spec) => {
    expect(exportOf(call(place, values))).toMatchObject({
      kind: 'VirtualMachineVolumeExport',
      metadata: { name: 'disk-export', namespace: 'ns' },
      spec: { pvcName: 'disk', ...spec },
    });
  });

  it("takes credentials for a store of one's own alone", () => {
    expect(() => exportOf(call('s3://b/k', { secret: 'c' }))).toThrow(/--secret is for https/);
  });

  it('refuses options of images elsewhere, and an unknown compression', () => {
    expect(() => exportOf(call('https://s3.example/b/k', { compress: 'zstd' }))).toThrow(/are for docker/);
    expect(() => exportOf(call('docker://reg.example/a:b', { compress: 'xz' }))).toThrow(/one of none, zlib, zstd/);
  });

  it.each(['', 'ftp://x/y', 's3://bucket'])('says what "%s" should be', (place) => {
    expect(() => exportOf(call(place))).toThrow(/is not a destination/);
  });

  describe('of an image', () => {
    const kube = createMemoryKube();
    const image = (name: string, children?: object) => ({
      apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
      kind: 'VirtualMachineImage',
      metadata: { namespace: 'ns', name },
      spec: { source: { http: 'https://images.example/a' } },
      status: { children },
    });
    kube.seed(hyperCloudImageKind.type, image('golden', { volume: 'vmi-1' }));
    kube.seed(hyperCloudImageKind.type, image('new'));
    kube.seed(hyperCloudImageKind.type, image('far', { backingImage: 'vmi-2' }));
    kube.seed(persistentVolumeClaims, {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { namespace: 'ns', name: 'disk' },
      spec: {},
    });

    it.each([
      ['disk', 'disk'],
      ['golden', 'vmi-1'],
      ['later', 'later'],
    ])('or a claim: %s is read from claim %s', async (wanted, claim) => {
      expect(await claimOf(kube, 'ns', wanted)).toBe(claim);
      expect(exportOf({ ...call('local'), positionals: [wanted, 'local'] }, claim)).toMatchObject({
        metadata: { name: `${wanted}-export` },
        spec: { pvcName: claim },
      });
    });

    it('without a claim says why, and what to do', async () => {
      await expect(claimOf(kube, 'ns', 'new')).rejects.toThrow('has no volume yet');
      await expect(claimOf(kube, 'ns', 'far')).rejects.toThrow(/is in Longhorn.*bullion download far/);
    });
  });
});
