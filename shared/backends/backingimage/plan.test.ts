// The decisions of the backend backingimage, one row per situation. Plans are pure, so a row is an image, the observed state, and the expected result.
import { describe, expect, it } from 'vitest';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import type { BackingImage, BackingImageCopy, CopyState } from '#shared/api/foreign/longhorn.ts';
import { annotations } from '#shared/api/names.ts';
import { backingImage as backend } from '#shared/backends/backingimage/index.ts';
import { buildStorageClass } from '#shared/backends/backingimage/manifests.ts';
import { initialize } from '#shared/backends/backingimage/plan.ts';
import { planDelete } from '#shared/backends/backingimage/plan.ts';
import type { ObservedBackingImage } from '#shared/backends/backingimage/observed.ts';
import type { ImageState } from '#shared/populate/filled.ts';
import { aBackingImage, anImage as anyImage, imageRef, testSettings, testTime } from '#test/support/builders.ts';
import type { Plan } from '#shared/populate/actions.ts';
import type { Image } from '#shared/backends/backend.ts';

type Copy = BackingImageCopy & { readonly state: CopyState };

const context = { now: testTime, settings: testSettings };
const name = `vmi-${imageRef.uid}`;
const anImage = (over: Parameters<typeof anyImage>[0] = {}): Image =>
  anyImage({ backend: 'backingimage', storage: { classParameters: { numberOfReplicas: '3' } }, ...over });
const storageClass: StorageClass = {
  ...buildStorageClass(anImage(), name, {}),
  metadata: { ...buildStorageClass(anImage(), name, {}).metadata, uid: 'class-uid' },
};
const origin = { is: 'ready', origin: { sourceType: 'download', parameters: { url: 'https://x.example' } } } as const;
const observed = (over: Partial<ObservedBackingImage> = {}): ObservedBackingImage => ({
  isInstalled: true,
  users: [],
  ...over,
});
const copied = (...copies: readonly Copy[]) => observed({ backingImage: aBackingImage(copies), storageClass });
const failedCopy: Copy = {
  state: 'failed',
  message: 'connection reset',
  lastStateTransitionTime: '2026-01-02T03:04:00Z',
};
const attempt = (count: number, copies: readonly Copy[]): BackingImage => {
  const built = aBackingImage(copies);
  const marks = { ...built.metadata.annotations, [annotations.attempt]: String(count) };
  return { ...built, metadata: { ...built.metadata, annotations: marks } };
};

const leaving: BackingImage = {
  ...aBackingImage([{ state: 'in-progress' }]),
  metadata: { ...aBackingImage().metadata, deletionTimestamp: '2026-01-02T03:04:00Z' },
};

/** In progress, and created for that retry. */
const answering = (retryToken: string): ObservedBackingImage => {
  const built = aBackingImage([{ state: 'in-progress', progress: 10 }]);
  const marks = { ...built.metadata.annotations, [annotations.retry]: retryToken };
  return observed({ backingImage: { ...built, metadata: { ...built.metadata, annotations: marks } }, storageClass });
};

const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) => {
    const of = action.do === 'create' ? action.object.metadata.name : action.key.name;
    return `${action.do} ${action.type.kind} ${of.replace(/[0-9a-f-]{36}$/, '<uid>')}`;
  });

interface Row {
  readonly name: string;
  readonly image?: Image;
  readonly observed: ObservedBackingImage;
  readonly actions: readonly string[];
  readonly state: Partial<ImageState>;
}

