// The least that an object store can do, as a process of its own, beside the nginx that takes its parts (nginx.ts): so that what is measured is the
// client, since stores are other machines. `node store.ts <directory>` prints its port. A completed object is the list of its parts, in
// `<directory>/object`.
import { mkdirSync, writeFileSync } from 'node:fs';
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

const xml = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'application/xml' }).end(`<?xml version="1.0"?>${body}`);
};

const handle = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
  const { searchParams: query } = new URL(request.url ?? '/', 'http://store');
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
