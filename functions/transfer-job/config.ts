// The input of transfer-job: from the environment that a backend writes into the Job, and from the Secret that its pod mounts.
import { readFile, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { ObjectRefData } from '#events/catalogue.ts';
import { jsonText, setting, sinkSettings, traceSettings } from '#shared/runtime/config.ts';
import { secretFiles, unsealSpec } from '#shared/transfer/sealed.ts';

export const TransferJobConfig = z.object({
  transfer: setting('BULLION_TRANSFER', 'What to transfer: a TransferSpec as JSON.', z.string().min(1)),
  secretDir: setting(
    'BULLION_SECRET_DIR',
    'Directory with the secrets of this run: the sealed texts of the spec, the key that signs its reports, and settings with credentials.',
    z.string().optional(),
  ),
  owner: setting('BULLION_OWNER', 'The image of this transfer: an ObjectRef as JSON.', jsonText(ObjectRefData)),
  run: setting('POD_NAME', 'Name of this run in progress reports; set by the pod.', z.string().min(1)),
  host: setting(
    'POD_IP',
    'Address that an upload is received on, or a download served; set by the pod.',
    z.string().default('127.0.0.1'),
  ),
  terminationLog: setting(
    'BULLION_TERMINATION_LOG',
    'File that receives the report.',
    z.string().default('/dev/termination-log'),
  ),
  ...sinkSettings,
  ...traceSettings,
  traceparent: setting('TRACEPARENT', 'W3C trace context of this run.', z.string().optional()),
});
export type TransferJobConfig = z.infer<typeof TransferJobConfig> & {
  /** PEM. Default: reports are not signed. */
  readonly reportKey?: string | undefined;
};

const readFiles = async (dir: string): Promise<Readonly<Record<string, string>>> => {
  // Internal entries of the kubelet start with two dots.
  const names = (await readdir(dir)).filter((name) => !name.startsWith('..'));
  return Object.fromEntries(
    await Promise.all(names.map(async (name) => [name, await readFile(join(dir, name), 'utf8')] as const)),
  );
};

/** The complete settings. A spec that cannot be restored is reported like any other invalid spec. */
export const withSecret = async (config: TransferJobConfig): Promise<TransferJobConfig> => {
  if (config.secretDir === undefined) return config;
  const files = await readFiles(config.secretDir);
  return {
    ...config,
    transfer: unsealSpec(config.transfer, files[secretFiles.sealed]),
    reportKey: files[secretFiles.reportKey],
    sink: config.sink ?? files['K_SINK'],
    traceEndpoint: config.traceEndpoint ?? files['OTEL_EXPORTER_OTLP_ENDPOINT'],
  };
};
