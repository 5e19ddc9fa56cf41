// The embedded Kubernetes API server: an HTTPS server over a data directory. Started by the local cluster and by tests.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { buildKubeconfig } from '#local-cluster/real-api-server/kubeconfig.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createFetchTransport } from '#shared/clients/kube/fetch.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';
import { type Authority, loadAuthority } from './auth/certificates.ts';
import { listen } from './http/listen.ts';
import type { Handle } from './http/router.ts';
import { type ApiOptions, createApi } from './server/api.ts';
import { loadFrontProxy, publishFrontProxy } from './server/front-proxy.ts';

export interface ApiServerOptions extends ApiOptions {
  /** All data of the server; the same folder gives the same cluster again. */
  readonly dataDir: string;
  /** Default: any free port. */
  readonly port?: number;
}

export interface ApiServer {
  /** `https://127.0.0.1:<port>` */
  readonly url: string;
  /** Grants all permissions (group `system:masters`); only its owner can read it. */
  readonly kubeconfigPath: string;
  readonly caPem: string;
  readonly token: string;
  /** Issues certificates that clients of this cluster trust, for webhooks. */
  readonly authority: Authority;
  /** The same API without sockets. */
  readonly handle: Handle;
  /** A client in this process, with the account of a kubeconfig: same requests, permissions and responses at a fraction of the cost of TLS. */
  readonly connect: (kubeconfigPath: string) => Promise<KubeClient>;
  /** Compacts all history up to now: older watches get 410. */
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
  // Equivalent to a closed socket for other clients.
  const closing = new AbortController();
  return {
    url,
    kubeconfigPath,
    caPem: authority.caPem,
    token: api.token,
    authority,
    handle: api.handle,
    connect: async (path) => {
      const token = tokenIn(await readFile(path, 'utf8'));
      const server = { server: url, token, fetch: answerWithin(api.handle, closing.signal) };
      return createClientOver(createFetchTransport(server), url);
    },
    compact: () => Promise.resolve(api.store.compact(api.store.version())),
    close: async () => {
      closing.abort();
      await listener.close();
      await api.close();
    },
  };
};

const Kubeconfig = z.object({ users: z.tuple([z.object({ user: z.object({ token: z.string() }) })]) });

const tokenIn = (kubeconfig: string): string => Kubeconfig.parse(parse(kubeconfig)).users[0].user.token;

const answerWithin =
  (handle: Handle, closing: AbortSignal) =>
  (url: string, { signal, ...init }: RequestInit): Promise<Response> => {
    closing.throwIfAborted();
    const signals = [closing, ...(signal === null || signal === undefined ? [] : [signal])];
    return handle(new Request(url, { ...init, signal: AbortSignal.any(signals) }));
  };
