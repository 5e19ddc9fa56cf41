import { describe, expect, it } from 'vitest';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { apiVersionOf, childMetadata } from '#shared/api/object.ts';
import { findTarget } from '#shared/exchange/target.ts';
import { closedBecause } from '#shared/exchange/upload/open.ts';
import { createMemoryKube } from '#test/support/memory-kube.ts';

const { type } = dataVolumeKind;
const theirs: DataVolume = {
  apiVersion: apiVersionOf(type),
  kind: type.kind,
  metadata: { name: 'disk', namespace: 'theirs' },
  spec: { source: { upload: {} } },
};

describe('a DataVolume that an installed CDI fills', () => {
  const name = { plural: 'datavolumes', namespace: 'theirs', name: 'disk' } as const;
  it.each<[phase: string, detail: object, stage: string, words: RegExp | undefined]>([
    ['UploadReady', {}, 'theirs', /installed CDI.*virtctl image-upload dv disk -n theirs --no-create/],
    ['UploadScheduled', {}, 'theirs', /virtctl/],
    ['Succeeded', {}, 'done', /uploaded already/],
    ['UploadReady', { detail: { phase: 'Downloading' } }, 'open', undefined],
  ])('is recognized by its status: %s %j', async (phase, detail, stage, words) => {
    const kube = createMemoryKube();
    await kube.create(type, theirs);
    await kube.mergePatch(
      type,
      { namespace: 'theirs', name: 'disk' },
      { status: { phase, ...detail } },
      { subresource: 'status' },
    );
    const target = await findTarget(kube, name);
    expect(target.stage).toBe(stage);
    expect(closedBecause(target)?.message ?? '').toMatch(words ?? /^$/);
  });
});

/** A claim of its maker's own making, with the marks of a child of `disk`. */
const observedAs = async (namespace: string, name: string, uid?: string) => {
  const kube = createMemoryKube();
  const volume = await kube.create(type, theirs);
  const owner = { ...volume, ...volume.metadata, uid: uid ?? volume.metadata.uid ?? '' };
  await kube.create(persistentVolumeClaims, {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...childMetadata(owner, 'disk', name), namespace },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
  });
  return (await findTarget(kube, { plural: 'persistentvolumeclaims', namespace, name })).stage;
};

describe('a claim with the labels of a DataVolume', () => {
  it.each<[what: string, stage: string, ...where: Parameters<typeof observedAs>]>([
    ['is that volume', 'open', 'theirs', 'disk'],
    ['in another namespace is none of it', 'no-upload', 'mine', 'disk'],
    ['of another name is none of it', 'no-upload', 'theirs', 'other'],
    ['of one that is gone is none of it', 'no-upload', 'theirs', 'disk', 'gone'],
  ])('%s', async (_what, stage, ...where) => {
    expect(await observedAs(...where)).toBe(stage);
  });
});
