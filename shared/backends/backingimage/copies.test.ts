// The combined state of the copies of a backing image: Longhorn's states, one row each, and several at once.
import { describe, expect, it } from 'vitest';
import type { BackingImageCopy, CopyState } from '#shared/api/foreign/longhorn.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import { aBackingImage } from '#test/support/builders.ts';

const fold = (...states: readonly CopyState[]) => foldCopies(aBackingImage(states.map((state) => ({ state }))));
const told = (...states: readonly CopyState[]): string => {
  const copies = fold(...states);
  return copies.is === 'running' ? copies.step : copies.is;
};

describe('the copies of a backing image', () => {
  it.each<[state: CopyState, is: string]>([
    ['pending', 'waiting'],
    ['starting', 'waiting'],
    ['in-progress', 'moving'],
    ['ready-for-transfer', 'handing-over'],
    ['ready', 'ready'],
    ['failed', 'failed'],
    ['failed-and-cleanup', 'failed'],
    ['unknown', 'unknown'],
  ])('in the state %s are: %s', (state, is) => {
    expect(told(state)).toBe(is);
  });

  it.each<[is: string, states: readonly CopyState[]]>([
    ['waiting', []],
    ['ready', ['failed', 'ready', 'in-progress']],
    ['ready', ['unknown', 'ready']],
    ['moving', ['failed', 'in-progress']],
    ['moving', ['failed-and-cleanup', 'pending', 'in-progress']],
    ['handing-over', ['pending', 'ready-for-transfer']],
    ['unknown', ['failed', 'unknown']],
    ['failed', ['failed', 'failed-and-cleanup', 'failed']],
  ])('are %s: %j', (is, states) => {
    expect(told(...states)).toBe(is);
  });

  it('report the progress of the first, and 100 only when a copy is complete', () => {
    const copies: readonly (BackingImageCopy & { state: CopyState })[] = [
      { state: 'in-progress', progress: 30 },
      { state: 'in-progress', progress: 100 },
    ];
    expect(foldCopies(aBackingImage(copies))).toMatchObject({ is: 'running', percent: 99 });
  });

  it('fail with the last message that was reported, at the time of the last failure', () => {
    const copies: readonly (BackingImageCopy & { state: CopyState })[] = [
      { state: 'failed', lastStateTransitionTime: '2026-01-01T00:00:02Z' },
      { state: 'failed', message: 'no space', lastStateTransitionTime: '2026-01-01T00:00:01Z' },
    ];
    expect(foldCopies(aBackingImage(copies))).toEqual({
      is: 'failed',
      message: 'no space',
      time: '2026-01-01T00:00:02Z',
    });
  });
});
