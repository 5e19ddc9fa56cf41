// Requirements of some functions, tried in a Worker: each path answers with the result. Called by lacks.test.ts.
import { spawn } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { connect as open } from 'node:net';
import { connect } from 'node:tls';
import { peerNameOf } from '#shared/runtime/serve.ts';

interface Asked {
  /** Of a TLS server on this machine. */
  readonly port: number;
  /** PEM of the CA of its certificate. */
  readonly ca: string;
}

const once = (begin: (done: () => void, failed: (error: unknown) => void) => void): Promise<string> =>
  new Promise((resolve, reject) => {
    begin(() => resolve('done'), reject);
  });

const host = '127.0.0.1';

const ways: Readonly<Record<string, (asked: Asked, request: Request) => Promise<string>>> = {
  'reach a server': ({ port }) => once((done, failed) => open({ host, port }, done).on('error', failed)),
  'trust its authority': ({ port, ca }) =>
    once((done, failed) => connect({ host, port, ca, servername: 'localhost' }, done).on('error', failed)),
  'know its client by a certificate': async (_, request) => String(peerNameOf(request)),
  'start a process': () => once((done, failed) => spawn('true').on('error', failed).on('exit', done)),
  'write a file': async () => {
    await writeFile('/tmp/kept', 'bytes');
    return readFile('/tmp/kept', 'utf8');
  },
  'find it later': () => readFile('/tmp/kept', 'utf8'),
};

export default {
  async fetch(request: Request): Promise<Response> {
    const { way, ...asked } = (await request.clone().json()) as Asked & { readonly way: string };
    try {
      return new Response(await ways[way]?.(asked, request));
    } catch (error) {
      return new Response(String(error));
    }
  },
};
