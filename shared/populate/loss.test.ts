// What is populated again after a loss never has different bytes without a report: through every backend that fetches, and for each way to compare.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import type { Image } from '#shared/backends/backend.ts';
import { backingImage } from '#shared/backends/backingimage/index.ts';
import { buildStorageClass } from '#shared/backends/backingimage/manifests.ts';
import { cdi } from '#shared/backends/cdi/index.ts';
import { buildDataVolume } from '#shared/backends/cdi/manifests.ts';
import { csi } from '#shared/backends/csi/index.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { contentCondition, lostState } from '#shared/populate/loss.ts';
import { restartedState } from '#shared/populate/state.ts';
import type { Source } from '#shared/populate/source.ts';
import { notesOf } from '#shared/resources/transitions.ts';
import {
  aBackingImage,
  aPopulation,
  aStorageClass,
  aVolume,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import { annotations } from '#shared/api/names.ts';

const url: Source = { type: 'http', url: 'https://a.example/x.img' };
const usable = (digests: ImageState['digests'], checksum?: string) => ({
  ...anImage({ state: { phase: 'Available', digests } }),
  checksum: checksum === undefined ? undefined : ({ algorithm: 'sha256', hex: checksum } as const),
});

/** Lost, started over, and usable again with `digests`; how it failed in between does not matter. */
const again = (image: ReturnType<typeof usable>, digests: ImageState['digests'], failures = 0): ImageState => {
  let state = lostState(image, 'it', url);
  for (let retry = 0; retry <= failures; retry++)
    state = restartedState({
      ...image,
      state: { ...state, phase: 'Failed', reason: 'ImageCorrupt' },
      retryToken: `${retry}`,
    });
  return { ...state, phase: 'Available', reason: 'Ready', digests };
};

const hex = fc.stringMatching(/^[0-9a-f]{8}$/);
const digests = fc.dictionary(fc.constantFrom('sha256', 'sha512', 'md5'), hex);

describe('a volume that was lost and is populated again', () => {
  it('reports by condition and Event exactly when its bytes differ, or cannot be compared', () => {
    fc.assert(
      fc.property(digests, digests, fc.nat(3), (before, now, failures) => {
        const state = again(usable(before), now, failures);
        const common = Object.keys(before).filter((name) => now[name] !== undefined);
        const isSame = common.length > 0 && common.every((name) => before[name] === now[name]);
        const warned = notesOf({ ...state, phase: 'Verifying' }, state).filter(({ type }) => type === 'Warning');
        // Real digests of one file all agree or all differ; that of the strongest algorithm decides here.
        fc.pre(isSame || common.every((name) => before[name] !== now[name]));
        expect(contentCondition(state)?.status).toBe(common.length === 0 ? 'Unknown' : isSame ? 'False' : 'True');
        expect(warned.map(({ reason }) => reason)).toEqual(
          isSame ? [] : [common.length === 0 ? 'ContentUnknown' : 'ContentChanged'],
        );
      }),
    );
  });

  it('reports it once, and again when another loss leads to other bytes', () => {
    const first = again(usable({ sha256: 'a' }), { sha256: 'b' });
    expect(notesOf(first, first)).toEqual([]);
    const second = again({ ...usable({}), state: first }, { sha256: 'c' });
    expect(contentCondition(second)?.message).toMatch(/was b and is c/);
  });

  it('is not compared when a checksum in the spec defines the bytes', () => {
    expect(contentCondition(again(usable({ sha256: 'a' }, 'a'), { sha256: 'a' }))).toBeUndefined();
  });

  it.each<[string, Source, RegExp]>([
    ['fetched', url, /new value of the annotation bullion\.dev\/retry .* compared with the lost content/],
    ['uploaded', { type: 'upload' }, /bullion\.dev\/retry, then upload the file again/],
  ])('says what to do when it was %s', (_how, source, message) => {
    expect(lostState(usable({}), 'the golden volume v', source).message).toMatch(message);
  });
});

describe('an image of each backend', () => {
  const context = { now: testTime, settings: testSettings };
  const marked = (hex: string | undefined) =>
    hex === undefined ? {} : { [annotations.populated]: JSON.stringify({ ...aPopulation, digests: { sha256: hex } }) };
  const claimOf = (hex: string | undefined): PersistentVolumeClaim => ({
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'ubuntu', namespace: 'default', uid: 'claim-uid', annotations: marked(hex) },
    spec: { storageClassName: 'local' },
    status: { phase: 'Bound', capacity: { storage: '1Gi' } },
  });
  const storageClass = aStorageClass();
  const cdiNothing = { foreign: [], pods: [], storageClass };
  const dataVolume = {
    ...buildDataVolume(anImage({ backend: 'cdi' }), { storageClass, diskBytes: 2 ** 30 }),
    status: { phase: 'Succeeded' },
  };
  const ofLonghorn = anImage({ backend: 'backingimage', storage: { classParameters: {} } });
  const longhornClass = buildStorageClass(ofLonghorn, `vmi-${ofLonghorn.ref.uid}`, {});
  const backing = (checksum: string | undefined) => {
    const built = aBackingImage([{ state: 'ready', progress: 100 }]);
    return { ...built, status: { ...built.status, ...(checksum === undefined ? {} : { checksum }) } };
  };

  interface Way {
    readonly backend: 'cdi' | 'backingimage';
    readonly algorithm: string;
    /** Its state with content of this digest; `null`: nothing is there. */
    readonly pass: (image: Image, content: { readonly hex: string | undefined } | null) => ImageState;
  }
  const ways: readonly Way[] = [
    {
      backend: 'cdi',
      algorithm: 'sha256',
      pass: (image, content) =>
        cdi.initialize(
          image,
          content === null ? cdiNothing : { ...cdiNothing, dataVolume, claim: claimOf(content.hex) },
          context,
        ).state,
    },
    {
      backend: 'backingimage',
      algorithm: 'sha512',
      pass: (image, content) =>
        backingImage.initialize(
          image,
          {
            isInstalled: true,
            users: [],
            ...(content === null ? {} : { backingImage: backing(content.hex), storageClass: longhornClass }),
          },
          context,
        ).state,
    },
  ];

  it.each(
    ways.flatMap((way) =>
      (
        [
          ['the same bytes', 'a', 'a', 'False', []],
          ['other bytes', 'a', 'b', 'True', ['ContentChanged']],
          ['bytes without a digest', 'a', undefined, 'Unknown', ['ContentUnknown']],
          ['bytes, of which none were known before', undefined, 'a', 'Unknown', ['ContentUnknown']],
        ] as const
      ).map(([what, before, now, status, warnings]) => ({ ...way, what, before, now, status, warnings })),
    ),
  )('$backend reports $what by condition and Event', ({ backend, pass, algorithm, before, now, status, warnings }) => {
    let image: Image = anImage({
      backend,
      storage: backend === 'cdi' ? { className: 'local' } : { classParameters: {} },
    });
    const step = (content: Parameters<typeof pass>[1], retryToken = image.retryToken): ImageState => {
      image = { ...image, retryToken };
      image = { ...image, state: pass(image, content) };
      return image.state;
    };
    expect(step({ hex: before })).toMatchObject({ phase: 'Available' });
    expect(step(null)).toMatchObject({ phase: 'Failed', reason: 'VolumeLost' });
    expect(step(null, '1').phase).toBe('Pending');
    const earlier = image.state;
    const state = step({ hex: now });
    expect(state.phase).toBe('Available');
    expect(contentCondition(state)?.status).toBe(status);
    const differs = `${algorithm} was ${before} and is ${now}`;
    expect((contentCondition(state)?.message ?? '').includes(differs)).toBe(status === 'True');
    const told = notesOf(earlier, state).filter(({ type }) => type === 'Warning');
    expect(told.map(({ reason }) => reason)).toEqual(warnings);
  });
});

describe('an image of the backend csi', () => {
  const context = { now: testTime, settings: testSettings };
  const filled = (sha256: string) =>
    aVolume({
      metadata: {
        ...aVolume().metadata,
        annotations: { [annotations.populated]: JSON.stringify({ ...aPopulation, digests: { sha256 } }) },
      },
    });

  it('keeps its digests through loss and retry until the new content of the source', () => {
    const observed = { pods: [], snapshotClasses: [] };
    let image = anImage({});
    const pass = (over: object, retryToken = image.retryToken) => {
      image = { ...image, retryToken };
      image = { ...image, state: csi.initialize(image, { ...observed, ...over }, context).state };
      return image.state;
    };
    expect(pass({ claim: filled('a') })).toMatchObject({ phase: 'Available', digests: { sha256: 'a' } });
    expect(pass({})).toMatchObject({ phase: 'Failed', reason: 'VolumeLost' });
    expect(pass({}, '1').phase).toBe('Pending');
    expect(contentCondition(pass({ claim: filled('b') }))).toMatchObject({
      status: 'True',
      message: expect.stringMatching(/sha256 was a and is b/) as string,
    });
  });
});
