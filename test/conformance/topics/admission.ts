// Admission webhooks: when they are called, with what, and what their word counts.
import { deepStrictEqual, match, ok, strictEqual } from 'node:assert/strict';
import type { CaseContext, Topic, Webhook, WebhookCall, WebhookReply } from '#test/conformance/suite/case.ts';
import { at, type JsonValue, textAt } from '#test/conformance/suite/json.ts';
import { createWidgets } from '#test/conformance/topics/custom.ts';
import {
  apply,
  type Body,
  configMap,
  core,
  create,
  eventually,
  expectStatus,
  failureOf,
  get,
  grouped,
  mergePatch,
} from '#test/conformance/topics/objects.ts';

const allowed: WebhookReply = { response: { allowed: true } };
const denied = (message?: string, more: Body = {}): WebhookReply => ({
  response: { allowed: false, ...(message === undefined ? {} : { status: { message, ...more } }) },
});
const patched = (operations: readonly Body[]): WebhookReply => ({
  response: {
    allowed: true,
    patchType: 'JSONPatch',
    patch: Buffer.from(JSON.stringify(operations)).toString('base64'),
  },
});
const label = (name: string, value: string): Body => ({ op: 'add', path: `/metadata/labels/${name}`, value });

const rule = (more: Body = {}): Body => ({
  apiGroups: [''],
  apiVersions: ['v1'],
  operations: ['CREATE', 'UPDATE', 'DELETE'],
  resources: ['configmaps'],
  scope: '*',
  ...more,
});

interface HookSpec extends Body {
  readonly path?: string;
}

