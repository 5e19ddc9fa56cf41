import { describe, expect, it } from 'vitest';
import { toChange } from './change.ts';
import { createRecent } from './recent.ts';

const change = (version: number, size: number, collection = 'configmaps') =>
  toChange({
    collection,
    namespace: 'default',
    name: 'one',
    version,
    change: 1,
    body: 'x'.repeat(size),
    previousBody: undefined,
  });

const versionsAfter = (recent: ReturnType<typeof createRecent>, version: number) =>
  recent.after('configmaps', version, 100)?.map((item) => item.version);

describe('the newest changes', () => {
  it('are those of the collection after the version, oldest first', () => {
    const recent = createRecent(4, { changes: 10, characters: 1000 });
    [change(5, 1), change(6, 1, 'secrets'), change(7, 1), change(8, 1)].forEach(recent.push);
    expect(versionsAfter(recent, 4)).toEqual([5, 7, 8]);
    expect(versionsAfter(recent, 7)).toEqual([8]);
    expect(versionsAfter(recent, 8)).toEqual([]);
    expect(recent.after('configmaps', 4, 2)).toHaveLength(2);
    expect(recent.after('configmaps', 3, 2)).toBeUndefined();
  });

  it('are limited by number', () => {
    const recent = createRecent(0, { changes: 3, characters: 1000 });
    for (let version = 1; version <= 6; version += 1) recent.push(change(version, 1));
    expect(versionsAfter(recent, 2)).toBeUndefined();
    expect(versionsAfter(recent, 3)).toEqual([4, 5, 6]);
  });

  it('are limited by size', () => {
    const recent = createRecent(0, { changes: 100, characters: 100 });
    for (let version = 1; version <= 5; version += 1) recent.push(change(version, 40));
    expect(versionsAfter(recent, 2)).toBeUndefined();
    expect(versionsAfter(recent, 3)).toEqual([4, 5]);
  });

  it('are none when one change exceeds the limit', () => {
    const recent = createRecent(0, { changes: 100, characters: 10 });
    recent.push(change(1, 500));
    expect(versionsAfter(recent, 0)).toBeUndefined();
    expect(versionsAfter(recent, 1)).toEqual([]);
  });
});
