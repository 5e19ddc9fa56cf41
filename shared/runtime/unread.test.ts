import { type IncomingMessage, createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { closeOnceRead, dropUnread } from '#shared/runtime/connections.ts';

const length = 16 * 1024 * 1024;

describe('a body that is answered before its end', () => {
  let close: (() => void) | undefined;
  afterEach(() => close?.());

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

  it.each<[string, (request: AsyncIterator<unknown>) => Promise<unknown>]>([
    ['is not read', () => Promise.resolve()],
    ['is read in part and then left', (chunks) => chunks.next()],
  ])('lets a client finish sending when it %s', async (_what, take) => {
    const server = createServer((request, response) => {
      const chunks = request.iterator({ destroyOnReturn: false });
      void take(chunks).then(() => {
        response.end('said');
        dropUnread(request);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    close = () => {
      server.closeAllConnections();
      server.close();
    };
    expect(await sendAll((server.address() as AddressInfo).port)).toContain('said');
  });

  it('lets a client finish sending where the server keeps no connection by the time of the answer', async () => {
    const server = createServer((request, response) => {
      closeOnceRead(request, response);
      setImmediate(() => {
        dropUnread(request);
        response.shouldKeepAlive = false;
        response.writeHead(422, { 'content-length': '4' }).end('said');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    close = () => {
      server.closeAllConnections();
      server.close();
    };
    expect(await sendAll((server.address() as AddressInfo).port)).toMatch(/ 422 [\s\S]*said$/);
  });

  it('leaves a connection to the next request once the body has arrived, though nobody reads its end', async () => {
    let first: IncomingMessage | undefined;
    const server = createServer((request, response) => {
      if (request.method === 'GET') return;
      first = request;
      response.end('said');
      dropUnread(request, 500);
      // As a reader does that has stopped before the end.
      request.pause();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    close = () => {
      server.closeAllConnections();
      server.close();
    };
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setEncoding('utf8');
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

  it.each(['HTTP/1.1', 'HTTP/1.0'])(
    'lets a client of %s that wants the connection closed finish sending, and then closes it',
    async (version) => {
      const server = createServer((request, response) => {
        closeOnceRead(request, response);
        response.once('finish', () => dropUnread(request));
        response.writeHead(413, { 'content-length': '4' }).end('said');
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      close = () => {
        server.closeAllConnections();
        server.close();
      };
      const { port } = server.address() as AddressInfo;
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