/** Registers webhooks that see the namespaces of this case alone, and waits until the server calls them. */
const register = async (
  t: CaseContext,
  kind: 'Validating' | 'Mutating',
  webhook: Webhook,
  ...[hooks, suffix = 'a']: [hooks: readonly HookSpec[], suffix?: string]
): Promise<string> => {
  const name = `${kind.toLowerCase()}-${suffix}-${t.id}`;
  const path = `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
  const webhooks = hooks.map(({ path: hookPath = '/', ...hook }, i) => ({
    name: `hook${i}.${t.id}.example.com`,
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    timeoutSeconds: 5,
    clientConfig: webhook.clientConfig(hookPath),
    namespaceSelector: { matchLabels: { case: t.id } },
    rules: [rule()],
    ...hook,
  }));
  await create(t, path, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: `${kind}WebhookConfiguration`,
    metadata: { name },
    webhooks,
  });
  t.cleanup(() => t.call('DELETE', `${path}/${name}`));
  return `${path}/${name}`;
};

/** The server learns of a configuration a moment after it was created. A last hook of every configuration tells when. */
const inForce = async (
  t: CaseContext,
  webhook: Webhook,
  kinds: readonly ('Validating' | 'Mutating')[],
): Promise<void> => {
  for (const kind of kinds) {
    const probe = {
      path: `/probe-${kind}`,
      rules: [rule({ apiGroups: ['coordination.k8s.io'], resources: ['leases'] })],
    };
    await register(t, kind, webhook, [probe], 'probe');
  }
  const ns = await t.namespace();
  const body = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'probe' }, spec: {} };
  await eventually(
    'the webhooks are called',
    async () => {
      await t.call('POST', `${grouped('coordination.k8s.io/v1', ns, 'leases')}?dryRun=All`, { body });
      return kinds.filter((kind) => webhook.calls.some(({ path }) => path === `/probe-${kind}`)).length;
    },
    (count) => count === kinds.length,
  );
};

/** The calls of the case, without those for the probe. */
const callsOf = (webhook: Webhook): readonly WebhookCall[] =>
  webhook.calls.filter(({ review }) => at(review, 'request.resource.resource') !== 'leases');

const pathsOf = (webhook: Webhook): string[] => callsOf(webhook).map(({ path }) => path);

const reviewsOf = (webhook: Webhook): JsonValue[] => callsOf(webhook).map(({ review }) => review);

/** One configuration of one kind, in force. */
const hooked = async (
  t: CaseContext,
  kind: 'Validating' | 'Mutating',
  hooks: readonly HookSpec[],
  reply: (path: string, review: JsonValue) => WebhookReply | Promise<WebhookReply>,
): Promise<{ webhook: Webhook; configmaps: string }> => {
  const webhook = t.webhook(({ path, review }) => (path.startsWith('/probe') ? allowed : reply(path, review)));
  await register(t, kind, webhook, hooks);
  await inForce(t, webhook, [kind]);
  return { webhook, configmaps: core(await t.namespace(), 'configmaps') };
};

export const admission: Topic = {
  topic: 'admission',
  cases: {
    'a validating webhook gets the whole review of a create': async (t) => {
      const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
      await create(t, configmaps, configMap('a', { k: 'v' }));
      t.same('review', reviewsOf(webhook)[0]);
    },
    'update and delete come with the old object': async (t) => {
      const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
      await create(t, configmaps, configMap('a', { k: 'v' }));
      await mergePatch(t, `${configmaps}/a`, { data: { k: 'w' } });
      await t.call('DELETE', `${configmaps}/a`);
      t.same('update', reviewsOf(webhook)[1]);
      t.same('delete', reviewsOf(webhook)[2]);
    },
    'a denial reaches the client': async (t) => {
      const replies: Record<string, WebhookReply> = {
        plain: denied(),
        message: denied('not today'),
        code: denied('no such thing', { code: 422, reason: 'Invalid' }),
        details: denied('bad field', {
          code: 400,
          reason: 'BadRequest',
          details: { causes: [{ field: 'data.k', message: 'wrong', reason: 'FieldValueInvalid' }] },
        }),
      };
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{}],
        (_, review) => replies[textAt(review, 'request.name')] ?? allowed,
      );
      for (const name of Object.keys(replies))
        t.same(name, failureOf(await t.call('POST', configmaps, { body: configMap(name) })));
      expectStatus(await t.call('GET', `${configmaps}/message`), 404);
    },
    'a denied update and delete leave the object': async (t) => {
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{ rules: [rule({ operations: ['UPDATE', 'DELETE'] })] }],
        () => denied('keep it'),
      );
      const created = await create(t, configmaps, configMap('a', { k: 'v' }));
      t.same('update', failureOf(await mergePatch(t, `${configmaps}/a`, { data: { k: 'w' } })));
      t.same('delete', failureOf(await t.call('DELETE', `${configmaps}/a`)));
      t.same('delete of a collection', failureOf(await t.call('DELETE', configmaps)));
      deepStrictEqual(await get(t, `${configmaps}/a`), created);
    },
    'warnings reach the client, allowed or not': async (t) => {
      const { configmaps } = await hooked(t, 'Validating', [{}], (_, review) => ({
        response: { allowed: textAt(review, 'request.name') === 'a', warnings: ['mind the gap', 'and "this"'] },
      }));
      const good = await t.call('POST', configmaps, { body: configMap('a') });
      t.same('allowed', { status: good.status, warning: good.headers['warning'] });
      const bad = await t.call('POST', configmaps, { body: configMap('b') });
      t.same('denied', { status: bad.status, warning: bad.headers['warning'] });
    },
    'a mutating webhook changes the object before it is stored': async (t) => {
      const { configmaps } = await hooked(t, 'Mutating', [{}], () =>
        patched([{ op: 'add', path: '/data', value: { k: 'patched' } }]),
      );
      const created = await create(t, configmaps, configMap('a', { k: 'v' }));
      t.same('created', created);
      deepStrictEqual(at(await get(t, `${configmaps}/a`), 'data'), { k: 'patched' });
    },
    'mutating webhooks run in order of configuration and hook, each on the work of the last': async (t) => {
      const webhook = t.webhook(({ path, review }) => {
        if (path.startsWith('/probe')) return allowed;
        const seen = textAt(review, 'request.object.data.seen');
        return patched([{ op: 'add', path: '/data/seen', value: `${seen}${path.slice(1)}` }]);
      });
      await register(t, 'Mutating', webhook, [{ path: '/3' }], 'b');
      await register(t, 'Mutating', webhook, [{ path: '/1' }, { path: '/2' }], 'a');
      await inForce(t, webhook, ['Mutating']);
      const created = await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { seen: '' }));
      strictEqual(at(created, 'data.seen'), '123');
    },
    'a webhook that asks for it is called again after later changes': async (t) => {
      const webhook = t.webhook(({ path, review }) => {
        if (path.startsWith('/probe')) return allowed;
        const seen = textAt(review, 'request.object.data.seen');
        return path === '/late'
          ? patched([{ op: 'add', path: '/data/late', value: 'x' }])
          : patched([{ op: 'add', path: '/data/seen', value: `${seen}+` }]);
      });
      await register(t, 'Mutating', webhook, [{ path: '/again', reinvocationPolicy: 'IfNeeded' }, { path: '/late' }]);
      await inForce(t, webhook, ['Mutating']);
      const created = await create(t, core(await t.namespace(), 'configmaps'), configMap('a', { seen: '' }));
      deepStrictEqual(pathsOf(webhook), ['/again', '/late', '/again']);
      strictEqual(at(created, 'data.seen'), '++');
    },
    'validating webhooks see what mutating ones made, and run after all of them': async (t) => {
      const webhook = t.webhook(({ path }) =>
        path === '/mutate' ? patched([{ op: 'add', path: '/data', value: { k: 'patched' } }]) : allowed,
      );
      await register(t, 'Validating', webhook, [{ path: '/validate' }]);
      await register(t, 'Mutating', webhook, [{ path: '/mutate' }]);
      await inForce(t, webhook, ['Validating', 'Mutating']);
      await create(t, core(await t.namespace(), 'configmaps'), configMap('a'));
      deepStrictEqual(pathsOf(webhook), ['/mutate', '/validate']);
      strictEqual(at(reviewsOf(webhook)[1], 'request.object.data.k'), 'patched');
    },
    'a mutated object is validated and defaulted again': async (t) => {
      const { configmaps } = await hooked(t, 'Mutating', [{}], () =>
        patched([{ op: 'add', path: '/metadata/labels', value: { 'bad key': 'x' } }]),
      );
      t.same('invalid', failureOf(await t.call('POST', configmaps, { body: configMap('a') })));
    },
    'an object selector decides by labels, of the old object or the new': async (t) => {
      const { webhook, configmaps } = await hooked(
        t,
        'Validating',
        [{ objectSelector: { matchLabels: { on: 'yes' } } }],
        () => allowed,
      );
      await create(t, configmaps, configMap('a'));
      deepStrictEqual(pathsOf(webhook), []);
      await mergePatch(t, `${configmaps}/a`, { metadata: { labels: { on: 'yes' } } });
      strictEqual(pathsOf(webhook).length, 1);
      await mergePatch(t, `${configmaps}/a`, { metadata: { labels: { on: null } } });
      strictEqual(pathsOf(webhook).length, 2);
      await mergePatch(t, `${configmaps}/a`, { data: { k: 'v' } });
      strictEqual(pathsOf(webhook).length, 2);
    },
    'a namespace selector decides by labels of the namespace': async (t) => {
      const { webhook } = await hooked(t, 'Validating', [{}], () => allowed);
      await create(t, core('default', 'configmaps'), configMap(`a-${t.id}`));
      t.cleanup(() => t.call('DELETE', core('default', 'configmaps', `a-${t.id}`)));
      deepStrictEqual(pathsOf(webhook), []);
    },
    'rules decide by operation, group, version, resource and scope': async (t) => {
      const every = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
      const hooks = [
        { path: '/create', rules: [rule({ operations: ['CREATE'] })] },
        // The namespace selector does not keep it from objects without namespace.
        { path: '/any', rules: [rule(every)], objectSelector: { matchLabels: { of: t.id } } },
        { path: '/secrets', rules: [rule({ resources: ['secrets'] })] },
        { path: '/cluster', rules: [rule({ scope: 'Cluster' })] },
        { path: '/status', rules: [rule({ resources: ['pods/status'] })] },
      ];
      const { webhook, configmaps } = await hooked(t, 'Validating', hooks, () => allowed);
      await create(t, configmaps, configMap('a', undefined, { labels: { of: t.id } }));
      deepStrictEqual(pathsOf(webhook).toSorted(), ['/any', '/create']);
      await mergePatch(t, `${configmaps}/a`, { data: { k: 'v' } });
      deepStrictEqual(pathsOf(webhook).toSorted(), ['/any', '/any', '/create']);
    },
    'match conditions decide in CEL': async (t) => {
      const matchConditions = [
        { name: 'named', expression: "request.name.startsWith('yes')" },
        { name: 'not-admin', expression: "request.userInfo.username != 'nobody'" },
        { name: 'has-data', expression: "has(object.data) && object.data['k'] == 'v'" },
      ];
      const { webhook, configmaps } = await hooked(
        t,
        'Validating',
        [{ matchConditions, rules: [rule({ operations: ['CREATE'] })] }],
        () => allowed,
      );
      await create(t, configmaps, configMap('no', { k: 'v' }));
      await create(t, configmaps, configMap('yes-1', { k: 'w' }));
      await create(t, configmaps, configMap('yes-2', { k: 'v' }));
      deepStrictEqual(
        reviewsOf(webhook).map((review) => at(review, 'request.name')),
        ['yes-2'],
      );
    },
    'a match condition that fails follows the failure policy': async (t) => {
      const matchConditions = [{ name: 'broken', expression: "object.data['none'] == 'v'" }];
      const { configmaps } = await hooked(t, 'Validating', [{ matchConditions, failurePolicy: 'Fail' }], () => allowed);
      const answer = await t.call('POST', configmaps, { body: configMap('a', { k: 'v' }) });
      t.same('answer', failureOf(expectStatus(answer, 403)));
    },
    'a webhook that cannot be asked fails the request, or is passed over': async (t) => {
      const hooks = [
        { path: '/fail', failurePolicy: 'Fail', objectSelector: { matchLabels: { want: 'fail' } } },
        { path: '/ignore', failurePolicy: 'Ignore', objectSelector: { matchLabels: { want: 'ignore' } } },
      ];
      const { configmaps } = await hooked(t, 'Validating', hooks, () => ({ status: 500, raw: 'broken' }));
      const failed = await t.call('POST', configmaps, {
        body: configMap('a', undefined, { labels: { want: 'fail' } }),
      });
      expectStatus(failed, 500);
      strictEqual(at(failed.body, 'reason'), 'InternalError');
      match(textAt(failed.body, 'message'), /^Internal error occurred: failed calling webhook "hook0\./);
      expectStatus(
        await t.call('POST', configmaps, { body: configMap('b', undefined, { labels: { want: 'ignore' } }) }),
        201,
      );
    },
    'a slow webhook runs into its time-out': async (t) => {
      const slow = async (): Promise<WebhookReply> => {
        await new Promise((resolve) => setTimeout(resolve, 2500));
        return allowed;
      };
      const { configmaps } = await hooked(t, 'Validating', [{ timeoutSeconds: 1 }], slow);
      const started = Date.now();
      const answer = expectStatus(await t.call('POST', configmaps, { body: configMap('a') }), 500);
      ok(Date.now() - started < 2400);
      match(textAt(answer.body, 'message'), /failed calling webhook .*(context deadline exceeded|timeout)/i);
    },
    'a webhook nobody listens to fails the request': async (t) => {
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{ clientConfig: { url: 'https://127.0.0.1:1/x' } }],
        () => allowed,
      );
      const answer = expectStatus(await t.call('POST', configmaps, { body: configMap('a') }), 500);
      match(textAt(answer.body, 'message'), /failed calling webhook .*connection refused/i);
    },
    'a certificate of another authority is not trusted': async (t) => {
      const webhook = t.webhook(() => allowed);
      const { url } = webhook.clientConfig('/');
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{ clientConfig: { url, caBundle: Buffer.from(t.server.caPem).toString('base64') } }],
        () => allowed,
      );
      const answer = expectStatus(await t.call('POST', configmaps, { body: configMap('a') }), 500);
      match(textAt(answer.body, 'message'), /failed calling webhook .*(x509|certificate)/i);
    },
    'answers that are no review fail the request': async (t) => {
      const replies: Record<string, WebhookReply> = {
        'not-json': { raw: 'hello' },
        'other-uid': {
          raw: JSON.stringify({
            apiVersion: 'admission.k8s.io/v1',
            kind: 'AdmissionReview',
            response: { uid: 'x', allowed: true },
          }),
        },
        'no-response': { raw: JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }) },
        'other-kind': { raw: JSON.stringify({ apiVersion: 'v1', kind: 'Pod' }) },
      };
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{}],
        (_, review) => replies[textAt(review, 'request.name')] ?? allowed,
      );
      for (const name of Object.keys(replies)) {
        const answer = await t.call('POST', configmaps, { body: configMap(name) });
        strictEqual(at(expectStatus(answer, 500).body, 'reason'), 'InternalError', name);
      }
    },
    'a dry run calls webhooks without side effects and refuses others': async (t) => {
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
    'a configuration that cannot be is refused': async (t) => {
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
    'the end of an object with finalizers is an update': async (t) => {
      const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
      await create(t, configmaps, configMap('a', undefined, { finalizers: ['example.com/hold'] }));
      t.cleanup(() => mergePatch(t, `${configmaps}/a`, { metadata: { finalizers: null } }));
      await t.call('DELETE', `${configmaps}/a`);
      await mergePatch(t, `${configmaps}/a`, { metadata: { finalizers: null } });
      const seen = reviewsOf(webhook).map((review) => textAt(review, 'request.operation'));
      deepStrictEqual(seen, ['CREATE', 'DELETE', 'UPDATE']);
      ok(at(reviewsOf(webhook)[2], 'request.object.metadata.deletionTimestamp') !== undefined);
    },
    'generated names are known to webhooks': async (t) => {
      const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
      const created = await create(t, configmaps, {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { generateName: 'gen-' },
      });
      strictEqual(at(reviewsOf(webhook)[0], 'request.object.metadata.name'), at(created, 'metadata.name'));
      t.same('name of the request', { name: textAt(reviewsOf(webhook)[0], 'request.name') === '' ? 'empty' : 'set' });
    },
    'a service that is not there cannot be called': async (t) => {
      const { configmaps } = await hooked(
        t,
        'Validating',
        [{ clientConfig: { service: { namespace: 'default', name: `none-${t.id}`, path: '/x' } } }],
        () => allowed,
      );
      const answer = expectStatus(await t.call('POST', configmaps, { body: configMap('a') }), 500);
      t.same('message', textAt(answer.body, 'message').replace(/Post "[^"]*": /, ''));
    },
    'labels put on by a webhook stay with the manager of the request': async (t) => {
      const { configmaps } = await hooked(t, 'Mutating', [{}], () =>
        patched([{ op: 'add', path: '/metadata/labels', value: {} }, label('x', 'y')]),
      );
      t.same('created', await create(t, configmaps, configMap('a', { k: 'v' })));
    },
  },
};
