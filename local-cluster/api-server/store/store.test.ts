import { mkdtemp, rm } from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ApiObject } from '../objects/object.ts';
import { type Store, createStore } from './store.ts';

const keyOf = (name: string, namespace = 'default') => ({ collection: 'configmaps', namespace, name });

const aConfigMap = (name: string, value = ''): ApiObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace: 'default' },
  data: { value },
});

const open = (historyLimit = 1000): Store => createStore({ file: ':memory:', historyLimit });

const namesOf = (store: Store, at?: number): (string | undefined)[] =>
  store.page({ collection: 'configmaps', limit: 1000, at }).entries.map((entry) => entry.name);

describe('createStore', () => {
  test('gives each write a separate version and returns it with the object', () => {
    const store = open();
    const first = store.create(keyOf('a'), aConfigMap('a'));
    const second = store.replace(keyOf('a'), first!.version, aConfigMap('a', 'x'));
    expect(second!.version).toBeGreaterThan(first!.version);
    expect(store.get(keyOf('a'))!.object().metadata.resourceVersion).toBe(String(second!.version));
  });

  test('rejects a second create, and a replace or remove of a changed object', () => {
    const store = open();
    const { version } = store.create(keyOf('a'), aConfigMap('a'))!;
    expect(store.create(keyOf('a'), aConfigMap('a'))).toBeUndefined();
    store.replace(keyOf('a'), version, aConfigMap('a', 'x'));
    expect(store.replace(keyOf('a'), version, aConfigMap('a', 'y'))).toBeUndefined();
    expect(store.remove(keyOf('a'), version, aConfigMap('a'))).toBeUndefined();
    expect(store.get(keyOf('a'))!.object()['data']).toEqual({ value: 'x' });
  });

  test('lists a collection as of an earlier version', () => {
    const store = open();
    const a = store.create(keyOf('a'), aConfigMap('a'))!;
    const b = store.create(keyOf('b'), aConfigMap('b'))!;
    store.remove(keyOf('a'), a.version, aConfigMap('a'));
    expect(namesOf(store, a.version)).toEqual(['a']);
    expect(namesOf(store, b.version)).toEqual(['a', 'b']);
    expect(namesOf(store)).toEqual(['b']);
  });

  test('pages in order of namespace and name, and counts the remaining objects', () => {
    const store = open();
    for (const namespace of ['x', 'y']) {
      for (const name of ['c', 'a', 'b']) store.create(keyOf(name, namespace), aConfigMap(name));
    }
    const first = store.page({ collection: 'configmaps', limit: 4 });
    expect(first.entries.map(({ namespace, name }) => `${namespace}/${name}`)).toEqual(['x/a', 'x/b', 'x/c', 'y/a']);
    expect(first.remaining()).toBe(2);
    const next = store.page({ collection: 'configmaps', limit: 4, after: first.entries.at(-1) });
    expect(next.entries.map(({ name }) => name)).toEqual(['b', 'c']);
    expect(store.page({ collection: 'configmaps', namespace: 'y', limit: 9 }).entries).toHaveLength(3);
  });

  test('returns changes with the previous state, from memory and from disk alike', () => {
    const store = open();
    const { version } = store.create(keyOf('a'), aConfigMap('a', '1'))!;
    store.replace(keyOf('a'), version, aConfigMap('a', '2'));
    const [added, modified] = store.changesAfter('configmaps', 0, 10);
    expect([added!.type, modified!.type]).toEqual(['ADDED', 'MODIFIED']);
    expect(added!.previous()).toBeUndefined();
    expect(modified!.previous()!['data']).toEqual({ value: '1' });
  });

  test('compacts superseded states but keeps current objects', () => {
    const store = open(10);
    store.create(keyOf('kept'), aConfigMap('kept'));
    let version = store.create(keyOf('busy'), aConfigMap('busy'))!.version;
    for (let index = 0; index < 50; index += 1) {
      version = store.replace(keyOf('busy'), version, aConfigMap('busy', String(index)))!.version;
    }
    expect(store.oldest()).toBeGreaterThan(20);
    expect(namesOf(store)).toEqual(['busy', 'kept']);
    expect(namesOf(store, store.oldest())).toEqual(['busy', 'kept']);
    const [next] = store.changesAfter('configmaps', store.oldest(), 1);
    expect(next!.previous()).toBeDefined();
  });

  test('calls only listeners of the collection, after the write can be read', () => {
    const store = open();
    const seen: unknown[] = [];
    const stop = store.subscribe('configmaps', (change) => seen.push(store.get(change)?.version === change.version));
    store.create(keyOf('a'), aConfigMap('a'));
    store.create({ collection: 'secrets', namespace: 'default', name: 'a' }, aConfigMap('a'));
    stop();
    store.create(keyOf('b'), aConfigMap('b'));
    expect(seen).toEqual([true]);
  });

  test('replaying all changes gives the listed state, whatever was written', () => {
    const operation = fc.record({
      name: fc.constantFrom('a', 'b', 'c'),
      action: fc.constantFrom('create', 'replace', 'remove'),
    });
    fc.assert(
      fc.property(fc.array(operation, { maxLength: 40 }), (operations) => {
        const store = open();
        const listedAt = new Map<number, unknown>();
        for (const [index, { name, action }] of operations.entries()) {
          const version = store.get(keyOf(name))?.version ?? 0;
          if (action === 'create') store.create(keyOf(name), aConfigMap(name, String(index)));
          else if (action === 'replace') store.replace(keyOf(name), version, aConfigMap(name, String(index)));
          else store.remove(keyOf(name), version, aConfigMap(name));
          listedAt.set(store.version(), namesOf(store));
        }
        for (const [version, names] of listedAt) expect(namesOf(store, version)).toEqual(names);
        const replayed = new Map<string, unknown>();
        for (const change of store.changesAfter('configmaps', 0, 1000)) {
          if (change.type === 'DELETED') replayed.delete(change.name);
          else replayed.set(change.name, change.object());
        }
        const listed = store.page({ collection: 'configmaps', limit: 100 }).entries;
        expect(listed.map((entry) => entry.object())).toEqual(
          [...replayed.keys()].toSorted().map((name) => replayed.get(name)),
        );
      }),
      { numRuns: 60 },
    );
  });

  test('lists the objects of a file that an older release created', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'store-'));
    const file = join(folder, 'state.db');
    const store = createStore({ file });
    const { version } = store.create(keyOf('gone'), aConfigMap('gone'))!;
    const kept = store.create(keyOf('kept'), aConfigMap('kept'))!;
    store.replace(keyOf('kept'), kept.version, aConfigMap('kept', 'x'));
    store.remove(keyOf('gone'), version, aConfigMap('gone'));
    store.close();
    const database = new DatabaseSync(file);
    database.exec('DROP TRIGGER live_written; DROP TRIGGER live_removed; DROP TABLE live');
    database.close();
    const again = createStore({ file });
    again.create(keyOf('new'), aConfigMap('new'));
    const [first, second] = again.page({ collection: 'configmaps', limit: 9 }).entries;
    again.close();
    await rm(folder, { recursive: true });
    expect([first?.object(), second?.name]).toEqual([expect.objectContaining({ data: { value: 'x' } }), 'new']);
  });
});
