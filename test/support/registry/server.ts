// A real registry on a free port, behind a proxy that records every request and can simulate failures.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer, request as connect } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer as createTlsServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePorts } from '#local-cluster/free-ports.ts';

const program = 'docker-registry';

/** Whether the registry is installed; otherwise prints the command that installs it. For `describe.skipIf(!hasRegistry())`. */
export const hasRegistry = (): boolean => {
  const isInstalled = spawnSync(program, ['--version'], { stdio: 'ignore' }).error === undefined;
  if (!isInstalled) console.warn(`skipped: apt-get install -y ${program}`);
  return isInstalled;
};

export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
}

/** Answers a request instead of the registry; `false` forwards it. */
export type Intercept = (request: RecordedRequest, response: ServerResponse) => boolean;

export interface TestRegistry {
  /** `127.0.0.1:<port>` of the proxy. */
  readonly host: string;
  /** `127.0.0.1:<port>` of the registry itself, without TLS: tests push to it without being recorded. */
  readonly direct: string;
  /** Newest last. */
  readonly requests: RecordedRequest[];
  intercept: Intercept | undefined;
  /** Interrupts the connection after this many bytes of each answer from now on. */
  cutAfter: number | undefined;
  close(): Promise<void>;
}

export interface RegistryOptions {
  /** Whether a login is required (`tester` with the password `s3cret-pass`). */
  readonly withLogin?: boolean;
  /** PEM texts. Default: without TLS. */
  readonly tls?: { readonly certificate: string; readonly key: string } | undefined;
}

const passwordFile = 'tester:$2y$05$abcdefghijklmnopqrstuuV7fpPozvyqJfnY19y0802WTlXUm6Rjy\n';

const configOf = (directory: string, port: number, withLogin: boolean): string => {
  const login = withLogin ? `auth:\n  htpasswd:\n    realm: test\n    path: ${directory}/htpasswd\n` : '';
  return `version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage: { filesystem: { rootdirectory: ${directory}/data }, delete: { enabled: true } }
http: { addr: "127.0.0.1:${port}", relativeurls: true }
${login}`;
};

const untilUp = async (port: number, child: ChildProcess): Promise<void> => {
  const deadline = Date.now() + 120_000;
  while (Date.now() < deadline) {
    if (child.exitCode !== null) throw new Error(`${program} ended with ${child.exitCode}`);
    const isUp = await fetch(`http://127.0.0.1:${port}/v2/`).then(
      () => true,
      () => false,
    );
    if (isUp) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`${program} did not come up`);
};

const pass = (registry: TestRegistry, port: number, incoming: IncomingMessage, response: ServerResponse): void => {
  const upstream = connect(
    { host: '127.0.0.1', port, method: incoming.method, path: incoming.url, headers: incoming.headers },
    (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      let left = registry.cutAfter ?? Number.POSITIVE_INFINITY;
      answer.on('data', (chunk: Buffer) => {
        if (chunk.length < left) response.write(chunk);
        else response.write(chunk.subarray(0, left), () => response.destroy());
        left -= Math.min(left, chunk.length);
      });
      answer.on('end', () => response.end());
      answer.on('error', () => response.destroy());
    },
  );
  upstream.on('error', () => response.destroy());
  response.on('error', () => upstream.destroy());
  response.on('close', () => upstream.destroy());
  incoming.pipe(upstream);
};

export const startRegistry = async ({ withLogin = false, tls }: RegistryOptions = {}): Promise<TestRegistry> => {
  const directory = mkdtempSync(join(tmpdir(), 'bullion-registry-'));
  const [port = 0] = await freePorts(1);
  writeFileSync(join(directory, 'htpasswd'), passwordFile);
  writeFileSync(join(directory, 'config.yml'), configOf(directory, port, withLogin));
  const child = spawn(program, ['serve', join(directory, 'config.yml')], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'] ?? '', OTEL_TRACES_EXPORTER: 'none' },
  });
  await untilUp(port, child);
  const answer = (incoming: IncomingMessage, response: ServerResponse): void => {
    const observed = { method: incoming.method ?? 'GET', path: incoming.url ?? '/', headers: incoming.headers };
    registry.requests.push(observed);
    if (registry.intercept?.(observed, response) !== true) pass(registry, port, incoming, response);
  };
  const proxy =
    tls === undefined ? createServer(answer) : createTlsServer({ cert: tls.certificate, key: tls.key }, answer);
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const registry: TestRegistry = {
    host: `127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    direct: `127.0.0.1:${port}`,
    requests: [],
    intercept: undefined,
    cutAfter: undefined,
    close: async () => {
      proxy.closeAllConnections();
      await new Promise((resolve) => proxy.close(resolve));
      const ended = once(child, 'exit');
      if (child.exitCode === null) {
        child.kill('SIGKILL');
        await ended;
      }
      rmSync(directory, { recursive: true, force: true });
    },
  };
  return registry;
};
