import { describe, expect, it } from 'vitest';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import { childMetadata, type KubeObject, refOf } from '#shared/api/object.ts';
import {
  deletedImageIn,
  detach,
  graceOf,
  imageFrom,
  imageOfHolder,
  unlike,
} from '#shared/resources/deleted-images/record.ts';
import { aHarvesterImage } from '#test/support/builders.ts';

const password = 'hunter2';
const anImage = (url: string, marks: Record<string, string> = {}) => {
  const { metadata, spec, ...rest } = aHarvesterImage();
  const deletionTimestamp = '2026-11-30T10:00:00Z';
  return {
    ...rest,
    metadata: { ...metadata, uid: 'old', deletionTimestamp, annotations: marks },
    spec: { ...spec, url },
  };
};

/** The claim of the image, once that is deleted. */
const heldFor = (image: KubeObject): KubeObject => {
  const object = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: childMetadata(refOf(image), 'volume', 'c'),
  };
  const action = detach(
    image,
    { type: persistentVolumeClaims, child: 'volume', object },
    { grace: 3_600_000, bytes: 5 },
  );
  if (action.do !== 'patch') throw new Error(action.do);
  const { metadata } = action.patch as { readonly metadata: KubeObject['metadata'] };
  const labels = { ...object.metadata.labels, ...metadata.labels };
  const notes = { ...object.metadata.annotations, ...metadata.annotations };
  return { ...object, metadata: { ...object.metadata, ...metadata, labels, annotations: notes } };
};

it.each([
  ['7d', 7 * 24 * 3_600_000],
  ['0s', undefined],
  // A date that far could not be written, and the image would never go.
  ['99999999999d', 3650 * 24 * 3_600_000],
  ['a week', undefined],
  [undefined, undefined],
])('the grace %s', (text, expected) => {
  expect(graceOf(anImage('', text === undefined ? {} : { [annotations.undeleteFor]: text }))).toBe(expected);
});

describe('the record of a deleted image', () => {
  const image = anImage(`http://jane:${password}@server.example/disk.qcow2?sig=${password}`, {
    note: 'mine',
    [annotations.granted]: '[]',
    [annotations.retry]: '1',
  });
  const holder = heldFor(image);
  const kept = imageOfHolder(holder)!;

  it('says until when, and hides what the URL hides', () => {
    expect(kept.record).toMatchObject({ deleted: '2026-11-30T10:00:00Z', until: '2026-11-30T11:00:00Z', bytes: 5 });
    expect(holder.metadata.ownerReferences).toEqual([]);
    expect(JSON.stringify(holder)).not.toContain(password);
    expect(JSON.stringify(holder)).toContain('http://server.example/disk.qcow2');
  });

  it('is the image again, without what was of its last life only', () => {
    const again = imageFrom(kept, harvesterImageKind.type, holder);
    expect(again.metadata.annotations).toEqual({ note: 'mine', [annotations.undelete]: 'c' });
    expect(unlike(again, refOf(again), holder)).toBeUndefined();
  });

  const again = imageFrom(kept, harvesterImageKind.type, holder);
  const other = (over: Partial<KubeObject['metadata']>): KubeObject => ({
    ...holder,
    metadata: { ...holder.metadata, ...over },
  });
  it.each([
    ['of another name', { ...again, metadata: { ...again.metadata, name: 'other' } }, holder, /no deleted image/],
    ['of another namespace', { ...again, metadata: { ...again.metadata, namespace: 'x' } }, holder, /no deleted image/],
    ['of another kind', { ...again, apiVersion: 'hypercloud.tmaxanc.com/v1alpha1' }, holder, /no deleted image/],
    ['with another spec', { ...again, spec: { ...again.spec, url: 'http://x.example/a' } }, holder, /spec differs/],
    ['whose bytes have no record', again, other({ annotations: {} }), /no deleted image/],
    [
      'whose bytes are those of an image that is there',
      again,
      other({ labels: { ...holder.metadata.labels, 'bullion.dev/owner-uid': 'u' } }),
      /no deleted image/,
    ],
    ['whose bytes go', again, other({ deletionTimestamp: '2026-11-30T11:00:00Z' }), /is being removed/],
  ])('is not that of one %s', (_, wanted, object, why) => {
    expect(unlike(wanted, { ...refOf(wanted), uid: 'new' }, object)).toMatch(why);
  });

  it('of somebody else is none', () => {
    expect(deletedImageIn(other({ annotations: { [annotations.deleted]: '{}' } }))).toBeUndefined();
  });
});
