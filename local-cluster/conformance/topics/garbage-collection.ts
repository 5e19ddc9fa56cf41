// Dependents after the deletion of their owner. Needs controllers.
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  type Body,
  configMap,
  core,
  create,
  eventually,
  eventuallyGone,
  expectStatus,
  get,
  grouped,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';

const ownerOf = (object: JsonValue, more: Body = {}): Body => ({
  apiVersion: at(object, 'apiVersion'),
  kind: at(object, 'kind'),
  name: at(object, 'metadata.name'),
  uid: at(object, 'metadata.uid'),
  ...more,
});

const remove = (t: CaseContext, path: string, propagationPolicy?: string) =>
  t.call('DELETE', path, { body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy } });

interface Family {
  readonly ns: string;
  readonly parent: string;
  readonly child: string;
}

const createFamily = async (t: CaseContext, childMeta: Body = {}, ownerMore: Body = {}): Promise<Family> => {
  const ns = await t.namespace();
  const parent = await create(t, core(ns, 'configmaps'), configMap('parent'));
  const meta = { ownerReferences: [ownerOf(parent, ownerMore)], ...childMeta };
  await create(t, core(ns, 'secrets'), { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'child', ...meta } });
  const family = { ns, parent: core(ns, 'configmaps', 'parent'), child: core(ns, 'secrets', 'child') };
  t.cleanup(() => mergePatch(t, family.child, { metadata: { finalizers: null } }));
  return family;
};

export const garbageCollection: Topic = {
  topic: 'garbage-collection',
  cases: {
    'with Background the owner is deleted at once, its dependents soon after': async (t) => {
      const { parent, child } = await createFamily(t);
      expectStatus(await remove(t, parent, 'Background'), 200);
      expectStatus(await t.call('GET', parent), 404);
      await eventuallyGone(t, child);
    },
    'Background is the default of most kinds': async (t) => {
      const { parent, child } = await createFamily(t);
      expectStatus(await t.call('DELETE', parent), 200);
      await eventuallyGone(t, child);
    },
    'with Foreground the owner waits for dependents that block it': async (t) => {
      const { parent, child } = await createFamily(
        t,
        { finalizers: ['example.com/hold'] },
        { blockOwnerDeletion: true },
      );
      const marked = expectStatus(await remove(t, parent, 'Foreground'), 200);
      deepStrictEqual(at(marked.body, 'metadata.finalizers'), ['foregroundDeletion']);
      await eventually(
        'the child is marked',
        () => get(t, child),
        (seen) => at(seen, 'metadata.deletionTimestamp') !== undefined,
      );
      expectStatus(await t.call('GET', parent), 200);
      await mergePatch(t, child, { metadata: { finalizers: null } });
      await eventuallyGone(t, child);
      await eventuallyGone(t, parent);
    },
    'with Foreground the owner does not wait for dependents that do not block': async (t) => {
      const { parent, child } = await createFamily(t, { finalizers: ['example.com/hold'] });
      expectStatus(await remove(t, parent, 'Foreground'), 200);
      await eventuallyGone(t, parent);
      expectStatus(await t.call('GET', child), 200);
    },
    'orphaned dependents are kept without their owner reference': async (t) => {
      const { parent, child } = await createFamily(t);
      const marked = expectStatus(await remove(t, parent, 'Orphan'), 200);
      deepStrictEqual(at(marked.body, 'metadata.finalizers'), ['orphan']);
      await eventuallyGone(t, parent);
      strictEqual(at(await get(t, child), 'metadata.ownerReferences'), undefined);
    },
    'a dependent with another existing owner is kept': async (t) => {
      const ns = await t.namespace();
      const first = await create(t, core(ns, 'configmaps'), configMap('first'));
      const second = await create(t, core(ns, 'configmaps'), configMap('second'));
      const meta = { ownerReferences: [ownerOf(first), ownerOf(second)] };
      await create(t, core(ns, 'configmaps'), configMap('child', {}, meta));
      await remove(t, core(ns, 'configmaps', 'first'), 'Background');
      const child = core(ns, 'configmaps', 'child');
      const seen = await eventually(
        'one owner is left',
        () => get(t, child),
        (object) => at(object, 'metadata.ownerReferences.1') === undefined,
      );
      strictEqual(at(seen, 'metadata.ownerReferences.0.name'), 'second');
      await remove(t, core(ns, 'configmaps', 'second'), 'Background');
      await eventuallyGone(t, child);
    },
    'a dependent whose owner does not exist is deleted': async (t) => {
      const ns = await t.namespace();
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: '11111111-1111-4111-8111-111111111111' };
      await create(t, core(ns, 'configmaps'), configMap('child', {}, { ownerReferences: [owner] }));
      await eventuallyGone(t, core(ns, 'configmaps', 'child'));
    },
    'an object of the same name with a different uid is not an owner': async (t) => {
      const ns = await t.namespace();
      const owner = ownerOf(await create(t, core(ns, 'configmaps'), configMap('owner')));
      const wrong = { ...owner, uid: '11111111-1111-4111-8111-111111111111' };
      await create(t, core(ns, 'configmaps'), configMap('child', {}, { ownerReferences: [wrong] }));
      await eventuallyGone(t, core(ns, 'configmaps', 'child'));
      expectStatus(await t.call('GET', core(ns, 'configmaps', 'owner')), 200);
    },
    'a chain of custom and built-in kinds is deleted completely': async (t) => {
      const widgets = await createWidgets(t);
      const ns = await t.namespace();
      const top = await create(t, widgets.path(ns), widgets.widget('top'));
      const middle = await create(
        t,
        core(ns, 'configmaps'),
        configMap('middle', {}, { ownerReferences: [ownerOf(top)] }),
      );
      await create(t, widgets.path(ns), widgets.widget('end', {}, { ownerReferences: [ownerOf(middle)] }));
      await remove(t, widgets.path(ns, 'top'), 'Background');
      await eventuallyGone(t, widgets.path(ns, 'end'));
      expectStatus(await t.call('GET', core(ns, 'configmaps', 'middle')), 404);
    },
    'the deprecated orphanDependents still means Orphan': async (t) => {
      const { parent, child } = await createFamily(t);
      await t.call('DELETE', parent, { body: { apiVersion: 'v1', kind: 'DeleteOptions', orphanDependents: true } });
      await eventuallyGone(t, parent);
      expectStatus(await t.call('GET', child), 200);
    },
    'an unknown policy is rejected': async (t) => {
      const { parent } = await createFamily(t);
      const answer = await remove(t, parent, 'Sideways');
      t.same('answer', { status: answer.status, body: answer.body });
    },
    'the dependents of a Job that is deleted with Background are deleted': async (t) => {
      const ns = await t.namespace();
      const template = { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'example.com/x' }] } };
      const job = await create(t, grouped('batch/v1', ns, 'jobs'), {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'j' },
        spec: { template },
      });
      await create(t, core(ns, 'configmaps'), configMap('child', {}, { ownerReferences: [ownerOf(job)] }));
      await remove(t, grouped('batch/v1', ns, 'jobs', 'j'), 'Background');
      await eventuallyGone(t, core(ns, 'configmaps', 'child'));
    },
  },
};