const rows: readonly Row[] = [
  {
    name: 'a new image: backing image and class are made together',
    observed: observed({ origin }),
    actions: ['create BackingImage vmi-<uid>', 'create StorageClass lh-<uid>'],
    state: { phase: 'Pending', reason: 'Starting', attempts: 1, storageClassName: storageClass.metadata.name },
  },
  {
    name: 'Longhorn is not installed: reported, until a deadline',
    observed: observed({ isInstalled: false }),
    actions: [],
    state: { phase: 'Pending', reason: 'BackendUnavailable', deadline: '2026-01-02T03:14:05Z' },
  },
  {
    name: 'the name is in use by a backing image of another owner',
    observed: observed({ foreign: aBackingImage() }),
    actions: [],
    state: { phase: 'Pending', reason: 'NameTaken' },
  },
  {
    name: 'a source that is not there yet is waited for',
    observed: observed({ origin: { is: 'waiting', reason: 'SourceNotFound', message: 'no' } }),
    actions: [],
    state: { phase: 'Pending', reason: 'SourceNotFound' },
  },
  {
    name: 'a source that can never be one fails the image',
    observed: observed({ origin: { is: 'refused', reason: 'SourceElsewhere', message: 'no' } }),
    actions: [],
    state: { phase: 'Failed', reason: 'SourceElsewhere' },
  },
  {
    name: 'no copy yet',
    observed: copied(),
    actions: [],
    state: { phase: 'Pending', reason: 'Starting', attempts: 1 },
  },
  {
    name: 'one copy moves',
    observed: copied({ state: 'in-progress', progress: 40 }),
    actions: [],
    state: { phase: 'Downloading', progress: 40, message: 'attempt 1 of 4: downloading', attempts: 1 },
  },
  {
    name: 'progress does not fall within an attempt',
    image: anImage({ state: { phase: 'Downloading', progress: 60, attempts: 1 } }),
    observed: copied({ state: 'in-progress', progress: 40 }),
    actions: [],
    state: { progress: 60 },
  },
  {
    name: '100 % of Longhorn is not ready yet',
    observed: copied({ state: 'ready-for-transfer', progress: 100 }),
    actions: [],
    state: { phase: 'Verifying', progress: 99 },
  },
  {
    name: 'one ready copy is enough, whatever the others are',
    image: anImage({ state: { phase: 'Verifying', progress: 99, attempts: 1 } }),
    observed: copied({ state: 'failed', message: 'no space' }, { state: 'ready' }, { state: 'in-progress' }),
    actions: [],
    state: {
      phase: 'Available',
      progress: 100,
      inspection: { format: 'qcow2', compression: 'none', size: 1000, virtualSize: 2 ** 30 },
    },
  },
  {
    name: 'a failed copy beside one that moves fails nothing',
    observed: copied(failedCopy, { state: 'in-progress', progress: 10 }),
    actions: [],
    state: { phase: 'Downloading', attemptsFailed: 0 },
  },
  {
    name: 'the class went missing: it is made again, and nothing is downloaded',
    image: anImage({ state: { phase: 'Available', progress: 100, attempts: 1 } }),
    observed: observed({ backingImage: aBackingImage([{ state: 'ready' }]) }),
    actions: ['create StorageClass lh-<uid>'],
    state: { phase: 'Available', progress: 100 },
  },
  {
    name: 'all copies failed: counted first, thrown away later',
    image: anImage({ state: { phase: 'Downloading', progress: 98, attempts: 1 } }),
    observed: copied(failedCopy),
    actions: [],
    state: { phase: 'Pending', progress: 0, attemptsFailed: 1, failures: 1, nextAttemptTime: '2026-01-02T03:04:10Z' },
  },
  {
    name: 'the last attempt failed: nothing of its progress stays',
    image: anImage({ retries: 0, state: { phase: 'Downloading', progress: 98, attempts: 1 } }),
    observed: copied(failedCopy),
    actions: [],
    state: { phase: 'Failed', progress: 0, attemptsFailed: 1 },
  },
  ...[1000, 1024].map((virtualSize) => ({
    name: `a raw file of 1000 bytes, as a disk of ${virtualSize}, is none that volumes can be made of`,
    image: anImage({ state: { phase: 'Verifying' as const, progress: 99, attempts: 1 } }),
    observed: observed({
      storageClass,
      backingImage: aBackingImage([], {
        status: { size: 1000, virtualSize, diskFileStatusMap: { d: { state: 'ready' } } },
      }),
    }),
    actions: [],
    state: { phase: 'Failed' as const, reason: 'UnsupportedFormat', message: expect.stringMatching(/1000 bytes.*512/) },
  })),
  {
    name: 'a failure that was counted is not counted again',
    image: anImage({
      state: { phase: 'Pending', attempts: 1, attemptsFailed: 1, failures: 1, lastFailureTime: '2026-01-02T03:04:00Z' },
    }),
    observed: copied(failedCopy),
    actions: [],
    state: { attemptsFailed: 1, failures: 1, nextAttemptTime: '2026-01-02T03:04:10Z' },
  },
  {
    name: 'the time of the next attempt has come: what failed is removed',
    image: anImage({
      state: { phase: 'Pending', attempts: 1, attemptsFailed: 1, failures: 1, lastFailureTime: '2026-01-02T03:03:00Z' },
    }),
    observed: copied(failedCopy),
    actions: ['delete BackingImage vmi-<uid>'],
    state: { phase: 'Pending', attemptsFailed: 1, failures: 1 },
  },
  {
    name: 'the next attempt carries its number',
    image: anImage({ state: { phase: 'Pending', attempts: 1, attemptsFailed: 1, failures: 1 } }),
    observed: observed({ origin, storageClass }),
    actions: ['create BackingImage vmi-<uid>'],
    state: { phase: 'Pending', attempts: 2 },
  },
  {
    name: 'the last attempt failed',
    image: anImage({ state: { phase: 'Downloading', attempts: 4, attemptsFailed: 3, failures: 3 } }),
    observed: observed({ backingImage: attempt(4, [failedCopy]), storageClass }),
    actions: [],
    state: { phase: 'Failed', reason: 'TransferFailed', attemptsFailed: 4, failures: 4 },
  },
  {
    name: 'a crash lost the count: the backing image has it',
    image: anImage({ state: { phase: 'Pending', attempts: 0 } }),
    observed: observed({ backingImage: attempt(4, [failedCopy]), storageClass }),
    actions: [],
    state: { phase: 'Failed', attempts: 4, attemptsFailed: 4, failures: 4 },
  },
  {
    name: 'a wrong checksum is not downloaded again',
    image: anImage({ state: { phase: 'Verifying', attempts: 1, progress: 99 } }),
    observed: copied({ state: 'failed', message: 'the current checksum ab does not match the expected checksum cd' }),
    actions: [],
    state: { phase: 'Failed', reason: 'ChecksumMismatch', attemptsFailed: 1 },
  },
  {
    name: 'Longhorn forgot to compare the checksum',
    image: anImage({ checksum: { algorithm: 'sha512', hex: 'cd' } }),
    observed: observed({
      backingImage: aBackingImage([], { status: { checksum: 'ab', diskFileStatusMap: { d: { state: 'ready' } } } }),
    }),
    actions: [],
    state: { phase: 'Failed', reason: 'ChecksumMismatch' },
  },
  {
    name: 'an upload waits for its client',
    image: anImage({ source: { type: 'upload' } }),
    observed: copied({ state: 'pending' }),
    actions: [],
    state: { phase: 'Pending', reason: 'WaitingForUpload' },
  },
  {
    name: 'nothing moves for too long: stopped',
    image: anImage({ state: { phase: 'Pending', reason: 'Starting', attempts: 1, deadline: '2026-01-02T03:00:00Z' } }),
    observed: copied({ state: 'pending' }),
    actions: ['delete BackingImage vmi-<uid>'],
    state: { phase: 'Failed', reason: 'Starting' },
  },
  {
    name: 'it is being deleted: waited for, and not for ever',
    observed: observed({ backingImage: leaving, storageClass }),
    actions: [],
    state: { phase: 'Pending', reason: 'ChildDeleted', deadline: '2026-01-02T03:14:05Z' },
  },
  {
    name: 'another clone of its source is under way: waited for in line',
    observed: observed({ origin: { is: 'busy', reason: 'SourceBusy', message: 'one at a time' } }),
    actions: [],
    state: { phase: 'Pending', reason: 'SourceBusy', deadline: undefined },
  },
  {
    name: 'a node is away: a usable image stays usable',
    image: anImage({ state: { phase: 'Available', progress: 100 } }),
    observed: copied({ state: 'unknown' }),
    actions: [],
    state: { phase: 'Available' },
  },
  {
    name: 'the backing image of a usable image is gone',
    image: anImage({ state: { phase: 'Available', progress: 100 } }),
    observed: observed(),
    actions: [],
    state: { phase: 'Failed', reason: 'VolumeLost' },
  },
  {
    name: 'a retry throws away what failed',
    image: anImage({ retryToken: '1', state: { phase: 'Failed', attempts: 4, attemptsFailed: 4, failures: 4 } }),
    observed: copied(failedCopy),
    actions: ['delete BackingImage vmi-<uid>'],
    state: { phase: 'Pending', reason: 'Restarting', failures: 4 },
  },
  {
    name: 'a retry starts with all its attempts',
    image: anImage({ retryToken: '1', state: { phase: 'Pending', attempts: 4, attemptsFailed: 4, failures: 4 } }),
    observed: observed({ origin, storageClass }),
    actions: ['create BackingImage vmi-<uid>'],
    state: { attempts: 1, attemptsFailed: 0, failures: 4, handledRetryToken: '1' },
  },
  {
    name: 'a retry deletes what is still in progress',
    image: anImage({ retryToken: '1', state: { phase: 'Downloading', attempts: 1 } }),
    observed: answering('0'),
    actions: ['delete BackingImage vmi-<uid>'],
    state: { phase: 'Pending', reason: 'Restarting' },
  },
  {
    name: 'a retry keeps what a pass created for it whose status was lost',
    image: anImage({ retryToken: '1', state: { phase: 'Downloading', attempts: 1 } }),
    observed: answering('1'),
    actions: [],
    state: { phase: 'Downloading', handledRetryToken: '1' },
  },
  {
    name: 'a retry keeps bytes that are good',
    image: anImage({ retryToken: '1', state: { phase: 'Failed', reason: 'NameTaken' } }),
    observed: copied({ state: 'ready' }),
    actions: [],
    state: { phase: 'Available', handledRetryToken: '1' },
  },
];

