// Progress reports arrive late, twice and out of order. Progress in the status never decreases.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Image } from '#shared/backends/backend.ts';
import type { TransferState } from '#shared/populate/filled.ts';
import { fillable, foldProgress } from './fillable.ts';
import type { TransferProgress } from '#shared/transfer/report.ts';
import { anImage, testTime } from '#test/support/builders.ts';

const job = 'import-uid';
const startedAt = '2026-01-02T03:00:00Z';

const report = (over: Partial<TransferProgress> = {}): TransferProgress => ({
  run: `${job}-aaaaa`,
  startedAt,
  sequence: 1,
  phase: 'Downloading',
  percent: 10,
  receivedBytes: 100,
  ...over,
});

const known = (over: Partial<TransferState> = {}): TransferState => ({
  ...report({ sequence: 5, percent: 50 }),
  reportedAt: new Date(testTime - 10_000).toISOString(),
  ...over,
});

const running = (over: Parameters<typeof anImage>[0] = {}): Image =>
  anImage({ ...over, state: { phase: 'Downloading', attempts: 1, children: { job }, ...over.state } });

describe('foldProgress', () => {
  it.each([
    ['the first report', running(), report(), { phase: 'Downloading', progress: 10, attempts: 1 }],
    [
      'a newer report',
      running({ state: { transfer: known(), progress: 50 } }),
      report({ sequence: 6, percent: 60 }),
      { progress: 60 },
    ],
    [
      'a lower percentage',
      running({ state: { transfer: known(), progress: 50 } }),
      report({ sequence: 6, percent: 40 }),
      { progress: 50 },
    ],
    [
      'a conversion',
      running({ state: { transfer: known(), progress: 50 } }),
      report({ sequence: 6, phase: 'Converting' }),
      { phase: 'Converting', reason: 'Converting' },
    ],
    [
      'a new run',
      running({ state: { transfer: known(), progress: 50, attemptsFailed: 1 } }),
      report({ run: `${job}-bbbbb`, startedAt: '2026-01-02T03:01:00Z', percent: 5 }),
      { progress: 5, attempts: 2 },
    ],
    [
      'an inspection',
      running({ state: { phase: 'Pending', children: { job: 'inspect-uid' } } }),
      report({ run: 'inspect-uid-aaaaa', phase: 'Inspecting', percent: 30 }),
      { phase: 'Pending', reason: 'Inspecting', progress: 0 },
    ],
    [
      'an inspection that must read everything, which is not a download',
      running({ state: { phase: 'Pending', children: { job: 'inspect-uid' } } }),
      report({ run: 'inspect-uid-aaaaa', percent: 48.7 }),
      {
        phase: 'Pending',
        reason: 'Inspecting',
        progress: 0,
        message: 'attempt 1 of 4: reading all of the source to find its size: 48 % done',
      },
    ],
    [
      'the look of an import at its source, as part of the download',
      running(),
      report({ phase: 'Inspecting', percent: 30, note: 'cannot connect' }),
      {
        phase: 'Downloading',
        reason: 'Downloading',
        progress: 0,
        message: 'attempt 1 of 4: downloading (cannot connect)',
      },
    ],
    [
      'the result of the inspection',
      running(),
      report({ inspection: { format: 'qcow2', compression: 'none', size: 7, virtualSize: 9 } }),
      { inspection: { format: 'qcow2', compression: 'none', size: 7, virtualSize: 9 } },
    ],
    [
      'a note',
      running(),
      report({ note: 'connection reset, resuming' }),
      { message: 'attempt 1 of 4: downloading (connection reset, resuming)' },
    ],
    [
      'an upload that is awaited',
      running({ isUpload: true }),
      report({ phase: 'Inspecting', percent: 0, note: 'waiting for the upload' }),
      { phase: 'Downloading', reason: 'Downloading', message: 'attempt 1 of 4: waiting for the upload' },
    ],
    [
      'an upload that arrives',
      running({ isUpload: true }),
      report({ note: 'nothing received for more than 10 s' }),
      { message: 'attempt 1 of 4: receiving the upload (nothing received for more than 10 s)' },
    ],
  ] as const)('takes %s', (_name, image, news, state) => {
    expect(foldProgress(image, news, testTime)).toMatchObject(state);
  });

  it.each([
    ['an older report of the same run', running({ state: { transfer: known() } }), report({ sequence: 4 })],
    ['the same report again', running({ state: { transfer: known() } }), report({ sequence: 5 })],
    [
      'a report of an earlier run',
      running({ state: { transfer: known() } }),
      report({ run: `${job}-00000`, startedAt: '2026-01-02T02:00:00Z', sequence: 99 }),
    ],
    ['a report of another Job', running(), report({ run: 'inspect-uid-aaaaa' })],
    ['a report for an image that waits for no transfer', anImage(), report()],
    ['a report for an image that is available', running({ state: { phase: 'Available' } }), report()],
    ['a report for an image that has failed', running({ state: { phase: 'Failed' } }), report()],
    ['a report for an image that is snapshotted', running({ state: { phase: 'Snapshotting' } }), report()],
    ['a report for an image that is being deleted', running({ deleting: true }), report()],
    [
      'a report within two seconds of the last one',
      running({
        state: {
          transfer: known({ reportedAt: new Date(testTime - 1999).toISOString() }),
          inspection: { format: 'raw', compression: 'none', virtualSize: 1 },
        },
      }),
      report({ sequence: 6 }),
    ],
  ] as const)('ignores %s', (_name, image, news) => {
    expect(foldProgress(image, news, testTime)).toBeUndefined();
  });

  it('never decreases, whatever the order of the reports', () => {
    const news = fc.record({
      run: fc.constantFrom('a', 'b'),
      sequence: fc.nat(20),
      percent: fc.integer({ min: 0, max: 99 }),
    });
    const began = { a: startedAt, b: '2026-01-02T03:30:00Z' };
    fc.assert(
      fc.property(fc.array(news, { maxLength: 30 }), (reports) => {
        let image = running();
        const history = reports.flatMap(({ run, sequence, percent }, index) => {
          const next = report({ run: `${job}-${run}`, startedAt: began[run], sequence, percent });
          const state = foldProgress(image, next, testTime + index * 3000);
          if (state === undefined) return [];
          image = { ...image, state };
          return [{ run, sequence, progress: state.progress }];
        });
        const sorted = history.toSorted((x, y) => x.run.localeCompare(y.run) || x.sequence - y.sequence);
        expect(history).toEqual(sorted);
        for (const run of ['a', 'b']) {
          const progress = history.filter((step) => step.run === run).map((step) => step.progress);
          expect(progress).toEqual(progress.toSorted((x, y) => x - y));
        }
      }),
    );
  });
});

describe('a failed object', () => {
  const refused = { phase: 'Failed', reason: 'InvalidSpec', message: 'it has no source', failures: 2 } as const;

  it('begins again where it was refused before anything was created: the refusal may be over', () => {
    expect(fillable.revived(anImage({ state: refused }))).toMatchObject({ phase: 'Pending', failures: 2 });
  });

  it('stays failed where a worker found the same: it would find it again', () => {
    const lastFailure = { reason: 'InvalidSpec', message: 'the Secret has no key' };
    const state = { ...refused, attempts: 1, lastFailure };
    expect(fillable.revived(anImage({ state }))).toMatchObject({ phase: 'Failed', attempts: 1 });
  });
});
