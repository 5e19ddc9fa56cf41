// dryRun=All: everything but the write.
import { deepStrictEqual, match, strictEqual } from 'node:assert/strict';
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  apply,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  mergePatch,
  namesOf,
} from '#local-cluster/conformance/topics/objects.ts';

export const dryRun: Topic = {
  topic: 'dry-run',
  cases: {
    'a dry-run create returns the same as a real one and stores nothing': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('POST', `${path}?dryRun=All`, { body: configMap('a', { k: 'v' }) });
      t.same('object', expectStatus(answer, 201).body);
      strictEqual(at(answer.body, 'metadata.resourceVersion'), undefined);
      deepStrictEqual(namesOf(await get(t, path)), []);
    },
    'a dry-run create generates a name': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'a-' } };
      const answer = expectStatus(await t.call('POST', `${path}?dryRun=All`, { body }), 201);
      match(textAt(answer.body, 'metadata.name'), /^a-[a-z0-9]{5}$/);
    },
    'a dry-run create reports an existing name and an invalid object': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      strictEqual((await t.call('POST', `${path}?dryRun=All`, { body: configMap('a') })).status, 409);
      strictEqual((await t.call('POST', `${path}?dryRun=All`, { body: configMap('A') })).status, 422);
    },
    'a dry-run replace, patch, apply and delete do not change the object': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const created = await create(t, path, configMap('a', { k: 'v' }));
      const put = await t.call('PUT', `${path}/a?dryRun=All`, { body: configMap('a', { k: 'w' }) });
      strictEqual(at(expectStatus(put, 200).body, 'data.k'), 'w');
      const patched = await mergePatch(t, `${path}/a?dryRun=All`, { data: { k: 'x' } });
      strictEqual(at(expectStatus(patched, 200).body, 'data.k'), 'x');
      strictEqual(at(patched.body, 'metadata.resourceVersion'), at(created, 'metadata.resourceVersion'));
      const appliedDry = await apply(t, `${path}/a`, configMap('a', { l: 'y' }), 'fieldManager=x&dryRun=All');
      deepStrictEqual(at(expectStatus(appliedDry, 200).body, 'data'), { k: 'v', l: 'y' });
      expectStatus(await t.call('DELETE', `${path}/a?dryRun=All`), 200);
      const body = { apiVersion: 'v1', kind: 'DeleteOptions', dryRun: ['All'] };
      expectStatus(await t.call('DELETE', `${path}/a`, { body }), 200);
      expectStatus(await t.call('DELETE', `${path}?dryRun=All`), 200);
      deepStrictEqual(await get(t, `${path}/a`), created);
    },
    'a custom resource supports dry run': async (t) => {
      const widgets = await createWidgets(t, {
        properties: { spec: { type: 'object', properties: { size: { type: 'integer', default: 1 } } } },
      });
      const path = widgets.path(await t.namespace());
      const answer = await t.call('POST', `${path}?dryRun=All`, { body: widgets.widget('a', { spec: {} }) });
      t.same('object', expectStatus(answer, 201).body);
      deepStrictEqual(namesOf(await get(t, path)), []);
    },
    'another value is rejected': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const answer = await t.call('POST', `${path}?dryRun=Some`, { body: configMap('a') });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
  },
};
