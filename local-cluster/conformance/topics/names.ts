// Generated and given names, and the rules of metadata.
import { match, strictEqual } from 'node:assert/strict';
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  type Body,
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  grouped,
} from '#local-cluster/conformance/topics/objects.ts';

const generated = (generateName: string): Body => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName } });

export const names: Topic = {
  topic: 'names',
  cases: {
    'a generated name is the prefix and five characters': async (t) => {
      const created = await create(t, core(await t.namespace(), 'configmaps'), generated('abc-'));
      match(textAt(created, 'metadata.name'), /^abc-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      strictEqual(at(created, 'metadata.generateName'), 'abc-');
    },
    'a long prefix is truncated': async (t) => {
      const created = await create(t, core(await t.namespace(), 'configmaps'), generated('x'.repeat(80)));
      const name = textAt(created, 'metadata.name');
      match(name, /^x{58}[a-z0-9]{5}$/);
    },
    'a name has precedence over a prefix': async (t) => {
      const body = { ...configMap('given'), metadata: { name: 'given', generateName: 'abc-' } };
      strictEqual(at(await create(t, core(await t.namespace(), 'configmaps'), body), 'metadata.name'), 'given');
    },
    'an invalid prefix is rejected': async (t) => {
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), { body: generated('Bad_') });
      t.same('status', {
        status: answer.status,
        reason: at(answer.body, 'reason'),
        fields: at(answer.body, 'details.causes.0.field'),
      });
    },
    'an object without any name is rejected': async (t) => {
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: {} };
      t.same('configmap', failureOf(await t.call('POST', core(await t.namespace(), 'configmaps'), { body })));
      const widgets = await createWidgets(t);
      const unnamed = { apiVersion: widgets.apiVersion, kind: 'Widget', metadata: {} };
      t.same('widget', failureOf(await t.call('POST', widgets.path(await t.namespace()), { body: unnamed })));
    },
    'names of each type are validated by a rule of their own': async (t) => {
      const ns = await t.namespace();
      const secret = (name: string): Body => ({ apiVersion: 'v1', kind: 'Secret', metadata: { name } });
      const service = (name: string): Body => ({
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { ports: [{ port: 80 }] },
      });
      const role = (name: string): Body => ({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'Role',
        metadata: { name },
      });
      t.same('secret', failureOf(await t.call('POST', core(ns, 'secrets'), { body: secret('Upper') })));
      t.same(
        'secret too long',
        failureOf(await t.call('POST', core(ns, 'secrets'), { body: secret('x'.repeat(254)) })),
      );
      t.same('service', failureOf(await t.call('POST', core(ns, 'services'), { body: service('a.b') })));
      const roles = grouped('rbac.authorization.k8s.io/v1', ns, 'roles');
      expectStatus(await t.call('POST', roles, { body: role('system:Thing') }), 201);
      t.same('role', failureOf(await t.call('POST', roles, { body: role('a%b') })));
      const widgets = await createWidgets(t);
      t.same('widget', failureOf(await t.call('POST', widgets.path(ns), { body: widgets.widget('Upper_') })));
    },
    'the name of a namespace must be a DNS label': async (t) => {
      const namespace = (name: string): Body => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      t.same('dots', failureOf(await t.call('POST', '/api/v1/namespaces', { body: namespace('a.b') })));
      t.same('upper case', failureOf(await t.call('POST', '/api/v1/namespaces', { body: namespace('Upper') })));
      t.same('too long', failureOf(await t.call('POST', '/api/v1/namespaces', { body: namespace('x'.repeat(64)) })));
    },
    'an object needs an existing namespace': async (t) => {
      const path = core(`none-${t.id}`, 'configmaps');
      t.same('answer', failureOf(expectStatus(await t.call('POST', path, { body: configMap('a') }), 404)));
      const widgets = await createWidgets(t);
      const custom = await t.call('POST', widgets.path(`none-${t.id}`), { body: widgets.widget('a') });
      t.same('custom', failureOf(expectStatus(custom, 404)));
    },
    'labels and annotations are validated': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const post = (metadata: Body) => t.call('POST', path, { body: configMap('a', {}, metadata) });
      t.same('label key', failureOf(await post({ labels: { 'a/b/c': 'x' } })));
      t.same('label prefix', failureOf(await post({ labels: { 'UPPER/b': 'x' } })));
      t.same('label value', failureOf(await post({ labels: { a: 'x'.repeat(64) } })));
      t.same('annotation key', failureOf(await post({ annotations: { 'a b': 'x' } })));
      const big = await post({ annotations: { a: 'x'.repeat(256 * 1024) } });
      t.same('annotation size', failureOf(big));
      strictEqual((await post({ labels: { a: 1 } })).status, 400);
    },
    'owner references are validated': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'o', uid: '11111111-1111-4111-8111-111111111111' };
      const post = (ownerReferences: readonly Body[]) =>
        t.call('POST', path, { body: configMap('a', undefined, { ownerReferences }) });
      t.same('nothing in it', failureOf(await post([{ apiVersion: '', kind: '', name: '', uid: '' }])));
      const second = { ...owner, name: 'p', uid: '22222222-2222-4222-8222-222222222222', controller: true };
      t.same('two controllers', failureOf(await post([{ ...owner, controller: true }, second])));
      t.same('event', failureOf(await post([{ ...owner, kind: 'Event' }])));
    },
    'finalizers need a domain': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      t.same(
        'no domain',
        failureOf(await t.call('POST', path, { body: configMap('a', undefined, { finalizers: ['plain'] }) })),
      );
      t.same(
        'no name',
        failureOf(await t.call('POST', path, { body: configMap('a', undefined, { finalizers: ['a b'] }) })),
      );
    },
    'a cluster-scoped object has no namespace': async (t) => {
      const body = {
        apiVersion: 'storage.k8s.io/v1',
        kind: 'StorageClass',
        metadata: { name: `sc-${t.id}`, namespace: 'default' },
        provisioner: 'example.com/p',
      };
      const answer = await t.call('POST', '/apis/storage.k8s.io/v1/storageclasses', { body });
      t.cleanup(() => t.call('DELETE', `/apis/storage.k8s.io/v1/storageclasses/sc-${t.id}`));
      t.same('answer', failureOf(answer));
    },
    'keys of a ConfigMap are validated': async (t) => {
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), {
        body: configMap('a', { 'a b': 'x', '..': 'y' }),
      });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
  },
};
