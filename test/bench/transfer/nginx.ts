// nginx on a free port of the loopback, as the server that images are fetched from.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePorts } from '#local-cluster/free-ports.ts';

export interface Nginx {
  readonly url: string;
  stop(): Promise<void>;
}

interface Server {
  /** Where its own files go. */
  readonly own: string;
  /** What stands in its `server`. */
  readonly rules: string;
}

const start = async ({ own, rules }: Server): Promise<Nginx> => {
  const [port = 0] = await freePorts(1);
  mkdirSync(own, { recursive: true });
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${own}/${name};`,
  );
  writeFileSync(
    join(own, 'nginx.conf'),
    `daemon off; pid ${own}/pid; error_log ${own}/error.log; worker_processes 1; user root;
    events { worker_connections 256; }
    http { access_log off; sendfile on; tcp_nodelay on; keepalive_requests 1000000; ${temporary.join(' ')}
      server { listen 127.0.0.1:${port}; ${rules} } }\n`,
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

/** `rate` limits each connection, in nginx's words (`50m`); left out: as fast as it goes. */
export const startNginx = (root: string, rate?: string): Promise<Nginx> =>
  start({
    own: join(root, `nginx-${rate ?? 'whole'}`),
    rules: `root ${root}; ${rate === undefined ? '' : `limit_rate ${rate};`}
      location ~ /manifests/ { default_type application/vnd.oci.image.manifest.v1+json; }`,
  });

/** Takes the parts of uploads into the folder `store` in `root`, which may be emptied, and leaves everything else to `control` (store.ts). */
export const startPartsNginx = (root: string, control: string): Promise<Nginx> =>
  start({
    own: join(root, 'nginx-store'),
    rules: `root ${root}/store; client_max_body_size 0; client_body_buffer_size 1m;
      location / {
        error_page 418 = @control;
        if ($arg_partNumber = '') { return 418; }
        rewrite ^ /part-$arg_partNumber break;
        dav_methods PUT; add_header ETag '"part-$arg_partNumber"' always;
      }
      location @control { proxy_pass ${control}; }`,
  });
