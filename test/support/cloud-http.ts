// The HTTP of the stand-ins for clouds: whole requests in, whole answers out, or cut.
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface CloudRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: IncomingMessage['headers'];
  readonly body: Buffer;
}

export interface CloudAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string | number>>;
  readonly body?: Buffer | string;
  /** The connection is reset after this many bytes of the body. */
  readonly cutAfter?: number;
}

export type Respond = (request: CloudRequest) => CloudAnswer | Promise<CloudAnswer>;

const readBody = async (incoming: IncomingMessage): Promise<Buffer> => Buffer.concat(await Array.fromAsync(incoming));

const answer = (response: ServerResponse, { status, headers = {}, body = '', cutAfter }: CloudAnswer): void => {
  const bytes = Buffer.from(body);
  response.writeHead(status, { 'content-length': bytes.length, ...headers });
  if (cutAfter === undefined) response.end(bytes);
  else response.write(bytes.subarray(0, cutAfter), () => setTimeout(() => response.destroy(), 20));
};

/** On a port of 127.0.0.1. */
export const listen = async (respond: Respond) => {
  const server = createServer((incoming, response) => {
    void (async () => {
      const { method = 'GET', url = '/', headers } = incoming;
      const body = await readBody(incoming);
      answer(response, await respond({ method, url: new URL(url, 'http://cloud'), headers, body }));
    })().catch((error: unknown) => answer(response, { status: 500, body: String(error) }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

export const json = (status: number, body: object): CloudAnswer => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

export const xmlError = (status: number, code: string, message = code): CloudAnswer => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body: `<?xml version='1.0' encoding='UTF-8'?><Error><Code>${code}</Code><Message>${message}</Message></Error>`,
});
