// What Longhorn itself refuses, and its stand-in like it: one row each.
import { describe, expect, it } from 'vitest';
import { creationFaults, deletionFaults } from './webhook.ts';
import { persistentVolumes } from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { aBackingImage } from '#test/support/builders.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

type Spec = BackingImage['spec'];

const named = (name: string, spec: Spec): BackingImage => ({
  apiVersion: 'longhorn.io/v1beta2',
  kind: 'BackingImage',
  metadata: { namespace: longhornNamespace, name },
  spec,
});
const download: Spec = { sourceType: 'download', sourceParameters: { url: 'https://images.example/a' } };
const exported = (name: string, type = 'raw'): Spec => ({
  sourceType: 'export-from-volume',
  sourceParameters: { 'volume-name': name, 'export-type': type },
});
const cloned = (name: string): Spec => ({ sourceType: 'clone', sourceParameters: { 'backing-image': name } });

const aCluster = () => {
  const kube = createMemoryKube();
  const ready = aBackingImage([{ state: 'ready' }]);
  const metadata = (name: string) => ({ namespace: longhornNamespace, name });
  kube.seed(backingImages, { ...ready, metadata: metadata('first') });
  kube.seed(backingImages, { ...ready, metadata: metadata('second'), spec: { ...ready.spec, dataEngine: 'v2' } });
  const volume = (name: string, attributes: Record<string, string> = {}, phase: 'Bound' | 'Failed' = 'Bound') =>
    kube.seed(persistentVolumes, {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: `pv-${name}` },
      spec: {
        capacity: {},
        accessModes: [],
        csi: { driver: longhornDriver, volumeHandle: name, volumeAttributes: attributes },
      },
      status: { phase },
    });
  volume('good', { backingImage: 'first' });
  volume('of-engine-2', { dataEngine: 'v2' });
  volume('faulted', {}, 'Failed');
  return kube;
};

describe('a backing image', () => {
  it.each<[what: string, name: string, spec: Spec, fault: RegExp | undefined]>([
    ['a download', 'a'.repeat(40), download, undefined],
    ['a name of more than 40 characters', 'a'.repeat(41), download, /invalid name/],
    ['a name in capitals', 'Leap', download, /invalid name/],
    ['a SHA-512', 'leap', { ...download, checksum: 'ab'.repeat(64) }, undefined],
    ['a SHA-256', 'leap', { ...download, checksum: 'ab'.repeat(32) }, /invalid checksum/],
    ['a download of nothing', 'leap', { ...download, sourceParameters: {} }, /invalid parameter url/],
    ['an export', 'leap', exported('good'), undefined],
    ['an export as vmdk', 'leap', exported('good', 'vmdk'), /unsupported export type vmdk/],
    ['an export of a volume of data engine v2', 'leap', exported('of-engine-2'), /data engine v2 cannot be exported/],
    ['an export of a faulted volume', 'leap', exported('faulted'), /is faulted/],
    ['a clone', 'leap', cloned('first'), undefined],
    ['a clone of data engine v2', 'leap', cloned('second'), /data engine v2 cannot be cloned/],
    ['a clone of nothing', 'leap', cloned('none'), /failed to get source backing image/],
    ['data engine v2', 'leap', { ...download, dataEngine: 'v2' }, /data engine v2 are not supported/],
  ])('with %s', async (_what, name, spec, fault) => {
    const faults = await creationFaults(named(name, spec), aCluster());
    expect(faults.join('; ')).toMatch(fault ?? /^$/);
  });

  it('stays while replicas use it', async () => {
    const kube = aCluster();
    expect(await deletionFaults(named('first', download), kube)).toEqual([expect.stringMatching(/replicas using it/)]);
    expect(await deletionFaults(named('second', download), kube)).toEqual([]);
  });
});
