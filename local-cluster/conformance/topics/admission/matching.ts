import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { deepStrictEqual, strictEqual } from 'node:assert/strict';
import { at } from '#local-cluster/conformance/suite/json.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  mergePatch,
} from '#local-cluster/conformance/topics/objects.ts';
import { allowed, rule, pathsOf, reviewsOf, hooked } from '#local-cluster/conformance/topics/admission/support.ts';

export const matching: Topic['cases'] = {
  'an object selector matches labels of the old object or the new': async (t) => {
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
  'a namespace selector matches labels of the namespace': async (t) => {
    const { webhook } = await hooked(t, 'Validating', [{}], () => allowed);
    await create(t, core('default', 'configmaps'), configMap(`a-${t.id}`));
    t.cleanup(() => t.call('DELETE', core('default', 'configmaps', `a-${t.id}`)));
    deepStrictEqual(pathsOf(webhook), []);
  },
  'rules match operation, group, version, resource and scope': async (t) => {
    const every = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] };
    const hooks = [
      { path: '/create', rules: [rule({ operations: ['CREATE'] })] },
      // Objects without a namespace match in spite of the namespace selector.
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
  'match conditions are evaluated in CEL': async (t) => {
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
};
