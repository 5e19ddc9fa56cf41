// Status and scale: which other parts a write may change.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, changed } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets, type CustomKind } from '#local-cluster/conformance/topics/custom.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  jsonPatch,
  mergePatch,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

const open = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const withStatus = (t: CaseContext): Promise<CustomKind> =>
  createWidgets(t, { properties: { spec: open, status: open }, version: { subresources: { status: {} } } });

export const subresources: Topic = {
  topic: 'subresources',
  cases: {
    'status of a new object is dropped': async (t) => {
      const widgets = await withStatus(t);
      const created = await create(
        t,
        widgets.path(await t.namespace()),
        widgets.widget('a', { spec: { size: 1 }, status: { phase: 'X' } }),
      );
      strictEqual(at(created, 'status'), undefined);
      strictEqual(at(created, 'metadata.generation'), 1);
    },
    'a write to the object does not change status, a write to status changes nothing else': async (t) => {
      const widgets = await withStatus(t);
      const ns = await t.namespace();
      const path = widgets.path(ns, 'a');
      const created = await create(t, widgets.path(ns), widgets.widget('a', { spec: { size: 1 } }));
      const both = changed(created, (copy) => Object.assign(copy, { spec: { size: 2 }, status: { phase: 'X' } }));
      const status = expectStatus(await t.call('PUT', `${path}/status`, { body: both }), 200);
      t.same('put to status', status.body);
      deepStrictEqual(at(status.body, 'spec'), { size: 1 });
      deepStrictEqual(at(status.body, 'status'), { phase: 'X' });
      strictEqual(at(status.body, 'metadata.generation'), 1);
      const body = changed(status.body, (copy) => Object.assign(copy, { spec: { size: 3 }, status: {} }));
      const main = expectStatus(await t.call('PUT', path, { body }), 200);
      deepStrictEqual(at(main.body, 'spec'), { size: 3 });
      deepStrictEqual(at(main.body, 'status'), { phase: 'X' });
      strictEqual(at(main.body, 'metadata.generation'), 2);
    },
    'metadata cannot be changed through status, except for managed fields': async (t) => {
      const widgets = await withStatus(t);
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', {}, { labels: { x: 'y' } }));
      const answer = await mergePatch(t, `${widgets.path(ns, 'a')}/status`, {
        metadata: { labels: { x: 'z' }, annotations: { a: 'b' }, finalizers: ['example.com/f'] },
        status: { phase: 'X' },
      });
      t.same('object', expectStatus(answer, 200).body);
    },
    'generation is incremented only by changes of the spec': async (t) => {
      const widgets = await withStatus(t);
      const ns = await t.namespace();
      const path = widgets.path(ns, 'a');
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { size: 1 } }));
      const generation = async (body: object): Promise<unknown> =>
        at((await mergePatch(t, path, body)).body, 'metadata.generation');
      strictEqual(await generation({ metadata: { labels: { x: 'y' } } }), 1);
      strictEqual(await generation({ status: { phase: 'ignored' } }), 1);
      strictEqual(await generation({ spec: { size: 2 } }), 2);
      strictEqual(await generation({ other: 1 }), 2);
    },
    'without the subresource status is an ordinary field': async (t) => {
      const widgets = await createWidgets(t, { properties: { spec: open, status: open } });
      const ns = await t.namespace();
      const created = await create(t, widgets.path(ns), widgets.widget('a', { status: { phase: 'X' } }));
      deepStrictEqual(at(created, 'status'), { phase: 'X' });
      const answer = await mergePatch(t, widgets.path(ns, 'a'), { status: { phase: 'Y' } });
      strictEqual(at(answer.body, 'metadata.generation'), 2);
      t.same('no such path', failureOf(await mergePatch(t, `${widgets.path(ns, 'a')}/status`, { status: {} })));
    },
    'status supports JSON patches, and conflicts by version': async (t) => {
      const widgets = await withStatus(t);
      const ns = await t.namespace();
      const path = `${widgets.path(ns, 'a')}/status`;
      await create(t, widgets.path(ns), widgets.widget('a'));
      const answer = await jsonPatch(t, path, [{ op: 'add', path: '/status', value: { phase: 'X' } }]);
      deepStrictEqual(at(expectStatus(answer, 200).body, 'status'), { phase: 'X' });
      const stale = await mergePatch(t, path, { metadata: { resourceVersion: '1' }, status: { phase: 'Y' } });
      t.same('stale', failureOf(expectStatus(stale, 409)));
      deepStrictEqual(at(await get(t, path), 'status'), { phase: 'X' });
    },
    'status is validated': async (t) => {
      const properties = { status: { type: 'object', properties: { phase: { type: 'string', enum: ['A', 'B'] } } } };
      const widgets = await createWidgets(t, { properties, version: { subresources: { status: {} } } });
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a'));
      t.same(
        'answer',
        failureOf(
          expectStatus(await mergePatch(t, `${widgets.path(ns, 'a')}/status`, { status: { phase: 'C' } }), 422),
        ),
      );
    },
    'status of built-in kinds is separate too': async (t) => {
      const ns = await t.namespace();
      const claim = {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'c' },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      };
      await create(t, core(ns, 'persistentvolumeclaims'), { ...claim, status: { phase: 'Bound' } });
      const path = core(ns, 'persistentvolumeclaims', 'c');
      strictEqual(at(await get(t, path), 'status.phase'), 'Pending');
      const status = await mergePatch(t, `${path}/status`, {
        status: { phase: 'Bound', capacity: { storage: '1Gi' } },
        spec: { volumeName: 'v' },
      });
      t.same('claim', expectStatus(status, 200).body);
      await create(t, core(ns, 'pods'), pod('p'));
      const running = await mergePatch(t, `${core(ns, 'pods', 'p')}/status`, { status: { phase: 'Running' } });
      strictEqual(at(expectStatus(running, 200).body, 'status.phase'), 'Running');
      await create(t, core(ns, 'configmaps'), configMap('m'));
      t.same('a kind without status', failureOf(await mergePatch(t, `${core(ns, 'configmaps', 'm')}/status`, {})));
    },
    'scale reads and writes the replicas of a custom resource': async (t) => {
      const scale = {
        specReplicasPath: '.spec.replicas',
        statusReplicasPath: '.status.replicas',
        labelSelectorPath: '.status.selector',
      };
      const properties = {
        spec: { type: 'object', properties: { replicas: { type: 'integer' } } },
        status: { type: 'object', properties: { replicas: { type: 'integer' }, selector: { type: 'string' } } },
      };
      const widgets = await createWidgets(t, { properties, version: { subresources: { status: {}, scale } } });
      const ns = await t.namespace();
      await create(t, widgets.path(ns), widgets.widget('a', { spec: { replicas: 2 } }));
      await mergePatch(t, `${widgets.path(ns, 'a')}/status`, { status: { replicas: 1, selector: 'x=y' } });
      const path = `${widgets.path(ns, 'a')}/scale`;
      t.same('scale', await get(t, path));
      const patched = expectStatus(await mergePatch(t, path, { spec: { replicas: 5 } }), 200);
      strictEqual(at(patched.body, 'spec.replicas'), 5);
      strictEqual(at(await get(t, widgets.path(ns, 'a')), 'spec.replicas'), 5);
    },
  },
};
