import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual } from 'node:assert/strict';
import { at, itemsAt, without } from '#local-cluster/conformance/suite/json.ts';
import { conditionOf, crdPath, createWidgets, groupOf, widgetCrd } from '#local-cluster/conformance/topics/custom.ts';
import { type Body, eventually, expectStatus, failureOf, get } from '#local-cluster/conformance/topics/objects.ts';
import { version } from '#local-cluster/conformance/topics/crd-lifecycle/support.ts';

export const definitions: Topic['cases'] = {
  'a definition is accepted and established': async (t) => {
    const widgets = await createWidgets(t, { spec: { names: { plural: 'widgets', kind: 'Widget' } } });
    const crd = await get(t, `${crdPath}/${widgets.crdName}`);
    t.same('crd', without(crd, 'metadata'));
    deepStrictEqual(at(crd, 'status.storedVersions'), ['v1']);
  },
  'discovery includes an established kind': async (t) => {
    const names = {
      plural: 'widgets',
      singular: 'widget',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wd'],
      categories: ['all', 'things'],
    };
    const widgets = await createWidgets(t, { spec: { names }, version: { subresources: { status: {} } } });
    const path = `/apis/${widgets.group}/v1`;
    const resources = await eventually(
      'discovery',
      async () => (await t.call('GET', path)).body,
      (body) => itemsAt(body, 'resources').length === 2,
    );
    t.same(
      'resources',
      itemsAt(resources, 'resources').map((resource) => without(resource, 'storageVersionHash')),
    );
    t.same(
      'group',
      await eventually(
        'group',
        async () => (await t.call('GET', `/apis/${widgets.group}`)).body,
        (body) => at(body, 'kind') === 'APIGroup',
      ),
    );
  },
  'an invalid definition is rejected with every error': async (t) => {
    const valid = widgetCrd(t);
    const spec = valid['spec'] as Body;
    const post = async (change: Body, name?: string): Promise<unknown> => {
      const metadata = name === undefined ? valid['metadata'] : { name };
      return failureOf(
        await t.call('POST', `${crdPath}?dryRun=All`, { body: { ...valid, metadata, spec: { ...spec, ...change } } }),
      );
    };
    const schema = (root: Body): Body => ({
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: root } }],
    });
    t.same('other name', await post({}, `gadgets.${groupOf(t)}`));
    t.same('no storage version', await post({ versions: [version('v1')] }));
    t.same(
      'two storage versions',
      await post({ versions: [version('v1', { storage: true }), version('v2', { storage: true })] }),
    );
    t.same('no schema', await post({ versions: [{ name: 'v1', served: true, storage: true }] }));
    t.same('no type', await post(schema({ properties: { spec: { type: 'object' } } })));
    t.same('bad type', await post(schema({ type: 'object', properties: { spec: { type: 'text' } } })));
    t.same(
      'not structural',
      await post(schema({ type: 'object', properties: { spec: { type: 'object', properties: { a: {} } } } })),
    );
    t.same(
      'metadata',
      await post(
        schema({
          type: 'object',
          properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
        }),
      ),
    );
    t.same(
      'invalid default',
      await post(schema({ type: 'object', properties: { a: { type: 'integer', default: 'x' } } })),
    );
    t.same('kind in lower case', await post({ names: { plural: 'widgets', kind: 'widget_' } }));
    t.same('scope', await post({ scope: 'World' }));
    t.same(
      'list map without keys',
      await post(
        schema({
          type: 'object',
          properties: { a: { type: 'array', 'x-kubernetes-list-type': 'map', items: { type: 'object' } } },
        }),
      ),
    );
    t.same(
      'bad rule',
      await post(
        schema({
          type: 'object',
          properties: { a: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self >' }] } },
        }),
      ),
    );
    t.same(
      'rule of another type',
      await post(
        schema({
          type: 'object',
          properties: { a: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self + 1' }] } },
        }),
      ),
    );
  },
  'a kind with conflicting names is not established': async (t) => {
    const widgets = await createWidgets(t);
    const names = { plural: 'others', singular: 'other', kind: 'Widget', listKind: 'WidgetList' };
    const body = { ...widgetCrd(t, { spec: { names } }), metadata: { name: `others.${widgets.group}` } };
    expectStatus(await t.call('POST', crdPath, { body }), 201);
    t.cleanup(() => t.call('DELETE', `${crdPath}/others.${widgets.group}`));
    const read = async () => (await t.call('GET', `${crdPath}/others.${widgets.group}`)).body;
    const crd = await eventually('conditions', read, (seen) => conditionOf(seen, 'NamesAccepted') !== undefined);
    t.same('names', conditionOf(crd, 'NamesAccepted'));
    t.same('established', conditionOf(crd, 'Established'));
  },
};
