import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { atMost } from '#shared/exchange/upload/deliver.ts';
import { sendToUpload } from '#shared/exchange/upload/session.ts';

let pod: Server;
let url = '';
let arrived = 0;
beforeEach(async () => {
  arrived = 0;
  pod = createServer((request, response) => {
    request.on('data', (chunk: Buffer) => (arrived += chunk.length));
    request.on('end', () => response.writeHead(204, { 'upload-offset': String(arrived) }).end());
  });
  await new Promise<void>((resolve) => pod.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(pod.address() as AddressInfo).port}`;
});
afterEach(() => void pod.close());

const send = (chunks: number, mostBytes: number) => {
  const bytes = Readable.from(Array.from({ length: chunks }, () => Buffer.alloc(1000)));
  const body = Readable.from(atMost(bytes, mostBytes), { objectMode: false });
  const { signal } = new AbortController();
  const how = { offset: 0, isLast: true, takesOver: false, signal };
  return sendToUpload({ url, token: 'x' }, { body, ...how });
};

it('accepts a file of unknown length up to the maximum', async () => {
  expect(await send(4, 4000)).toMatchObject({ status: 204, offset: 4000 });
});

it('aborts a larger one, and reports the maximum', async () => {
  await expect(send(400, 4000)).rejects.toMatchObject({ status: 413, message: /the limit is 4000/ });
  expect(arrived).toBeLessThanOrEqual(4000);
});
