// The spool of an upload: in every plan that populates a volume by an upload, created before its Job and deleted before its disk is usable.
import { describe, expect, it } from 'vitest';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { csi } from '#shared/backends/csi/index.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { buildSpool, spoolName } from '#shared/populate/job/spool.ts';
import { requestedBytes } from '#shared/populate/population.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import {
  aFault,
  aJob,
  aPod,
  aStorageClass,
  aSuccess,
  aVolume,
  anImage,
  testSettings,
  testTime,
} from '#test/support/builders.ts';
import type { Plan } from '#shared/populate/actions.ts';

const settings = { ...testSettings, transferUrl: 'http://transfer.example' };
const context = { now: testTime, settings };
const image = anImage({
  source: { type: 'upload' },
  offered: { format: 'qcow2', compression: 'none', size: 3 * 2 ** 30, virtualSize: 2 ** 30 },
  storage: { className: 'local', volumeMode: 'Block' },
});
const spool = buildSpool(image.ref, { target: aVolume(), fileBytes: 0, overhead: 0.06 });
const leaving: PersistentVolumeClaim = {
  ...spool,
  metadata: { ...spool.metadata, uid: 's', deletionTimestamp: '2026-01-01T00:00:00Z' },
};
const there: PersistentVolumeClaim = { ...spool, metadata: { ...spool.metadata, uid: 's' } };
const active = aJob('import', { active: 1 });
const complete = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const success = aPod(complete, 'a', 'Succeeded', { report: aSuccess() });
const failure = aPod(complete, 'a', 'Succeeded', { report: aFault({ reason: 'UploadExpired', retryable: false }) });
const running = aPod(active, 'a', 'Running');

/** `create Spool` and the like. */
const actionsOf = ({ actions }: Plan): readonly string[] =>
  actions.map((action) => {
    const name = action.do === 'create' ? action.object.metadata.name : action.key.name;
    const isSpool = name.startsWith('spool-');
    return `${action.do} ${isSpool ? 'Spool' : action.type.kind.replace('PersistentVolumeClaim', 'Volume')}`;
  });

interface Row {
  readonly name: string;
  readonly spool?: PersistentVolumeClaim;
  readonly hasVolume: boolean;
  readonly job?: typeof active;
  readonly pods?: ObservedVolume['pods'];
  readonly actions: readonly string[];
}

const rows: readonly Row[] = [
  { name: 'nothing is there', hasVolume: false, actions: ['create Volume', 'create Spool', 'create Job'] },
  {
    name: 'what has arrived is there of a volume that is gone',
    spool: there,
    hasVolume: false,
    actions: ['create Volume', 'create Job'],
  },
  { name: 'a crash came after the volume', hasVolume: true, actions: ['create Spool', 'create Job'] },
  { name: 'a crash came after both claims', spool: there, hasVolume: true, actions: ['create Job'] },
  { name: 'bytes arrive', spool: there, hasVolume: true, job: active, pods: [running], actions: [] },
  { name: 'a user deleted it', hasVolume: true, job: active, pods: [running], actions: ['create Spool'] },
  { name: 'it is leaving', spool: leaving, hasVolume: true, job: active, pods: [running], actions: ['delete Job'] },
  {
    name: 'the rest was not sent',
    spool: there,
    hasVolume: true,
    job: complete,
    pods: [failure],
    actions: ['delete Job', 'delete Spool'],
  },
  {
    name: 'the disk is there',
    spool: there,
    hasVolume: true,
    job: complete,
    pods: [success],
    actions: ['delete Spool', 'patch Volume', 'delete Job'],
  },
  {
    name: 'the disk is there, and a crash came',
    hasVolume: true,
    job: complete,
    pods: [success],
    actions: ['patch Volume', 'delete Job'],
  },
];

