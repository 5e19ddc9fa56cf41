import { expect, it, onTestFinished } from 'vitest';
import { admissionFunction, allowed } from '#shared/runtime/admission-function.ts';
import { silentLogger as log } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

const review = {
  apiVersion: 'admission.k8s.io/v1',
  kind: 'AdmissionReview',
  request: {
    uid: 'u1',
    kind: { group: '', version: 'v1', kind: 'Thing' },
    resource: { group: '', version: 'v1', resource: 'things' },
    operation: 'CREATE',
    userInfo: { username: 'jane' },
    object: { metadata: { name: 'a' }, spec: {} },
  },
};

const given = async () => {
  const app = admissionFunction({ name: 'check', log, review: async () => allowed });
  const server = await startServer({ app, log, port: 0 });
  onTestFinished(() => server.close());
  const post = async (body: string, path = '/check?timeout=5s') => {
    const both = [
      await fetch(server.url + path, { method: 'POST', body }),
      await app.request(path, { method: 'POST', body }),
    ];
    const [served, asked] = await Promise.all(
      both.map(async (response) => ({ status: response.status, text: await response.text() })),
    );
    expect(served).toEqual(asked);
    return served;
  };
  return { post };
};

it.each([
  ['a review', JSON.stringify(review), 200],
  ['a request without an event', '{}', 400],
  ['what is not valid JSON', 'hello', 400],
  ['a body that is too large', 'x'.repeat(6 * 2 ** 20 + 1), 413],
])('answers %s as the app does', async (_what, body, status) => {
  const { post } = await given();
  expect(await post(body)).toMatchObject({ status });
});

it('passes other paths to the app', async () => {
  const { post } = await given();
  expect(await post('{}', '/other')).toMatchObject({ status: 404 });
});
