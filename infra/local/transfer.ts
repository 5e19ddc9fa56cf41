// The transfer function in the local cluster: bytes over HTTP, tokens over TLS behind the API server. Called by cluster.ts.
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createApp, createTokenApp } from '#functions/transfer/app.ts';
import { loadAuthority } from '#local-cluster/api-server/auth/certificates.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { readApiServices, systemNamespace, uploadApiService } from '#infra/local/manifests.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { readFrontProxy } from '#shared/exchange/front-proxy.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

export interface LocalTransferOptions {
  /** Of the administrator: registers the API. */
  readonly kube: KubeClient;
  readonly exchange: ExchangeDeps;
  readonly dataDir: string;
  readonly ports: { readonly transfer: number; readonly uploadApi: number };
  readonly log: Logger;
}

export interface LocalTransfer {
  readonly url: string;
  readonly close: () => Promise<void>;
}

/** Long enough for answers in progress; an upload can be resumed. */
const drainMs = 1_000;

const writeCertificate = async (dataDir: string) => {
  const folder = join(dataDir, 'pki-transfer');
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const { issue, caPem } = await loadAuthority(folder);
  const hosts = [`${uploadApiService}.${systemNamespace}.svc`, 'localhost', '127.0.0.1'];
  const { certificate, key } = await issue(uploadApiService, hosts);
  const files = { certFile: join(folder, 'tls.crt'), keyFile: join(folder, 'tls.key') };
  await writeFile(files.certFile, certificate, { mode: 0o600 });
  await writeFile(files.keyFile, key, { mode: 0o600 });
  return { files, caPem };
};

/** Serves first, then registers at the API server. */
export const startLocalTransfer = async ({
  kube,
  exchange,
  dataDir,
  ports,
  log,
}: LocalTransferOptions): Promise<LocalTransfer> => {
  const bytes = await startServer({
    app: createApp(exchange),
    port: ports.transfer,
    log,
    requestTimeoutMs: 0,
    drainMs,
  });
  const { files, caPem } = await writeCertificate(dataDir);
  const { ca, isFrontProxy } = await readFrontProxy(kube);
  const app = createTokenApp({ ...exchange, isFrontProxy });
  const tokens = await startServer({ app, port: ports.uploadApi, log, tls: files, clientCa: ca, drainMs });
  await applyObjects(kube, await readApiServices(tokens.port, caPem));
  return {
    url: bytes.url,
    close: async () => void (await Promise.all([bytes.close(), tokens.close()])),
  };
};
