// fieldValidation: the treatment of unknown and of duplicate fields.
import { strictEqual } from 'node:assert/strict';
import type { Answer, CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  apply,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  jsonPatch,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const warned = ({ status, headers }: Answer) => ({ status, warning: headers['warning'] });

const doubled =
  '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"},"data":{"k":"w"},"nothing":1}';

const schema = {
  properties: {
    spec: {
      type: 'object',
      properties: {
        size: { type: 'integer' },
        list: { type: 'array', items: { type: 'object', properties: { id: { type: 'string' } } } },
      },
    },
  },
};

const unknownSpec = { spec: { size: 1, sise: 2, list: [{ id: 'x', idd: 'y' }] }, other: true };

const widgetCall = async (t: CaseContext, mode: string): Promise<Answer> => {
  const widgets = await createWidgets(t, schema);
  const query = mode === '' ? '' : `?fieldValidation=${mode}`;
  const body = widgets.widget('a', unknownSpec, { wrong: 'x' });
  return t.call('POST', widgets.path(await t.namespace()) + query, { body });
};

export const fieldValidation: Topic = {
  topic: 'field-validation',
  cases: {
    'Strict rejects unknown fields of a built-in kind': async (t) => {
      const body = { ...pod('a', { nothing: 1, containers: [{ name: 'c', image: 'x', imagee: 'y' }] }), extra: {} };
      const answer = await t.call('POST', `${core(await t.namespace(), 'pods')}?fieldValidation=Strict`, { body });
      t.same('answer', failureOf(expectStatus(answer, 400)));
    },
    'Strict rejects duplicate fields': async (t) => {
      const answer = await t.call('POST', `${core(await t.namespace(), 'configmaps')}?fieldValidation=Strict`, {
        text: doubled,
      });
      t.same('answer', failureOf(expectStatus(answer, 400)));
    },
    'Warn returns warnings, and is the default': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const asked = await t.call('POST', `${path}?fieldValidation=Warn&dryRun=All`, { text: doubled });
      t.same('asked', warned(expectStatus(asked, 201)));
      const silent = await t.call('POST', path, { text: doubled });
      t.same('silent', warned(expectStatus(silent, 201)));
    },
    'Ignore drops them silently': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('POST', `${path}?fieldValidation=Ignore`, { text: doubled });
      strictEqual(expectStatus(answer, 201).headers['warning'], undefined);
      strictEqual(at(answer.body, 'nothing'), undefined);
    },
    'another mode is rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('POST', `${path}?fieldValidation=Loud`, { body: configMap('a') });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
    'Strict rejects unknown fields of a custom resource': async (t) => {
      t.same('answer', failureOf(expectStatus(await widgetCall(t, 'Strict'), 400)));
    },
    'Warn returns warnings about unknown fields of a custom resource, which are pruned': async (t) => {
      const answer = expectStatus(await widgetCall(t, 'Warn'), 201);
      t.same('answer', warned(answer));
      t.same('object', answer.body);
    },
    'Ignore prunes a custom resource silently': async (t) => {
      strictEqual(expectStatus(await widgetCall(t, 'Ignore'), 201).headers['warning'], undefined);
    },
    'Strict applies to replaces and patches': async (t) => {
      const ns = await t.namespace();
      const path = core(ns, 'configmaps', 'a');
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const strict = `${path}?fieldValidation=Strict`;
      t.same('put', failureOf(await t.call('PUT', strict, { body: { ...configMap('a'), nothing: 1 } })));
      t.same('merge patch', failureOf(await mergePatch(t, strict, { nothing: 1 })));
      t.same('json patch', failureOf(await jsonPatch(t, strict, [{ op: 'add', path: '/nothing', value: 1 }])));
      t.same(
        'apply',
        failureOf(await apply(t, path, { ...configMap('a'), nothing: 1 }, 'fieldManager=x&fieldValidation=Strict')),
      );
    },
    'Strict applies to replaces and patches of custom resources': async (t) => {
      const widgets = await createWidgets(t, schema);
      const ns = await t.namespace();
      const created = await create(t, widgets.path(ns), widgets.widget('a', { spec: { size: 1 } }));
      const strict = `${widgets.path(ns, 'a')}?fieldValidation=Strict`;
      const body = { ...(created as object), spec: { size: 2, sise: 3 } };
      t.same('put', failureOf(await t.call('PUT', strict, { body })));
      t.same('merge patch', failureOf(await mergePatch(t, strict, { spec: { sise: 3 } })));
      t.same('warning', warned(await mergePatch(t, widgets.path(ns, 'a'), { spec: { sise: 3 } })));
    },
  },
};
