// A pod that disappeared without closing its connections, for example because its node failed: clients do not wait without limit.
import { type IncomingMessage, type Server, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { lookAtUpload, sendToUpload } from '#shared/exchange/upload/session.ts';

let server: Server;
let worker = { url: '', token: 'x' };
let answer: (request: IncomingMessage, response: ServerResponse) => void;
beforeEach(async () => {
  server = createServer((request, response) => answer(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  worker = { ...worker, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const { signal } = new AbortController();
const gone = { status: 503, reason: 'Interrupted' };

it('a status request without an answer times out', async () => {
  answer = () => undefined;
  await expect(lookAtUpload(worker, signal, { waitMs: 300 })).rejects.toMatchObject(gone);
});

it('a receiver that has ended is not waited for once its file has become a disk', async () => {
  server.close();
  let asked = 0;
  const check = async (): Promise<void> => {
    asked += 1;
    if (asked === 2) throw new Error('uploaded already');
  };
  await expect(lookAtUpload(worker, signal, { check })).rejects.toThrow('uploaded already');
});

const chunk = Buffer.alloc(2 ** 20);
/** Comes without end, as fast as it is taken. */
const endless = () => new Readable({ read: (): void => void body.push(chunk) });
let body: Readable;

it.each<[what: string, takes: boolean, make: () => Readable | Buffer, waits: number]>([
  ['bytes that are not read time out', false, () => (body = endless()), 0],
  ['also when the response may take a day', false, () => (body = endless()), 86_400],
  ['a file that was read, but not answered, times out', true, () => chunk, 0],
])('%s', async (_what, takes, make, waits) => {
  answer = (request) => void (takes ? request.resume() : request.pause());
  const sending = { body: make(), offset: 0, isLast: true, takesOver: false, waits, signal, silenceMs: 300 };
  await expect(sendToUpload(worker, sending)).rejects.toMatchObject(gone);
});

it('a slow client does not time out', async () => {
  answer = (request, response) => request.resume().on('end', () => response.writeHead(204).end());
  const slow = Readable.from(
    (async function* slowly() {
      for (let sent = 0; sent < 4; sent += 1) {
        await new Promise((resolve) => setTimeout(resolve, 700));
        yield Buffer.from('a few');
      }
    })(),
  );
  const sending = { body: slow, offset: 0, isLast: true, takesOver: false, waits: 0, signal, silenceMs: 300 };
  expect(await sendToUpload(worker, sending)).toMatchObject({ status: 204 });
});
