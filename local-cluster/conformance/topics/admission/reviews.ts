import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import type { Topic, WebhookReply } from '#local-cluster/conformance/suite/case.ts';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  get,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import {
  allowed,
  denied,
  patched,
  rule,
  register,
  inForce,
  pathsOf,
  reviewsOf,
  hooked,
} from '#local-cluster/conformance/topics/admission/support.ts';

export const reviews: Topic['cases'] = {
  'a validating webhook gets the whole review of a create': async (t) => {
    const { webhook, configmaps } = await hooked(t, 'Validating', [{}], () => allowed);
    await create(t, configmaps, configMap('a', { k: 'v' }));
    t.same('review', reviewsOf(webhook)[0]);
  },
  'reviews of update and delete contain the old object': async (t) => {
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
  'a denied update and delete do not change the object': async (t) => {
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
  'mutating webhooks run in order of configuration and webhook, each with the result of the previous one': async (
    t,
  ) => {
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
  'a webhook with a reinvocation policy is called again after later changes': async (t) => {
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
  'validating webhooks get the mutated object, and run after all mutating ones': async (t) => {
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
};
