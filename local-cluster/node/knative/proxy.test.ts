import { once } from 'node:events';
import { type IncomingMessage, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { createProxy } from '#local-cluster/node/knative/proxy.ts';

const portOf = (server: Server): number => (server.address() as AddressInfo).port;
const seen: IncomingMessage[] = [];
const revision = { 'Knative-Serving-Revision': 'one-00001' };

const backend = createServer((request, response) => {
  seen.push(request);
  void buffer(request).then((body) => response.writeHead(207, { 'x-one': 'yes' }).end(`got ${body.length}`));
});
const target = { serviceNamespace: 'ns', serviceName: 'one', headers: revision, address: '127.0.0.1' };
const proxy = createProxy(({ url }) => {
  if (url === '/none') return undefined;
  return { ...target, servicePort: url === '/closed' ? 1 : portOf(backend) };
});
const urlOf = (path: string): string => `http://127.0.0.1:${portOf(proxy)}${path}`;

beforeAll(async () => {
  for (const server of [backend, proxy]) await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterAll(() => {
  for (const server of [backend, proxy]) server.close();
});

it('a request arrives with its body and the headers of its revision, and its answer comes back', async () => {
  const body = Buffer.alloc(3_000_000, 1);
  const response = await fetch(urlOf('/some?query'), { method: 'PUT', body, headers: { 'x-own': 'a' } });
  expect([response.status, response.headers.get('x-one'), await response.text()]).toEqual([207, 'yes', 'got 3000000']);
  expect(seen.at(-1)).toMatchObject({
    method: 'PUT',
    url: '/some?query',
    headers: {
      host: `127.0.0.1:${portOf(proxy)}`,
      'x-own': 'a',
      'content-length': '3000000',
      'knative-serving-revision': 'one-00001',
      'x-forwarded-for': '127.0.0.1',
    },
  });
});

it('what nobody has is not found, and what does not answer is unavailable', async () => {
  const none = await fetch(urlOf('/none'));
  expect([none.status, await none.text()]).toEqual([
    404,
    `no Knative Service has the host 127.0.0.1:${portOf(proxy)}\n`,
  ]);
  const closed = await fetch(urlOf('/closed'));
  expect([closed.status, await closed.text()]).toEqual([
    503,
    expect.stringMatching(/^one cannot be reached: .*ECONNREFUSED/),
  ]);
});
