// nginx before a server, like an ingress: with TLS, a path prefix that it strips or keeps, its own limits and timeouts.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { freePorts } from '#local-cluster/free-ports.ts';

const run = promisify(execFile);

export const nginxPath = ['/usr/sbin/nginx', '/usr/bin/nginx'].find((path) => existsSync(path));

export interface Nginx {
  /** `https://localhost:<port>` */
  readonly url: string;
  /** PEM file of its CA. */
  readonly ca: string;
  readonly dir: string;
  close(): Promise<void>;
}

export interface NginxOptions {
  readonly upstream: string;
  /** Lines for the location blocks, such as `proxy_read_timeout 2s;`. */
  readonly directives: string;
  /** Path prefix that is stripped. */
  readonly stripped?: string;
  /** Path prefix that is kept. */
  readonly kept?: string;
}

const forwarded = `
      proxy_http_version 1.1;
      proxy_set_header Host $host:$server_port;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host:$server_port;
      proxy_set_header X-Forwarded-For $remote_addr;`;

const configOf = (dir: string, port: number, { upstream, directives, stripped, kept }: NginxOptions): string => {
  const location = (path: string, to: string, more = '') => `
    location ${path} {
      proxy_pass ${to};${forwarded}${more}
      ${directives}
    }`;
  return `
daemon off;
${process.getuid?.() === 0 ? 'user root;' : ''}
worker_processes 1;
pid ${dir}/nginx.pid;
error_log ${dir}/error.log info;
events { worker_connections 256; }
http {
  access_log ${dir}/access.log;
  client_body_temp_path ${dir}/body;
  proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/f;
  uwsgi_temp_path ${dir}/u;
  scgi_temp_path ${dir}/s;
  server {
    listen 127.0.0.1:${port} ssl;
    ssl_certificate ${dir}/tls.crt;
    ssl_certificate_key ${dir}/tls.key;
${kept === undefined ? '' : location(`${kept}/`, upstream)}
${stripped === undefined ? '' : location(`${stripped}/`, `${upstream}/`, `\n      proxy_set_header X-Forwarded-Prefix ${stripped};`)}
${location('/', upstream)}
  }
}
`;
};

/** Paths of a self-signed certificate of this machine, and of its key. */
export const makeCertificate = async (dir: string): Promise<{ readonly cert: string; readonly key: string }> => {
  const [cert, key] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1'];
  const fresh = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', key];
  await run('openssl', ['req', '-x509', ...fresh, '-out', cert, '-days', '2', ...subject]);
  return { cert, key };
};

/** Its own self-signed certificate. */
export const startNginx = async (options: NginxOptions): Promise<Nginx> => {
  const dir = await mkdtemp(join(tmpdir(), 'bullion-nginx-'));
  const [port = 0] = await freePorts(1);
  const { cert: ca } = await makeCertificate(dir);
  await writeFile(join(dir, 'nginx.conf'), configOf(dir, port, options));
  const child = spawn(nginxPath ?? 'nginx', ['-p', dir, '-c', join(dir, 'nginx.conf')], { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  const url = `https://localhost:${port}`;
  for (let attempt = 0; attempt < 600; attempt++) {
    const isUp = await run('curl', ['-sk', '-o', '/dev/null', url]).then(
      () => true,
      () => false,
    );
    if (isUp || child.exitCode !== null) break;
    await sleep(100);
  }
  return {
    url,
    ca,
    dir,
    close: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
};
