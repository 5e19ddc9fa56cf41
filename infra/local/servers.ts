// The transfer function in the local cluster: bytes over HTTP, tokens over TLS behind the API server. Called by cluster.ts.
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createApp as createConsole } from '#functions/console/app.ts';
import { createApp as createTransfer, createTokenApp } from '#functions/transfer/app.ts';
import type { Functions } from './functions.ts';
import { readApiServices, readWebhooks, systemNamespace, uploadApiService } from './manifests.ts';
import { loadAuthority } from '#local-cluster/api-server/auth/certificates.ts';
import type { ApiServerHandle } from '#local-cluster/api.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { createLonghornWebhook, longhornWebhookConfiguration } from '#local-cluster/longhorn/webhook.ts';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import type { Undo } from '#local-cluster/undo.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createVisitors } from '#shared/console/visit.ts';
import { readFrontProxy } from '#shared/exchange/access/caller.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

interface LocalTransferOptions {
  /** Of the administrator: registers the API. */
  readonly kube: KubeClient;
  readonly exchange: ExchangeDeps;
  readonly dataDir: string;
  readonly ports: { readonly transfer: number; readonly uploadApi: number };
  readonly log: Logger;
}

interface LocalTransfer {
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
    app: createTransfer(exchange),
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

// The console in the local cluster. Its owner logs in by a code that is printed, others by a token.

export interface LocalConsole {
  readonly url: string;
  /** Logs the owner of this computer in; works once. */
  readonly loginUrl: () => string;
  readonly close: () => Promise<void>;
}

interface LocalConsoleOptions {
  readonly apiServer: Pick<ApiServerHandle, 'kubeconfigPath' | 'connect'>;
  readonly port: number;
  readonly log: Logger;
}

/** Other users of this computer reach the port too: they know no code. */
const createCodes = () => {
  const open = new Set<string>();
  return {
    make: (): string => {
      const code = randomBytes(24).toString('base64url');
      open.add(code);
      return code;
    },
    take: (given: string): boolean => {
      const bytes = Buffer.from(given);
      const code = [...open].find((one) => one.length === bytes.length && timingSafeEqual(Buffer.from(one), bytes));
      return code !== undefined && open.delete(code);
    },
  };
};

export const startLocalConsole = async ({ apiServer, port, log }: LocalConsoleOptions): Promise<LocalConsole> => {
  const codes = createCodes();
  const url = `http://127.0.0.1:${port}`;
  const connectVisitor = createVisitors(apiServer.kubeconfigPath);
  const owner = await apiServer.connect(apiServer.kubeconfigPath);
  const app = createConsole({
    connect: async (identity) => (identity === 'owner' ? owner : connectVisitor(identity)),
    sessionKey: randomBytes(32),
    url,
    takeCode: codes.take,
    log: log.with({ function: 'console' }),
    now: Date.now,
  });
  const server = await startServer({ app, port, log, drainMs: 1_000 });
  return { url, loginUrl: () => `${url}/login?code=${codes.make()}`, close: () => server.close() };
};

// The admission functions in the local cluster, over TLS.

interface AdmissionOptions {
  readonly dataDir: string;
  readonly port: number;
  readonly log: Logger;
  readonly undo: Undo;
  readonly hasLonghorn: boolean;
}

/** First serves the admission functions over TLS, then registers them at the API server. */
export const startAdmission = async (
  kube: KubeClient,
  functions: Pick<Functions, 'admission'>,
  { dataDir, port, log, undo, hasLonghorn }: AdmissionOptions,
): Promise<void> => {
  const files = await ensureControlPlaneFiles(join(dataDir, 'pki'));
  const tls = { certFile: files.certificate, keyFile: files.key };
  const app = functions.admission.route('/', createLonghornWebhook(kube));
  const server = await startServer({ app, port, log, tls, drainMs: 1_000 });
  undo.add(() => server.close());
  const ca = await readFile(files.ca, 'utf8');
  await applyObjects(kube, await readWebhooks(server.url, ca));
  if (hasLonghorn) await applyObjects(kube, [longhornWebhookConfiguration(server.url, ca)]);
};
