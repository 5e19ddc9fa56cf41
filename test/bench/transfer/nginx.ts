// nginx on a free port of the loopback, as the server that images are fetched from.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const freePort = async (): Promise<number> => {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
};

export interface Nginx {
  readonly url: string;
  stop(): Promise<void>;
}

/** `rate` limits each connection, in nginx's words (`50m`); left out: as fast as it goes. */
export const startNginx = async (root: string, rate?: string): Promise<Nginx> => {
  const port = await freePort();
  const own = join(root, `nginx-${rate ?? 'whole'}`);
  mkdirSync(own, { recursive: true });
  const limit = rate === undefined ? '' : `limit_rate ${rate};`;
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  writeFileSync(
    join(own, 'nginx.conf'),
    `daemon off; pid ${own}/pid; error_log ${own}/error.log; worker_processes 1; user root;
    events { worker_connections 256; }
    http { access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000; ${temporary.join(' ')}
      server { listen 127.0.0.1:${port}; root ${root}; ${limit}
        location ~ /manifests/ { default_type application/vnd.oci.image.manifest.v1+json; } } }\n`,
  );
  const child = spawn('nginx', ['-c', join(own, 'nginx.conf'), '-p', own], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  for (let attempt = 0; attempt < 50; attempt++) {
    if (
      await fetch(url).then(
        () => true,
        () => false,
      )
    )
      break;
    await delay(100);
  }
  return {
    url,
    stop: async () => {
      child.kill('SIGTERM');
      if (child.exitCode === null) await once(child, 'exit');
    },
  };
};
