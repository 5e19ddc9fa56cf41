// A night without a byte: the Job of an upload ends, its bytes stay, and the client that returns starts another Job.
import { describe, expect, it } from 'vitest';
import type { Job } from '#shared/api/foreign/core.ts';
import { type ImageState, initialState } from '#shared/populate/filled.ts';
import { buildSpool } from '#shared/populate/job/spool.ts';
import { planVolume } from '#shared/populate/volume/plan.ts';
import type { ObservedVolume } from '#shared/populate/volume/observed.ts';
import type { Volume } from '#shared/populate/volume/volume.ts';
import type { Plan } from '#shared/populate/actions.ts';
import { aFault, aJob, aPod, aStorageClass, aVolume, anImage, testSettings, testTime } from '#test/support/builders.ts';

const settings = { ...testSettings, transferUrl: 'http://transfer.example' };
const image = anImage({ source: { type: 'upload' } });
const volume: Volume = {
  ...image,
  source: { type: 'transfer', from: { type: 'upload' } },
  claim: { name: aVolume().metadata.name, bytes: 2 ** 30 },
  waitsForConsumer: false,
  state: initialState,
};
const made = buildSpool(image.ref, { target: aVolume(), fileBytes: 0, overhead: 0.06 });
const spool = { ...made, metadata: { ...made.metadata, uid: 's' } };
const ended = aJob('import', { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] });
const fault = aFault({
  reason: 'UploadPaused',
  retryable: true,
  message: 'no bytes for 300 s, after 1000 of them',
});
const silent = aPod(ended, 'a', 'Succeeded', { report: fault });

const after = (hours: number) => ({ now: testTime + hours * 3_600_000, settings });
const observed = (more: Partial<ObservedVolume> = {}): ObservedVolume => ({
  pods: [],
  storageClass: aStorageClass(),
  claim: aVolume(),
  spool,
  ...more,
});
const downloading: ImageState = { ...initialState, phase: 'Downloading', reason: 'Downloading', progress: 40 };
const evening = planVolume({ ...volume, state: downloading }, observed({ job: ended, pods: [silent] }), after(0));
const paused = { ...volume, state: evening.state };
const back = { ...paused, resumedPause: evening.state.deadline };
const leaving: Job = { ...ended, metadata: { ...ended.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
const active = aJob('import', { active: 1 });

const told = ({ actions, state }: Plan) => ({
  actions: actions.map((action) => `${action.do} ${action.type.kind}`),
  reason: state.reason,
});

describe('an upload without a client', () => {
  it('is paused: its Job goes, its bytes stay, and the status says until when', () => {
    expect(told(evening)).toEqual({ actions: ['delete Job'], reason: 'UploadPaused' });
    expect(evening.state).toMatchObject({ phase: 'Pending', progress: 40, deadline: expect.stringMatching(/Z$/) });
    expect(evening.state.message).toMatch(/^no bytes for 300 s, after 1000 of them; they are kept until .*continues/);
  });

  it.each([
    ['nothing runs at night', paused, 12, observed(), [], 'UploadPaused'],
    ['its Job is being deleted', paused, 0, observed({ job: leaving }), [], 'UploadPaused'],
    ['a crash came before its Job was deleted', paused, 1, observed({ job: ended }), ['delete Job'], 'UploadPaused'],
    ['the client is back in the morning', back, 12, observed(), ['create Job'], 'Starting'],
    ['it is back before the Job is gone', back, 0, observed({ job: ended }), ['delete Job'], 'UploadPaused'],
    ['it is back, and a crash came after the new Job', back, 12, observed({ job: active }), [], 'Starting'],
    [
      'the mark of an earlier pause is no sign of its client',
      { ...paused, resumedPause: '2025-12-31T00:00:00Z' },
      12,
      observed(),
      [],
      'UploadPaused',
    ],
    ['it never comes back', paused, 25, observed(), ['delete PersistentVolumeClaim'], 'UploadExpired'],
    [
      'somebody deleted the bytes',
      paused,
      12,
      observed({ spool: undefined }),
      ['create PersistentVolumeClaim', 'create Job'],
      'Starting',
    ],
  ] as const)('%s', (_what, of, hours, found, actions, reason) => {
    expect(told(planVolume(of, found, after(hours)))).toEqual({ actions, reason });
  });

  it('gives the Job that continues a deadline of its own', () => {
    const { state } = planVolume(back, observed(), after(12));
    expect(Date.parse(state.deadline ?? '')).toBe(after(12).now + settings.childSeconds * 1000);
  });

  it('fails at last with what to do', () => {
    const { state } = planVolume(paused, observed(), after(25));
    expect(state).toMatchObject({ phase: 'Failed', message: expect.stringMatching(/bullion\.dev\/retry/) });
  });
});
