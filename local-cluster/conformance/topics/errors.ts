// The forms of errors.
import { match, ok, strictEqual } from 'node:assert/strict';
import type { Topic } from '#local-cluster/conformance/suite/case.ts';
import { at } from '#local-cluster/conformance/suite/json.ts';
import {
  configMap,
  core,
  create,
  expectStatus,
  failureOf,
  grouped,
  pod,
} from '#local-cluster/conformance/topics/objects.ts';

export const errors: Topic = {
  topic: 'errors',
  cases: {
    '400: a body that is not JSON': async (t) => {
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), { text: '{"apiVersion": "v1",' });
      expectStatus(answer, 400);
      strictEqual(at(answer.body, 'reason'), 'BadRequest');
      strictEqual(at(answer.body, 'kind'), 'Status');
    },
    '400: a body of another kind': async (t) => {
      const body = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a' } };
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), { body });
      t.same('answer', failureOf(expectStatus(answer, 400)));
    },
    '400: a body without a kind': async (t) => {
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), {
        body: { metadata: { name: 'a' } },
      });
      // The kind is taken from the path.
      t.same('answer', { status: answer.status });
    },
    '400: a field of the wrong type': async (t) => {
      const body = { ...configMap('a'), data: 'text' };
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), { body });
      expectStatus(answer, 400);
      strictEqual(at(answer.body, 'reason'), 'BadRequest');
    },
    '401: an unknown token': async (t) => {
      const answer = await t.call('GET', '/api/v1/namespaces', { token: 'nonsense' });
      t.same('answer', failureOf(expectStatus(answer, 401)));
    },
    '403: a user without permissions may not list namespaces': async (t) => {
      const answer = await t.call('GET', '/api/v1/namespaces', { token: null });
      t.same('answer', failureOf(expectStatus(answer, 403)));
    },
    '403: a user without permissions may not read a non-resource path': async (t) => {
      const answer = await t.call('GET', '/metrics', { token: null });
      t.same('answer', failureOf(expectStatus(answer, 403)));
    },
    '404: a missing object': async (t) => {
      const answer = await t.call('GET', core(await t.namespace(), 'configmaps', 'none'));
      t.same('answer', failureOf(expectStatus(answer, 404)));
    },
    '404: an object of an unknown group': async (t) => {
      const answer = await t.call('GET', grouped('batch/v1', await t.namespace(), 'jobs', 'none'));
      t.same('answer', failureOf(expectStatus(answer, 404)));
    },
    '404: an unknown resource, version, group and path': async (t) => {
      const ns = await t.namespace();
      const paths = [core(ns, 'nothings'), grouped('batch/v9', ns, 'jobs'), '/apis/none.example.com/v1', '/nothing'];
      for (const path of paths) {
        const answer = await t.call('GET', path);
        t.same(path, failureOf(expectStatus(answer, 404)));
      }
    },
    '405: a verb that a resource does not support': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const onObject = await t.call('POST', core(ns, 'configmaps', 'a'), { body: configMap('a') });
      t.same('post to an object', failureOf(expectStatus(onObject, 405)));
      const onList = await t.call('PUT', core(ns, 'configmaps'), { body: configMap('a') });
      t.same('put to a collection', failureOf(expectStatus(onList, 405)));
      const review = await t.call('GET', '/apis/authorization.k8s.io/v1/subjectaccessreviews');
      t.same('get of a review', failureOf(expectStatus(review, 405)));
    },
    '406: an unsupported response format': async (t) => {
      const answer = await t.call('GET', '/api/v1/namespaces', { accept: 'text/html' });
      expectStatus(answer, 406);
      strictEqual(at(answer.body, 'reason'), 'NotAcceptable');
      strictEqual(at(answer.body, 'code'), 406);
    },
    '409: a name that is in use': async (t) => {
      const path = core(await t.namespace(), 'configmaps');
      await create(t, path, configMap('a'));
      const answer = await t.call('POST', path, { body: configMap('a') });
      t.same('answer', failureOf(expectStatus(answer, 409)));
    },
    '409: a version that is no longer current': async (t) => {
      const ns = await t.namespace();
      const created = await create(t, core(ns, 'configmaps'), configMap('a'));
      const body = configMap('a', { k: 'v' }, { resourceVersion: at(created, 'metadata.resourceVersion') });
      expectStatus(await t.call('PUT', core(ns, 'configmaps', 'a'), { body }), 200);
      const answer = await t.call('PUT', core(ns, 'configmaps', 'a'), { body: { ...body, data: { k: 'w' } } });
      t.same('answer', failureOf(expectStatus(answer, 409)));
    },
    '415: an unknown content type': async (t) => {
      const ns = await t.namespace();
      const answer = await t.call('POST', core(ns, 'configmaps'), { body: configMap('a'), contentType: 'text/plain' });
      expectStatus(answer, 415);
      strictEqual(at(answer.body, 'reason'), 'UnsupportedMediaType');
    },
    '415: an unknown patch type': async (t) => {
      const ns = await t.namespace();
      await create(t, core(ns, 'configmaps'), configMap('a'));
      const answer = await t.call('PATCH', core(ns, 'configmaps', 'a'), { body: {}, contentType: 'application/json' });
      t.same('answer', failureOf(expectStatus(answer, 415)));
    },
    '422: every error of an object at once, each with its field': async (t) => {
      const body = configMap('Not A Name', {}, { labels: { 'bad key': 'x', ok: 'bad value!' } });
      const answer = await t.call('POST', core(await t.namespace(), 'configmaps'), { body });
      t.same('answer', failureOf(expectStatus(answer, 422)));
    },
    '429: an eviction that a budget does not allow': async (t) => {
      const ns = await t.namespace();
      const labelled = { ...pod('guarded'), metadata: { name: 'guarded', labels: { app: 'guarded' } } };
      await create(t, core(ns, 'pods'), labelled);
      const running = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
      const contentType = 'application/merge-patch+json';
      expectStatus(await t.call('PATCH', `${core(ns, 'pods', 'guarded')}/status`, { body: running, contentType }), 200);
      const budget = {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name: 'guard' },
        spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
      };
      await create(t, grouped('policy/v1', ns, 'poddisruptionbudgets'), budget);
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'guarded', namespace: ns } };
      const answer = await t.call('POST', `${core(ns, 'pods', 'guarded')}/eviction`, { body: eviction });
      expectStatus(answer, 429);
      strictEqual(at(answer.body, 'reason'), 'TooManyRequests');
      ok(Number(at(answer.body, 'details.retryAfterSeconds')) > 0);
    },
    'every response has an audit id and a content type': async (t) => {
      const answer = await t.call('GET', '/api/v1/namespaces/default');
      match(answer.headers['audit-id'] ?? '', /^[0-9a-f-]{36}$/);
      strictEqual(answer.headers['content-type'], 'application/json');
      strictEqual(answer.headers['cache-control'], 'no-cache, private');
    },
  },
};
