// Watches: where they start, what they return, how they end.
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic, Watch } from '#local-cluster/conformance/suite/case.ts';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';

const versionOf = async (t: CaseContext, path: string): Promise<string> =>
  textAt(await get(t, path), 'metadata.resourceVersion');

const take = async (watch: Watch, count: number): Promise<string[]> => {
  const seen: string[] = [];
  while (seen.length < count) {
    const { type, object } = await watch.next();
    seen.push(`${type} ${textAt(object, 'metadata.name')}`);
  }
  return seen;
};

export const watch: Topic = {
  topic: 'watch',
  cases: {
    'a watch from a version returns later changes': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('before'));
      const version = await versionOf(t, path);
      await create(t, path, configMap('a'));
      await mergePatch(t, `${path}/a`, { data: { k: 'v' } });
      await t.call('DELETE', `${path}/a`);
      const events = await t.watch(`${path}?watch=true&resourceVersion=${version}`);
      deepStrictEqual(await take(events, 3), ['ADDED a', 'MODIFIED a', 'DELETED a']);
    },
    'a watch without a version starts with the existing objects': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      await create(t, path, configMap('b'));
      const events = await t.watch(`${path}?watch=true`);
      deepStrictEqual((await take(events, 2)).toSorted(), ['ADDED a', 'ADDED b']);
      await create(t, path, configMap('c'));
      deepStrictEqual(await take(events, 1), ['ADDED c']);
    },
    'versions in a watch only increase': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const events = await t.watch(`${path}?watch=true&resourceVersion=${await versionOf(t, path)}`);
      await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => create(t, path, configMap(name))));
      let last = 0n;
      for (let i = 0; i < 6; i += 1) {
        const version = BigInt(textAt((await events.next()).object, 'metadata.resourceVersion'));
        ok(version > last);
        last = version;
      }
    },
    'a deletion contains the last state of the object, at the version of the deletion': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const created = await create(t, path, configMap('a', { k: 'v' }));
      const events = await t.watch(`${path}?watch=true&resourceVersion=${textAt(created, 'metadata.resourceVersion')}`);
      await t.call('DELETE', `${path}/a`);
      const { type, object } = await events.next();
      strictEqual(type, 'DELETED');
      strictEqual(at(object, 'data.k'), 'v');
      strictEqual(at(object, 'kind'), 'ConfigMap');
      ok(BigInt(textAt(object, 'metadata.resourceVersion')) > BigInt(textAt(created, 'metadata.resourceVersion')));
    },
    'an object that starts to match a selector is added, one that no longer does is deleted': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const version = await versionOf(t, path);
      const events = await t.watch(`${path}?watch=true&labelSelector=on%3Dyes&resourceVersion=${version}`);
      await create(t, path, configMap('a', undefined, { labels: { on: 'no' } }));
      await mergePatch(t, `${path}/a`, { metadata: { labels: { on: 'yes' } } });
      await mergePatch(t, `${path}/a`, { data: { k: 'v' } });
      await mergePatch(t, `${path}/a`, { metadata: { labels: { on: 'no' } } });
      deepStrictEqual(await take(events, 2), ['ADDED a', 'MODIFIED a']);
      const { type, object } = await events.next();
      strictEqual(type, 'DELETED');
      // The last state that matched, at the version of the change.
      strictEqual(at(object, 'metadata.labels.on'), 'yes');
    },
    'one object can be watched by name': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const events = await t.watch(`${path}?watch=true&fieldSelector=metadata.name%3Db`);
      await create(t, path, configMap('a'));
      await create(t, path, configMap('b'));
      deepStrictEqual(await take(events, 1), ['ADDED b']);
    },
    'a single object is read, not watched': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      strictEqual(at(await get(t, `${path}/a?watch=true`), 'metadata.name'), 'a');
    },
    'a watch over all namespaces includes all of them': async (t) => {
      const ns = await t.namespace();
      const events = await t.watch(`/api/v1/configmaps?watch=true&labelSelector=case%3D${t.id}`);
      await create(t, core(ns, 'configmaps'), configMap('a', undefined, { labels: { case: t.id } }));
      strictEqual(at((await events.next()).object, 'metadata.namespace'), ns);
    },
    'initial events end with an annotated bookmark': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      await create(t, path, configMap('b'));
      const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
      const events = await t.watch(`${path}?${query}`);
      deepStrictEqual((await take(events, 2)).toSorted(), ['ADDED a', 'ADDED b']);
      const bookmark = await events.next({ bookmarks: true });
      strictEqual(bookmark.type, 'BOOKMARK');
      t.same('bookmark', bookmark.object);
    },
    'initial events can be omitted': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      const query = 'watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
      const events = await t.watch(`${path}?${query}`);
      await create(t, path, configMap('b'));
      deepStrictEqual(await take(events, 1), ['ADDED b']);
    },
    'invalid options of initial events are rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const queries = {
        'without match': 'watch=true&sendInitialEvents=true',
        'exact match': 'watch=true&sendInitialEvents=true&resourceVersion=1&resourceVersionMatch=Exact',
        'match alone': 'watch=true&resourceVersionMatch=NotOlderThan',
      };
      for (const [label, query] of Object.entries(queries)) {
        t.same(label, failureOf(expectStatus(await t.call('GET', `${path}?${query}`), 422)));
      }
    },
    'bookmarks are sent on request': async (t) => {
      const widgets = await createWidgets(t);
      const path = widgets.path(await t.namespace());
      await create(t, path, widgets.widget('a'));
      const options = 'watch=true&allowWatchBookmarks=true&timeoutSeconds=6&labelSelector=none';
      const events = await t.watch(`${path}?${options}&resourceVersion=${await versionOf(t, path)}`);
      // Nothing that the watch selects, but progress.
      await create(t, path, widgets.widget('b'));
      // A bookmark is sent shortly before the time-out at the latest.
      const { type, object } = await events.next({ bookmarks: true });
      strictEqual(type, 'BOOKMARK');
      t.same('bookmark', object);
    },
    'a watch ends after its timeout': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const started = Date.now();
      const events = await t.watch(`${path}?watch=true&timeoutSeconds=1`);
      await events.ended;
      ok(Date.now() - started < 5000);
    },
    'a version that is not a number is rejected': async (t) => {
      const answer = await t.call('GET', `${core(await t.namespace(), 'configmaps')}?watch=true&resourceVersion=abc`);
      t.same('answer', failureOf(answer));
    },
    'a custom resource is watched like any other': async (t) => {
      const widgets = await createWidgets(t);
      const path = widgets.path(await t.namespace());
      const events = await t.watch(`${path}?watch=true&resourceVersion=${await versionOf(t, path)}`);
      await create(t, path, widgets.widget('a', { spec: { size: 1 } }));
      await mergePatch(t, `${path}/a`, { spec: { size: 2 } });
      const added = await events.next();
      t.same('added', { ...added });
      strictEqual((await events.next()).type, 'MODIFIED');
    },
    'a watch can return tables': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a', { k: 'v' }));
      const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1';
      const events = await t.watch(`${path}?watch=true`, { accept });
      const first = await events.next();
      strictEqual(at(first.object, 'kind'), 'Table');
      strictEqual(at(first.object, 'rows.0.cells.0'), 'a');
      ok(Array.isArray(at(first.object, 'columnDefinitions')));
      await create(t, path, configMap('b'));
      const second = await events.next();
      strictEqual(at(second.object, 'rows.0.cells.0'), 'b');
      // Only the first table of a stream contains the columns.
      strictEqual(at(second.object, 'columnDefinitions'), null);
    },
    'a watch can return only metadata': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a', { k: 'v' }));
      const events = await t.watch(`${path}?watch=true`, {
        accept: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
      });
      const { object } = await events.next();
      strictEqual(at(object, 'kind'), 'PartialObjectMetadata');
      strictEqual(at(object, 'data'), undefined);
    },
  },
  alone: {
    'a version whose history was compacted is gone': async (t) => {
      const widgets = await createWidgets(t);
      const path = widgets.path(await t.namespace());
      for (const name of ['a', 'b']) await create(t, path, widgets.widget(name));
      await t.server.compact();
      const events = await t.watch(`${path}?watch=true&resourceVersion=1`);
      const { type, object } = await events.next();
      strictEqual(type, 'ERROR');
      t.same('status', object);
    },
  },
};
