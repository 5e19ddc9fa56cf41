import { describe, expect, test } from 'vitest';
import { isEmptied, isSameConditions, toConditions } from '#local-cluster/controllers/namespace-conditions.ts';

const nothing = {
  remaining: new Map<string, number>(),
  finalizers: new Map<string, number>(),
  failures: [],
  unknown: [],
};
const held = {
  remaining: new Map([
    ['secrets.', 2],
    ['jobs.batch', 1],
  ]),
  finalizers: new Map([['example.com/hold', 1]]),
  failures: [],
  unknown: [],
};
const early = '2026-01-01T00:00:00Z';
const late = '2026-01-01T00:01:00Z';
const find = (conditions: ReturnType<typeof toConditions>, type: string) =>
  conditions.find((condition) => condition.type === type);

describe('the conditions of a namespace that is being deleted', () => {
  test('list what remains, by kind in order, and the finalizers that block it', () => {
    const conditions = toConditions(held, [], early);
    expect(find(conditions, 'NamespaceContentRemaining')).toMatchObject({
      status: 'True',
      message: 'Some resources are remaining: jobs.batch has 1 resource instances, secrets. has 2 resource instances',
    });
    expect(find(conditions, 'NamespaceFinalizersRemaining')?.message).toContain('example.com/hold in 1');
  });

  test('keep their time until their status changes', () => {
    const before = toConditions(held, [], early);
    const after = toConditions(nothing, before, late);
    expect(find(after, 'NamespaceDeletionDiscoveryFailure')?.lastTransitionTime).toBe(early);
    expect(find(after, 'NamespaceContentRemaining')?.lastTransitionTime).toBe(late);
  });

  test('are unchanged while only time has passed', () => {
    expect(isSameConditions(toConditions(held, [], early), toConditions(held, [], late))).toBe(true);
    expect(isSameConditions(toConditions(held, [], early), toConditions(nothing, [], early))).toBe(false);
  });

  test('report a group that does not answer', () => {
    const unsure = { ...nothing, unknown: ['example.com: no answer'] };
    expect(isEmptied(nothing)).toBe(true);
    expect(isEmptied(unsure)).toBe(false);
    expect(find(toConditions(unsure, [], early), 'NamespaceDeletionDiscoveryFailure')?.status).toBe('True');
  });

  test('report a rejected deletion with its message', () => {
    const refused = { ...nothing, failures: ['denied by a webhook'] };
    expect(isEmptied(refused)).toBe(false);
    expect(find(toConditions(refused, [], early), 'NamespaceDeletionContentFailure')).toMatchObject({
      status: 'True',
      reason: 'ContentDeletionFailed',
      message: expect.stringContaining('denied by a webhook'),
    });
  });
});
