// The admission functions in the local cluster, over TLS. Called by cluster.ts.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Functions } from '#infra/local/functions.ts';
import { applyObjects } from '#local-cluster/install.ts';
import { createLonghornWebhook, longhornWebhookConfiguration } from '#local-cluster/longhorn/webhook.ts';
import { readWebhooks } from '#infra/local/manifests.ts';
import { ensureControlPlaneFiles } from '#local-cluster/real-api-server/certificates.ts';
import type { Undo } from '#local-cluster/undo.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { startServer } from '#shared/runtime/serve.ts';

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
