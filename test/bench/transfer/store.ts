// The least that an object store can do, as a process of its own: parts go to files as they are, so that what is measured is the client.
// `node store.ts <directory>` prints its port. A completed object is the list of its parts, in `<directory>/object`.
import { once } from 'node:events';
import { closeSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';

const directory = process.argv[2] ?? '.';
mkdirSync(directory, { recursive: true });

const drain = async (request: IncomingMessage): Promise<string> => {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts).toString();
};

/** Without streams in between, which would cost more than the client that is measured. */
const save = async (request: IncomingMessage, path: string): Promise<void> => {
  const file = openSync(path, 'w');
  request.on('data', (chunk: Buffer) => writeSync(file, chunk));
  await once(request, 'end');
  closeSync(file);
};

const xml = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0"?>${body}`);
};

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { searchParams: query } = new URL(request.url ?? '/', 'http://store');
  const part = query.get('partNumber');
  if (request.method === 'PUT' && part !== null) {
    await save(request, join(directory, `part-${part}`));
    response.writeHead(200, { etag: `"part-${part}"` }).end();
    return;
  }
  const body = await drain(request);
  if (request.method === 'POST' && query.has('uploads')) {
    xml(response, '<InitiateMultipartUploadResult><UploadId>one</UploadId></InitiateMultipartUploadResult>');
  } else if (request.method === 'POST') {
    const parts = [...body.matchAll(/<ETag>(?:"|&quot;)?(part-\d+)(?:"|&quot;)?<\/ETag>/g)].map(([, name]) => name);
    writeFileSync(join(directory, 'object'), parts.join('\n'));
    xml(response, '<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>');
  } else if (request.method === 'GET') {
    xml(response, '<ListMultipartUploadsResult><IsTruncated>false</IsTruncated></ListMultipartUploadsResult>');
  } else response.writeHead(204).end();
};

const server = createServer((request, response) => void handle(request, response));
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
