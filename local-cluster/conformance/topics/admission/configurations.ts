import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, ok, strictEqual } from 'node:assert/strict';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import { createWidgets } from '#local-cluster/conformance/topics/custom.ts';
import {
  apply,
  type Body,
  configMap,
  create,
  expectStatus,
  failureOf,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import {
  allowed,
  patched,
  label,
  rule,
  pathsOf,
  reviewsOf,
  hooked,
} from '#local-cluster/conformance/topics/admission/support.ts';

export const configurations: Topic['cases'] = {
  'a dry run calls webhooks without side effects and fails for others': async (t) => {
    const hooks = [
      { path: '/none', objectSelector: { matchLabels: { want: 'none' } }, sideEffects: 'None' },
      { path: '/dry', objectSelector: { matchLabels: { want: 'dry' } }, sideEffects: 'NoneOnDryRun' },
    ];
    const { webhook, configmaps } = await hooked(t, 'Validating', hooks, () => allowed);
    for (const want of ['none', 'dry']) {
      expectStatus(
        await t.call('POST', `${configmaps}?dryRun=All`, { body: configMap('a', undefined, { labels: { want } }) }),
        201,
      );
    }
    deepStrictEqual(pathsOf(webhook), ['/none', '/dry']);
    strictEqual(at(reviewsOf(webhook)[0], 'request.dryRun'), true);
  },
  'an invalid configuration is rejected': async (t) => {
    const webhook = t.webhook(() => allowed);
    const path = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations?dryRun=All';
    const post = async (change: Body): Promise<unknown> => {
      const hook = {
        name: `hook.${t.id}.example.com`,
        admissionReviewVersions: ['v1'],
        sideEffects: 'None',
        clientConfig: { url: 'https://example.com/x', caBundle: webhook.clientConfig().caBundle },
        rules: [rule()],
        ...change,
      };
      const body = {
        apiVersion: 'admissionregistration.k8s.io/v1',
        kind: 'ValidatingWebhookConfiguration',
        metadata: { name: `x-${t.id}` },
        webhooks: [hook],
      };
      return failureOf(await t.call('POST', path, { body }));
    };
    t.same('side effects', await post({ sideEffects: 'Some' }));
    t.same('no side effects', await post({ sideEffects: undefined }));
    t.same('plain http', await post({ clientConfig: { url: 'http://example.com' } }));
    t.same('time-out', await post({ timeoutSeconds: 31 }));
    t.same('no review version', await post({ admissionReviewVersions: [] }));
    t.same('bad rule', await post({ rules: [rule({ operations: ['READ'] })] }));
    t.same('bad condition', await post({ matchConditions: [{ name: 'x', expression: 'object.' }] }));
    t.same('bad name', await post({ name: 'plain' }));
  },
  'a configuration gets its defaults': async (t) => {
    const path = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations?dryRun=All';
    const hook = {
      name: 'hook.example.com',
      admissionReviewVersions: ['v1'],
      sideEffects: 'None',
      clientConfig: { service: { namespace: 'default', name: 'hook' } },
      rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
    };
    const body = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: `x-${t.id}` },
      webhooks: [hook],
    };
    t.same('object', expectStatus(await t.call('POST', path, { body }), 201).body);
  },
  'apply and status writes of custom resources are reviewed': async (t) => {
    const widgets = await createWidgets(t, {
      version: { subresources: { status: {} } },
      root: { 'x-kubernetes-preserve-unknown-fields': true },
    });
    const rules = [rule({ apiGroups: [widgets.group], resources: ['widgets', 'widgets/status'] })];
    const { webhook } = await hooked(t, 'Validating', [{ rules }], () => allowed);
    const ns = await t.namespace();
    await apply(t, widgets.path(ns, 'a'), widgets.widget('a', { spec: { size: 1 } }));
    await apply(t, widgets.path(ns, 'a'), widgets.widget('a', { spec: { size: 2 } }));
    await mergePatch(t, `${widgets.path(ns, 'a')}/status`, { status: { phase: 'X' } });
    const seen = reviewsOf(webhook).map(
      (review) => `${textAt(review, 'request.operation')} ${textAt(review, 'request.subResource')}`,
    );
    deepStrictEqual(seen, ['CREATE ', 'UPDATE ', 'UPDATE status']);
    t.same('create', reviewsOf(webhook)[0]);
    t.same('status', reviewsOf(webhook)[2]);
  },
  'the deletion of an object with finalizers is reviewed as an update': async (t) => {
    const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
    await create(t, configmaps, configMap('a', undefined, { finalizers: ['example.com/hold'] }));
    t.cleanup(() => mergePatch(t, `${configmaps}/a`, { metadata: { finalizers: null } }));
    await t.call('DELETE', `${configmaps}/a`);
    await mergePatch(t, `${configmaps}/a`, { metadata: { finalizers: null } });
    const seen = reviewsOf(webhook).map((review) => textAt(review, 'request.operation'));
    deepStrictEqual(seen, ['CREATE', 'DELETE', 'UPDATE']);
    ok(at(reviewsOf(webhook)[2], 'request.object.metadata.deletionTimestamp') !== undefined);
  },
  'webhooks get generated names': async (t) => {
    const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
    const created = await create(t, configmaps, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { generateName: 'gen-' },
    });
    strictEqual(at(reviewsOf(webhook)[0], 'request.object.metadata.name'), at(created, 'metadata.name'));
    t.same('name of the request', { name: textAt(reviewsOf(webhook)[0], 'request.name') === '' ? 'empty' : 'set' });
  },
  'a missing service cannot be called': async (t) => {
    const { configmaps } = await hooked(
      t,
      'Validating',
      [{ clientConfig: { service: { namespace: 'default', name: `none-${t.id}`, path: '/x' } } }],
      () => allowed,
    );
    const answer = expectStatus(await t.call('POST', configmaps, { body: configMap('a') }), 500);
    t.same('message', textAt(answer.body, 'message').replace(/Post "[^"]*": /, ''));
  },
  'labels set by a webhook are owned by the manager of the request': async (t) => {
    const { configmaps } = await hooked(t, 'Mutating', [{}], () =>
      patched([{ op: 'add', path: '/metadata/labels', value: {} }, label('x', 'y')]),
    );
    t.same('created', await create(t, configmaps, configMap('a', { k: 'v' })));
  },
};