describe('the spool of an image', () => {
  it.each(rows)('$name', ({ hasVolume, job, actions, pods = [], spool: found }) => {
    const observed: ObservedVolume = {
      pods,
      storageClass: aStorageClass(),
      ...(hasVolume ? { claim: aVolume() } : {}),
      ...(job === undefined ? {} : { job }),
      ...(found === undefined ? {} : { spool: found }),
    };
    const made = actionsOf(csi.initialize(image, observed, context)).filter((action) => !action.includes('Snapshot'));
    expect(made).toEqual(actions);
  });

  it('is deleted with it, and before it is restarted', () => {
    const observed = { pods: [], spool: there };
    expect(actionsOf(csi.delete(image, observed, context))).toEqual(['delete Spool']);
    expect(csi.delete(image, observed, context).removed).toBe(false);
    const failed: Partial<ImageState> = { phase: 'Failed', retryHandled: 'a' } as Partial<ImageState>;
    const again = { ...image, retryToken: 'b', state: { ...image.state, ...failed } };
    expect(actionsOf(csi.initialize(again, { ...observed, storageClass: aStorageClass() }, context))).toEqual([
      'delete Spool',
    ]);
  });
});

describe('an image that waits for a file', () => {
  const unsent = { ...image, offered: undefined };
  const observed = { pods: [], storageClass: aStorageClass() };
  const later = (hours: number) => ({ ...context, now: testTime + hours * 3_600_000 });

  it('reports it, with a deadline', () => {
    const { actions, state } = csi.initialize(unsent, observed, context);
    expect([actions, state]).toMatchObject([[], { reason: 'AwaitingUpload', deadline: '2026-01-02T04:04:05Z' }]);
    const again = csi.initialize({ ...unsent, state }, observed, later(0.9));
    expect(again.state).toMatchObject({ reason: 'AwaitingUpload', deadline: '2026-01-02T04:04:05Z' });
  });

  it('fails when no client sends one, and is restarted by a late upload', () => {
    const { state: first } = csi.initialize(unsent, observed, context);
    const { state } = csi.initialize({ ...unsent, state: first }, observed, later(1.1));
    expect(state).toMatchObject({
      phase: 'Failed',
      reason: 'UploadExpired',
      message: expect.stringMatching(/POST it/),
    });
    const sent = { ...image, retryToken: 'upload-1', state };
    expect(actionsOf(csi.initialize(sent, observed, later(1.2)))).toEqual([
      'create Volume',
      'create Spool',
      'create Job',
    ]);
  });
});

describe('the spool of a volume', () => {
  const volume: Volume = {
    ...image,
    source: { type: 'transfer', from: { type: 'upload' } },
    claim: { name: aVolume().metadata.name, bytes: 2 ** 30 },
    waitsForConsumer: false,
    state: initialState,
  };
  it.each(rows)('$name', ({ hasVolume, job, actions, pods = [], spool: found }) => {
    const observed: ObservedVolume = {
      pods,
      storageClass: aStorageClass(),
      ...(hasVolume ? { claim: aVolume() } : {}),
      ...(job === undefined ? {} : { job }),
      ...(found === undefined ? {} : { spool: found }),
    };
    expect(actionsOf(planVolume(volume, observed, context))).toEqual(actions);
  });
});

describe('the size of the spool is', () => {
  it.each([
    ['that of the disk and the tables of its file', 0, 2 ** 30 + 2 ** 24],
    ['that of the file, when that is larger', 3 * 2 ** 30, 3 * 2 ** 30],
  ])('%s', (_what, fileBytes, least) => {
    const target = { ...aVolume(), spec: { ...aVolume().spec, resources: { requests: { storage: '1Gi' } } } };
    const made = buildSpool(image.ref, { target, fileBytes, overhead: 0.06 });
    expect(requestedBytes(made)).toBeGreaterThanOrEqual(least * 1.06 - 2 ** 20);
    expect(requestedBytes(made)).toBeLessThan(least * 1.1 + 64 * 2 ** 20);
    expect(made).toMatchObject({
      metadata: { name: spoolName(image.ref) },
      spec: { volumeMode: 'Filesystem', storageClassName: target.spec.storageClassName },
    });
    expect(parseQuantity(made.spec.resources?.requests?.['storage'])).toBe(requestedBytes(made));
  });
});
