// Lists: pages, versions, selectors.
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, itemsAt, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  namesOf,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const names = ['a', 'b', 'c', 'd', 'e'];

const createFive = async (t: CaseContext): Promise<string> => {
  const ns = await t.namespace();
  for (const name of names) {
    await create(
      t,
      core(ns, 'configmaps'),
      configMap(name, undefined, { labels: { name, odd: String('ace'.includes(name)) } }),
    );
  }
  return core(ns, 'configmaps');
};

const selected = async (t: CaseContext, path: string, selector: string): Promise<string> =>
  namesOf(await get(t, `${path}?labelSelector=${encodeURIComponent(selector)}`)).join('');

export const list: Topic = {
  topic: 'list',
  cases: {
    'an empty list has a version and an empty array': async (t) => {
      const answer = expectStatus(await t.call('GET', core(await t.namespace(), 'configmaps')), 200);
      t.same('answer', answer.body);
    },
    'items are ordered by name and have no type': async (t) => {
      const answer = await get(t, await createFive(t));
      deepStrictEqual(namesOf(answer), names);
      strictEqual(at(answer, 'items.0.kind'), undefined);
    },
    'items of custom resources have their type': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a'));
      const answer = await get(t, widgets.path(ns));
      strictEqual(at(answer, 'kind'), 'WidgetList');
      strictEqual(at(answer, 'items.0.kind'), 'Widget');
      strictEqual(at(answer, 'items.0.apiVersion'), widgets.apiVersion);
    },
    'all pages together are the list at the version of the first page': async (t) => {
      const path = await createFive(t);
      const first = await get(t, `${path}?limit=2`);
      deepStrictEqual(namesOf(first), ['a', 'b']);
      strictEqual(at(first, 'metadata.remainingItemCount'), 3);
      await create(t, path, configMap('bb'));
      const second = await get(t, `${path}?limit=2&continue=${textAt(first, 'metadata.continue')}`);
      deepStrictEqual(namesOf(second), ['c', 'd']);
      strictEqual(at(second, 'metadata.resourceVersion'), at(first, 'metadata.resourceVersion'));
      const third = await get(t, `${path}?limit=2&continue=${textAt(second, 'metadata.continue')}`);
      deepStrictEqual(namesOf(third), ['e']);
      strictEqual(at(third, 'metadata.continue'), undefined);
      strictEqual(at(third, 'metadata.remainingItemCount'), undefined);
    },
    'pages with a selector have no remaining count': async (t) => {
      const path = await createFive(t);
      const first = await get(t, `${path}?limit=2&labelSelector=odd%3Dtrue`);
      deepStrictEqual(namesOf(first), ['a', 'c']);
      ok(textAt(first, 'metadata.continue') !== '');
      strictEqual(at(first, 'metadata.remainingItemCount'), undefined);
      const query = `limit=2&labelSelector=odd%3Dtrue&continue=${textAt(first, 'metadata.continue')}`;
      deepStrictEqual(namesOf(await get(t, `${path}?${query}`)), ['e']);
    },
    'an invalid continue token is rejected': async (t) => {
      const answer = await t.call('GET', `${core(await t.namespace(), 'configmaps')}?limit=1&continue=nonsense`);
      t.same('answer', failureOf(expectStatus(answer, 400)));
    },
    'label selectors of every form are supported': async (t) => {
      const path = await createFive(t);
      const expected = {
        'name=a': 'a',
        'name==b': 'b',
        'name!=b': 'acde',
        'name in (a,c)': 'ac',
        'name notin (a,c)': 'bde',
        odd: 'abcde',
        '!odd': '',
        '!other': 'abcde',
        'other!=x': 'abcde',
        'other notin (x)': 'abcde',
        'odd=true,name!=a': 'ce',
        'name in (a),odd in (false)': '',
      };
      const seen: Record<string, string> = {};
      for (const selector of Object.keys(expected)) seen[selector] = await selected(t, path, selector);
      deepStrictEqual(seen, expected);
    },
    'an invalid label selector is rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      for (const selector of ['a b', 'a in', 'a in (b', '=x', 'a=b c', 'bad value=x!']) {
        const answer = await t.call('GET', `${path}?labelSelector=${encodeURIComponent(selector)}`);
        strictEqual(at(expectStatus(answer, 400).body, 'reason'), 'BadRequest', selector);
      }
    },
    'every kind can be selected by name and namespace': async (t) => {
      const path = await createFive(t);
      deepStrictEqual(namesOf(await get(t, `${path}?fieldSelector=metadata.name%3Db`)), ['b']);
      const everywhere = '/api/v1/configmaps?fieldSelector=metadata.namespace%3D';
      deepStrictEqual(namesOf(await get(t, everywhere + (await t.namespace()))), names);
      deepStrictEqual(namesOf(await get(t, `${path}?fieldSelector=metadata.name!%3Db`)), ['a', 'c', 'd', 'e']);
    },
    'an unsupported field selector is rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('GET', `${path}?fieldSelector=data.k%3Dv`);
      t.same('builtin', failureOf(expectStatus(answer, 400)));
      const widgets = await createWidgets(t);
      const custom = await t.call('GET', `${widgets.path('default')}?fieldSelector=spec.size%3D1`);
      t.same('custom', failureOf(expectStatus(custom, 400)));
    },
    'custom resources can be selected by declared fields': async (t) => {
      const widgets = await createWidgets(t, {
        version: { selectableFields: [{ jsonPath: '.spec.colour' }] },
        properties: { spec: { type: 'object', properties: { colour: { type: 'string' } } } },
      });
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { colour: 'red' } }));
      await create(t, widgets.path(ns), widgets.widget('b', { spec: { colour: 'blue' } }));
      deepStrictEqual(namesOf(await get(t, `${widgets.path(ns)}?fieldSelector=spec.colour%3Dblue`)), ['b']);
    },
    'pods and secrets can be selected by fields of their own': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'pods'), pod('a'));
      await create(t, core(ns, 'pods'), pod('b', { nodeName: 'node-1' }));
      await create(t, core(ns, 'secrets'), {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'c' },
        type: 'example.com/x',
      });
      const find = async (plural: string, selector: string) =>
        namesOf(await get(t, `${core(ns, plural)}?fieldSelector=${encodeURIComponent(selector)}`)).join('');
      strictEqual(await find('pods', 'spec.nodeName=node-1'), 'b');
      strictEqual(await find('pods', 'spec.nodeName='), 'a');
      strictEqual(await find('pods', 'status.phase=Pending'), 'ab');
      strictEqual(await find('pods', 'status.phase!=Pending'), '');
      strictEqual(await find('secrets', 'type=example.com/x'), 'c');
    },
    'a list at an exact version returns an earlier state': async (t) => {
      const path = await createFive(t);
      const before = textAt(await get(t, path), 'metadata.resourceVersion');
      expectStatus(await t.call('DELETE', `${path}/a`), 200);
      const exact = await get(t, `${path}?resourceVersion=${before}&resourceVersionMatch=Exact`);
      deepStrictEqual(namesOf(exact), names);
      const newer = await get(t, `${path}?resourceVersion=${before}&resourceVersionMatch=NotOlderThan`);
      deepStrictEqual(namesOf(newer), ['b', 'c', 'd', 'e']);
      deepStrictEqual(namesOf(await get(t, `${path}?resourceVersion=${before}`)), ['b', 'c', 'd', 'e']);
    },
    'version 0 lists the existing objects': async (t) => {
      const path = await createFive(t);
      await create(t, path, configMap('f'));
      const seen = namesOf(await get(t, `${path}?resourceVersion=0`));
      ok(seen.length >= 0);
    },
    'invalid combinations of version options are rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const queries = {
        'match without version': 'resourceVersionMatch=Exact',
        'exact match of 0': 'resourceVersion=0&resourceVersionMatch=Exact',
        'unknown match': 'resourceVersion=1&resourceVersionMatch=Nearly',
        'no number': 'resourceVersion=abc',
        'initial events without watch': 'sendInitialEvents=true',
        'negative limit is no limit': 'limit=-1',
      };
      for (const [label, query] of Object.entries(queries)) {
        const answer = await t.call('GET', `${path}?${query}`);
        t.same(label, answer.status < 300 ? { status: answer.status } : failureOf(answer));
      }
    },
    'a future version is too large': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('GET', `${path}?resourceVersion=99999999&resourceVersionMatch=NotOlderThan`);
      strictEqual(at(expectStatus(answer, 504).body, 'reason'), 'Timeout');
      strictEqual(at(answer.body, 'details.causes.0.reason'), 'ResourceVersionTooLarge');
    },
    'a list over all namespaces has them in order': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('z', undefined, { labels: { case: t.id } }));
      await create(t, core('default', 'configmaps'), configMap(`a-${t.id}`, {}, { labels: { case: t.id } }));
      t.cleanup(() => t.call('DELETE', core('default', 'configmaps', `a-${t.id}`)));
      const seen = itemsAt(await get(t, `/api/v1/configmaps?labelSelector=case%3D${t.id}`));
      deepStrictEqual(
        seen.map((item) => at(item, 'metadata.namespace')),
        ['default', ns],
      );
    },
    'a list of a missing namespace is empty': async (t) => {
      deepStrictEqual(namesOf(await get(t, core(`none-${t.id}`, 'configmaps'))), []);
    },
  },
  alone: {
    'a continue token of compacted history has expired, and the error contains one to continue with': async (t) => {
      const path = await createFive(t);
      const first = await get(t, `${path}?limit=2`);
      await create(t, path, configMap('bb'));
      await t.server.compact();
      const answer = await t.call('GET', `${path}?limit=2&continue=${textAt(first, 'metadata.continue')}`);
      t.same('answer', failureOf(expectStatus(answer, 410)));
      const onwards = await get(t, `${path}?limit=5&continue=${textAt(answer.body, 'metadata.continue')}`);
      deepStrictEqual(namesOf(onwards), ['bb', 'c', 'd', 'e']);
    },
  },
};
