// Creates the dependencies of the transfer function from its configuration.
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { createKeyRing } from '#shared/exchange/access/keys.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import type { Logger } from '#shared/runtime/log.ts';

/** The configuration of the function. */
export interface ExchangeConfig {
  readonly publicUrl?: string | undefined;
  readonly corsOrigins: readonly string[];
  readonly longhornUrl: string;
  readonly mostBytes: number;
  readonly waitSeconds: number;
  /** Default: less than the timeout of common proxies. */
  readonly answerSeconds?: number | undefined;
  /** Settings of the download Jobs. Default: the default settings. */
  readonly settings?: PopulateSettings;
}

export const createExchangeDeps = (config: ExchangeConfig, kube: KubeClient, log: Logger): ExchangeDeps => ({
  kube,
  log,
  now: Date.now,
  keys: createKeyRing(kube, Date.now),
  settings: config.settings ?? defaultSettings,
  publicUrl: config.publicUrl,
  corsOrigins: config.corsOrigins,
  longhornUrl: config.longhornUrl,
  mostBytes: config.mostBytes,
  answerSeconds: config.answerSeconds ?? 50,
  waitMs: config.waitSeconds * 1000,
});
