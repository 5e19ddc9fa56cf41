// Settings of the transfer function.
import { z } from 'zod';
import { longhornApiPort, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { jobSettings, toJobSettings } from '#shared/populate/config.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import {
  kubeSettings,
  publicUrlSettings,
  serverSettings,
  setting,
  tlsSettings,
  wholeNumber,
} from '#shared/runtime/config.ts';

const list = z
  .string()
  .default('*')
  .transform((text) =>
    text
      .split(',')
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );

const tebibyte = 2 ** 40;

export const TransferConfig = z.object({
  ...serverSettings,
  ...kubeSettings,
  ...tlsSettings,
  ...jobSettings,
  ...publicUrlSettings,
  corsOrigins: setting('CORS_ORIGINS', 'Origins whose pages may send files, separated by commas; `*`: all.', list),
  longhornUrl: setting(
    'LONGHORN_URL',
    "URL of Longhorn's HTTP API, which stores the files of images with backend backingimage.",
    z.url().default(`http://longhorn-backend.${longhornNamespace}:${longhornApiPort}`),
  ),
  mostBytes: setting(
    'UPLOAD_MAX_BYTES',
    'Size limit of an uploaded file, in bytes.',
    wholeNumber(1).default(16 * tebibyte),
  ),
  waitSeconds: setting(
    'WORKER_SECONDS',
    'Seconds a request waits for the pod that has mounted its volume.',
    wholeNumber(1).default(50),
  ),
  answerSeconds: setting(
    'ANSWER_SECONDS',
    'Seconds after the last byte of a file in which its client is answered with the result, or else that the file has arrived; proxies need a longer timeout.',
    wholeNumber(1).default(50),
  ),
});
export type TransferConfig = z.output<typeof TransferConfig>;

/** Settings of Jobs that serve volumes: those of the functions that start transfer Jobs. */
export const toServeSettings = (config: TransferConfig): PopulateSettings => ({
  ...defaultSettings,
  ...toJobSettings(config),
});
