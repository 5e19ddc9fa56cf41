// The embedded Kubernetes API server: an HTTPS server over a data directory. Started by the local cluster and by tests.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { buildKubeconfig } from '#local-cluster/real-api-server/kubeconfig.ts';
import { type Authority, loadAuthority } from './auth/certificates.ts';
import { listen } from './http/listen.ts';
import type { Handle } from './http/router.ts';
import { type ApiOptions, createApi } from './server/api.ts';
import { loadFrontProxy, publishFrontProxy } from './server/front-proxy.ts';

export interface ApiServerOptions extends ApiOptions {
  /** Everything the server keeps; the same folder gives the same cluster again. */
  readonly dataDir: string;
  /** Left out: any free port. */
  readonly port?: number;
}

export interface ApiServer {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** Grants everything (group `system:masters`); only its owner can read it. */
  readonly kubeconfigPath: string;
  readonly caPem: string;
  readonly token: string;
  /** Issues certificates that clients of this cluster trust, for webhooks. */
  readonly authority: Authority;
  /** The same API without sockets. */
  readonly handle: Handle;
  /** Forgets all history up to now: watches from before answer 410. */
  readonly compact: () => Promise<void>;
  readonly close: () => Promise<void>;
}

const hosts = ['localhost', '127.0.0.1', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc', '10.0.0.1'];

/** Returns once the server answers. */
export const createApiServer = async (options: ApiServerOptions): Promise<ApiServer> => {
  const { dataDir, port = 0 } = options;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const authority = await loadAuthority(dataDir);
  const { certificate, key } = await authority.issue('kube-apiserver', hosts);
  const frontProxy = await loadFrontProxy(dataDir);
  const api = createApi({ ...options, proxyCertificate: frontProxy.certificate });
  publishFrontProxy(api, frontProxy.caPem);
  const listener = await listen({ handle: api.handle, port, key, certificate });
  api.setAddress(`127.0.0.1:${listener.port}`);
  const url = `https://127.0.0.1:${listener.port}`;
  const kubeconfigPath = join(dataDir, 'kubeconfig');
  await writeFile(kubeconfigPath, buildKubeconfig({ url, caPem: authority.caPem, token: api.token }), { mode: 0o600 });
  return {
    url,
    kubeconfigPath,
    caPem: authority.caPem,
    token: api.token,
    authority,
    handle: api.handle,
    compact: () => Promise.resolve(api.store.compact(api.store.version())),
    close: async () => {
      await listener.close();
      await api.close();
    },
  };
};
