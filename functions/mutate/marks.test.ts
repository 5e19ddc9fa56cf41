// Marks with an effect on an object can be set only by Bullion, whatever is created and by whatever client.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf } from '#shared/api/object.ts';
import { goldenTypes } from '#shared/resources/protected/golden.ts';
import { ownMarks } from '#shared/resources/protected/marks.ts';
import { silentLogger } from '#shared/runtime/log.ts';
import { type Draft, ask, clusterOf, patched, withAccess } from '#test/support/admission.ts';
import {
  claim,
  claimOfVolume,
  disksMarks,
  goldenVolume,
  image,
  imageOfVolume,
  owned,
} from '#test/support/row-objects.ts';

const kube = withAccess(clusterOf(image, imageOfVolume, goldenVolume), () => true);
const [mutate, validate] = [createMutate({ kube, log: silentLogger }), createValidate({ kube, log: silentLogger })];
const made = async (object: Draft, username?: string): Promise<Draft> =>
  patched(object, await ask(mutate, '/mutate', { object, ...(username === undefined ? {} : { username }) }));

const isDataVolume = ({ kind }: Draft): boolean => kind === dataVolumeKind.type.kind;
const isGrant = (object: Draft, key: string): boolean => isDataVolume(object) && key === annotations.granted;

const values = fc.constantFrom('x', '[]', '{}', 'uid-1', 'volume', 'default', 'ubuntu');
const some = (keys: readonly string[]) =>
  fc.dictionary(fc.constantFrom(...keys), values, { minKeys: 1, maxKeys: keys.length });
const drafts = fc
  .record({
    type: fc.constantFrom(...goldenTypes),
    labels: some([...ownMarks.labels, 'mine']),
    annotations: some([...ownMarks.annotations, 'mine', 'harvesterhci.io/imageId']),
  })
  .map(({ type, ...marks }): Draft => {
    const namespace = type.namespaced ? { namespace: 'default' } : {};
    const spec =
      type.kind === 'DataVolume'
        ? { source: { blank: {} }, storage: { resources: { requests: { storage: '1Gi' } } } }
        : {};
    return { apiVersion: apiVersionOf(type), kind: type.kind, metadata: { name: 'any', ...namespace, ...marks }, spec };
  });

/** Everything that is written on an object, by key. */
const marksOf = ({ metadata }: Draft): Readonly<Record<string, string>> => ({
  ...(metadata['labels'] as object),
  ...(metadata['annotations'] as object),
});
const without = (object: Draft, keys: readonly string[]): Draft => {
  const rest = (map: string) =>
    Object.fromEntries(Object.entries(object.metadata[map] as object).filter(([key]) => !keys.includes(key)));
  return { ...object, metadata: { ...object.metadata, labels: rest('labels'), annotations: rest('annotations') } };
};
/** An object, and the same without some of its marks. */
const draftsAndBefore = drafts.chain((object) =>
  fc.subarray(Object.keys(marksOf(object))).map((changed) => ({ object, changed, before: without(object, changed) })),
);
const own: readonly string[] = [...ownMarks.labels, ...ownMarks.annotations];

describe('marks', () => {
  it('are all that is trusted on what stores an image', () => {
    const trusted = ['owner-uid', 'owner-kind', 'role', 'source', 'content', 'asked-content', 'exporting'];
    const notes = [
      'owner-name',
      'owner-namespace',
      'populated',
      'granted',
      'content',
      'exporting',
      'clone',
      'handover',
    ];
    const more = ['inspected', 'snapshot-class', 'attempt', 'deprecation', 'deleted', 'copy-of', 'golden-copy'];
    const keys = [...trusted, ...notes, ...more].map((name) => `bullion.dev/${name}`);
    expect(new Set(own)).toEqual(new Set([...keys, 'harvesterhci.io/goldenImage']));
  });

  it('are removed from objects of other users, and nothing else is', async () => {
    await fc.assert(
      fc.asyncProperty(drafts, async (object) => {
        const left = marksOf(await made(object));
        const wanted = Object.entries(marksOf(object)).filter(([key]) => !own.includes(key));
        expect(left).toEqual(Object.fromEntries(wanted));
      }),
    );
  });

  it('are rejected by name when mutation was bypassed', async () => {
    await fc.assert(
      fc.asyncProperty(drafts, async (object) => {
        const foreign = Object.keys(marksOf(object)).filter((key) => own.includes(key) && !isGrant(object, key));
        fc.pre(foreign.length > 0);
        const { allowed, status } = await ask(validate, '/validate', { object });
        const named = status?.details?.causes?.map(({ field }) => /\[(.*)\]/.exec(field)?.[1]);
        expect([allowed, new Set(named)]).toEqual([false, new Set(foreign)]);
      }),
    );
  });

  /** An update from one to the other: allowed, and the keys that the answer names. */
  const update = async (oldObject: Draft, object: Draft): Promise<readonly [boolean, ReadonlySet<string>]> => {
    const { allowed, status } = await ask(validate, '/validate', { oldObject, object });
    return [allowed, new Set(status?.details?.causes?.map(({ field }) => /\[(.*)\]/.exec(field)?.[1] ?? ''))];
  };

  it('are rejected by name when an update adds them, and nothing else is', async () => {
    await fc.assert(
      fc.asyncProperty(draftsAndBefore, async ({ object, before, changed }) => {
        const foreign = changed.filter((key) => own.includes(key));
        const marks = foreign.filter((key) => !isGrant(object, key));
        // The grant of a data volume is kept by a rule of its own, which is asked last.
        expect(await update(before, object)).toEqual([
          foreign.length === 0,
          new Set(marks.length > 0 ? marks : foreign),
        ]);
      }),
    );
  });

  it('may be removed by an update, and stay unchanged in one', async () => {
    await fc.assert(
      fc.asyncProperty(draftsAndBefore, async ({ object, before, changed }) => {
        const grants = changed.filter((key) => isGrant(object, key));
        expect(await update(object, before)).toEqual([grants.length === 0, new Set(grants)]);
        expect(await update(object, { ...object, metadata: { ...object.metadata, finalizers: ['mine'] } })).toEqual([
          true,
          new Set(),
        ]);
      }),
    );
  });

  it('may be written by Bullion', async () => {
    await fc.assert(
      fc.asyncProperty(drafts, async (object) => {
        const username = 'system:serviceaccount:bullion-system:initialize';
        expect(await made(object, username)).toEqual(object);
        expect(await ask(validate, '/validate', { object, username })).toMatchObject({ allowed: true });
      }),
    );
  });

  it('stay on the claim of a data volume that has them, as in CDI', async () => {
    const username = 'system:serviceaccount:cdi:cdi-sa';
    const { labels, annotations: notes } = goldenVolume.metadata;
    const object = claimOfVolume('image-a', { labels, annotations: notes });
    expect(await made(object, username)).toEqual(object);
    expect(await ask(validate, '/validate', { object, username })).toMatchObject({ allowed: true });
    const forged = claimOfVolume('image-a', { ...disksMarks, annotations: notes });
    expect(marksOf(await made(forged, username))).toEqual(notes);
  });

  it('do not block the deletion of a namespace', async () => {
    const ending: Draft = {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'default', deletionTimestamp: '2026-01-01T00:00:00Z' },
    };
    const asked = { oldObject: claim(owned('volume')) };
    const answer = (...given: readonly Draft[]) =>
      ask(createValidate({ kube: clusterOf(...given), log: silentLogger }), '/validate', asked);
    expect([(await answer(image)).allowed, (await answer(image, ending)).allowed]).toEqual([false, true]);
  });
});
