import { match, ok, strictEqual } from 'node:assert/strict';
import type { Topic, WebhookReply } from '#local-cluster/conformance/suite/case.ts';
import { at, textAt } from '#local-cluster/conformance/suite/json.ts';
import { configMap, expectStatus } from '#local-cluster/conformance/topics/objects.ts';
import { allowed, hooked } from '#local-cluster/conformance/topics/admission/support.ts';

export const failures: Topic['cases'] = {
  'an unreachable webhook fails the request, or is ignored': async (t) => {
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
  'a slow webhook times out': async (t) => {
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
  'a webhook without a listener fails the request': async (t) => {
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
  'responses other than a review fail the request': async (t) => {
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
};
