import { EventEmitter } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it, onTestFinished } from 'vitest';
import { admissionFunction, allowed } from '#shared/runtime/admission-function.ts';
import { answerDirectly } from '#shared/runtime/direct.ts';
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

it('holds a body in chunks of a byte at about its size', async () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const held = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const before = held();
  const request = new EventEmitter();
  const body = new Promise<string>((resolve) => {
    const answer = async (text: string) => {
      resolve(text);
      return { status: 200, body: {} };
    };
    const handler = { maxBytes: 2 ** 20, tooLarge: () => ({ status: 413, body: {} }), answer };
    const response = { writeHead: () => {}, end: () => {} } as unknown as ServerResponse;
    void answerDirectly(handler, request as IncomingMessage, response, () => false);
  });
  for (let sent = 0; sent < 200_000; sent += 1) request.emit('data', Buffer.from(String(sent % 7)));
  expect(held() - before).toBeLessThan(5 * 2 ** 20);
  request.emit('end');
  expect(await body).toBe(Array.from({ length: 200_000 }, (_, at) => at % 7).join(''));
});

it('passes other paths to the app', async () => {
  const { post } = await given();
  expect(await post('{}', '/other')).toMatchObject({ status: 404 });
});
