import { type IncomingMessage, type RequestListener, createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { type TestContext, describe, expect, it } from 'vitest';
import { closeOnceRead, dropUnread } from '#shared/runtime/connections.ts';

const length = 16 * 1024 * 1024;

// Beside each other: some wait for deadlines.
describe.concurrent('a body that is answered before its end', () => {
  /** The port of a server that ends with the test. */
  const serve = async (listener: RequestListener, { onTestFinished }: TestContext): Promise<number> => {
    const server = createServer(listener);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return (server.address() as AddressInfo).port;
  };

  /** The response to a client that reads nothing before it has sent everything. */
  const sendAll = async (port: number): Promise<string> => {
    const socket = connect(port, '127.0.0.1').setEncoding('utf8').pause();
    const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${length}\r\n\r\n`;
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject);
      socket.write(head);
      socket.write(Buffer.alloc(length), (error) => (error instanceof Error ? reject(error) : resolve()));
    });
    const said = new Promise<string>((resolve) => socket.once('data', resolve));
    socket.resume();
    await said;
    socket.destroy();
    return said;
  };

  it.for<[string, (request: AsyncIterator<unknown>) => Promise<unknown>]>([
    ['is not read', () => Promise.resolve()],
    ['is read in part and then left', (chunks) => chunks.next()],
  ])('lets a client finish sending when it %s', async ([, take], context) => {
    const port = await serve((request, response) => {
      const chunks = request.iterator({ destroyOnReturn: false });
      void take(chunks).then(() => {
        response.end('said');
        dropUnread(request);
      });
    }, context);
    expect(await sendAll(port)).toContain('said');
  });

  it('lets a client finish sending where the server keeps no connection by the time of the answer', async (context) => {
    const port = await serve((request, response) => {
      closeOnceRead(request, response);
      setImmediate(() => {
        dropUnread(request);
        response.shouldKeepAlive = false;
        response.writeHead(422, { 'content-length': '4' }).end('said');
      });
    }, context);
    expect(await sendAll(port)).toMatch(/ 422 [\s\S]*said$/);
  });

  it('leaves a connection to the next request once the body has arrived, though nobody reads its end', async (context) => {
    let first: IncomingMessage | undefined;
    const port = await serve((request, response) => {
      if (request.method === 'GET') return;
      first = request;
      response.end('said');
      dropUnread(request, 500);
      // As a reader does that has stopped before the end.
      request.pause();
    }, context);
    const socket = connect(port, '127.0.0.1').setEncoding('utf8');
    let isClosed = false;
    socket.once('close', () => (isClosed = true));
    socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write('xGET / HTTP/1.1\r\nhost: x\r\n\r\n');
    await expect.poll(() => first?.complete).toBe(true);
    await sleep(700);
    expect([first?.readableEnded, isClosed]).toEqual([false, false]);
    socket.destroy();
  });

  it.for(['HTTP/1.1', 'HTTP/1.0'])(
    'lets a client of %s that wants the connection closed finish sending, and then closes it',
    async (version, context) => {
      const port = await serve((request, response) => {
        closeOnceRead(request, response);
        response.once('finish', () => dropUnread(request));
        response.writeHead(413, { 'content-length': '4' }).end('said');
      }, context);
      const socket = connect(port, '127.0.0.1').setEncoding('utf8').pause();
      const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
      socket.write(`POST / ${version}\r\nhost: x\r\nconnection: close\r\ncontent-length: ${length}\r\n\r\n`);
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.write(Buffer.alloc(length), (error) => (error instanceof Error ? reject(error) : resolve()));
      });
      let said = '';
      socket.on('data', (text: string) => (said += text)).resume();
      await closed;
      expect(said).toMatch(/ 413 [\s\S]*said$/);
    },
  );
});
