// The embedded Kubernetes API server: an HTTPS server over a data directory. Started by the local cluster and by tests.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { type Authority, type KeyPair, loadAuthority } from '#local-cluster/api-server/auth/certificates.ts';
import { listen } from '#local-cluster/api-server/http/listen.ts';
import type { Handle } from '#local-cluster/api-server/http/router.ts';
import { isSame } from '#local-cluster/api-server/objects/equal.ts';
import type { ApiObject } from '#local-cluster/api-server/objects/object.ts';
import { type ApiCore, type ApiOptions, createApi } from '#local-cluster/api-server/server/api.ts';
import { buildKubeconfig } from '#local-cluster/real-api-server/certificates.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createFetchTransport } from '#shared/clients/kube/fetch.ts';
import { createClientOver } from '#shared/clients/kube/verbs.ts';

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

// The identity of this server for extension servers: a separate authority, the client certificate, and the ConfigMap that publishes both.

const clientName = 'front-proxy-client';

interface FrontProxy {
  readonly caPem: string;
  readonly certificate: KeyPair;
}

const loadFrontProxy = async (dataDir: string): Promise<FrontProxy> => {
  const folder = join(dataDir, 'front-proxy');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { caPem, issue } = await loadAuthority(folder);
  return { caPem, certificate: await issue(clientName, []) };
};

const key = { collection: 'configmaps', namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** As in kube-apiserver: the keys and their JSON lists are an interface. */
const publishFrontProxy = ({ store, uuid, clock }: Pick<ApiCore, 'store' | 'uuid' | 'clock'>, caPem: string): void => {
  const data = {
    'requestheader-allowed-names': JSON.stringify([clientName]),
    'requestheader-client-ca-file': caPem,
    'requestheader-extra-headers-prefix': '["X-Remote-Extra-"]',
    'requestheader-group-headers': '["X-Remote-Group"]',
    'requestheader-uid-headers': '["X-Remote-Uid"]',
    'requestheader-username-headers': '["X-Remote-User"]',
  };
  const entry = store.get(key);
  const creationTimestamp = `${clock().toISOString().slice(0, 19)}Z`;
  const object: ApiObject = entry?.object() ?? {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: key.name, namespace: key.namespace, uid: uuid(), creationTimestamp },
  };
  if (isSame(object['data'], data)) return;
  object['data'] = data;
  if (entry === undefined) store.create(key, object);
  else store.replace(entry, entry.version, object);
};