describe('initialize', () => {
  it.each(rows)('$name', ({ image = anImage(), observed: world, actions, state }) => {
    const plan = initialize(image, world, context);
    expect({ actions: actionsOf(plan), state: plan.state }).toEqual({ actions, state: expect.objectContaining(state) });
  });

  it('labels a backing image that Harvester created, so that its changes are observed', () => {
    const made = aBackingImage([{ state: 'ready' }], {
      metadata: { name: 'default-ubuntu', namespace: 'longhorn-system' },
    });
    const legacy = { ...made, metadata: { ...made.metadata, labels: {}, annotations: {} } };
    const plan = initialize(anImage(), observed({ backingImage: legacy, storageClass }), context);
    expect(plan.actions).toMatchObject([
      { do: 'patch', patch: { metadata: { labels: { 'bullion.dev/owner-uid': imageRef.uid } } } },
    ]);
    expect(plan.state).toMatchObject({ phase: 'Available', children: { backingImage: 'default-ubuntu' } });
  });

  it('sets a virtual size that is reported late', () => {
    const image = anImage({
      state: { phase: 'Available', inspection: { format: 'raw', compression: 'none', size: 1000 } },
    });
    const of = (virtualSize: number) =>
      observed({ backingImage: aBackingImage([{ state: 'ready' }], { status: { size: 1000, virtualSize } }) });
    expect(backend.updateVirtualSize(image, of(0))).toBeUndefined();
    expect(backend.updateVirtualSize(image, of(4096))).toMatchObject({ inspection: { size: 1000, virtualSize: 4096 } });
  });
});

describe('delete', () => {
  const deleting = anImage({ deleting: true, state: { phase: 'Available' } });

  it('deletes the backing image first, then the class', () => {
    const plan = planDelete(deleting, copied({ state: 'ready' }));
    expect(actionsOf(plan)).toEqual(['delete BackingImage vmi-<uid>', 'delete StorageClass lh-<uid>']);
    expect(plan).toMatchObject({ removed: false, actions: [{ propagation: 'Foreground' }, {}] });
  });

  it('waits for volumes that use it, and names them', () => {
    const plan = planDelete(deleting, { ...copied({ state: 'ready' }), users: ['PersistentVolumeClaim default/root'] });
    expect(plan).toMatchObject({ actions: [], removed: false, state: { phase: 'Terminating', reason: 'InUse' } });
    expect(plan.state.message).toContain('PersistentVolumeClaim default/root');
  });

  it('is finished when nothing remains', () => {
    expect(planDelete(deleting, observed())).toMatchObject({ actions: [], removed: true });
  });
});
