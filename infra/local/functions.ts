// Every function in this process, configured for the local cluster. Called by cluster.ts.
import { Hono } from 'hono';
import { z } from 'zod';
import { createApp as createBackupMetadata } from '#functions/backup-metadata/app.ts';
import { createApp as createCronTick } from '#functions/cron-tick/app.ts';
import { createApp as createImportObject } from '#functions/import-object/app.ts';
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createMetrics } from '#functions/metrics/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createSidecarSync } from '#functions/sidecar-sync/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import type { Subscriber } from '#local-cluster/broker/resolver.ts';
import { backupSettings, createBackupDeps } from '#shared/backup/settings.ts';
import { createObjectImportDeps, objectImportSettings } from '#shared/object-import/settings.ts';
import { TransferConfig } from '#functions/transfer/config.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { Connect } from '#shared/clients/kube/late.ts';
import type { ExchangeDeps } from '#shared/exchange/deps.ts';
import { createExchangeDeps } from '#shared/exchange/settings.ts';
import { createReconcileDeps, reconcileSettings } from '#shared/resources/settings.ts';
import { toPopulateSettings } from '#shared/resources/step-settings.ts';
import { parseConfig } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { createTracer, traced } from '#shared/runtime/tracer.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

/** Local mirrors and test servers listen on loopback. */
const loopback = '127.0.0.0/8,::1/128';

/** Service accounts of `infra/rbac` that functions use. */
export const functionAccounts = [
  'admission',
  'initialize',
  'sidecar-sync',
  'cron-tick',
  'import-object',
  'backup-metadata',
  'transfer',
  'metrics',
] as const;

export interface FunctionsOptions {
  /** Kubeconfig of each service account. */
  readonly kubeconfigs: Readonly<Record<(typeof functionAccounts)[number], string>>;
  /** A client for the account of a kubeconfig. */
  readonly connect: (kubeconfigPath: string) => Promise<KubeClient>;
  readonly brokerUrl: string;
  readonly log: Logger;
  /** Overrides of the functions' own environment. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Functions {
  /** Event functions by their names in the Knative manifests. */
  readonly subscribers: ReadonlyMap<string, Subscriber>;
  /** Both admission functions. */
  readonly admission: Hono;
  /** Scraped by Prometheus. */
  readonly metrics: Hono;
  /** Dependencies of the transfer function; cluster.ts serves both of its APIs. */
  readonly exchange: ExchangeDeps;
  /** OCI image of the functions' Jobs. */
  readonly transferImage: string;
  /** Calls import-object like an object store: directly, without the broker. */
  readonly notifyOfObject: (notification: Request) => Promise<Response>;
  /** Resolves when no event is being handled. A broker that stops does not wait for answers, although functions still work. */
  readonly idle: () => Promise<void>;
}

export const createFunctions = async ({
  kubeconfigs,
  connect: connectTo,
  brokerUrl,
  log,
  environment,
}: FunctionsOptions): Promise<Functions> => {
  const connect: Connect = (kubeconfig = '') => connectTo(kubeconfig);
  const config = parseConfig(z.object(reconcileSettings), {
    K_SINK: brokerUrl,
    ALLOWED_ADDRESSES: loopback,
    ...environment,
  });
  const depsOf = (account: (typeof functionAccounts)[number]): ReconcileDeps =>
    createReconcileDeps({ ...config, kubeconfig: kubeconfigs[account] }, log, connect);
  const admission = new Hono();
  const { allowedAddresses } = config;
  for (const create of [createValidate, createMutate]) {
    admission.route('/', create({ ...depsOf('admission'), allowedAddresses }));
  }
  const importConfig = parseConfig(z.object(objectImportSettings), { ALLOWED_ADDRESSES: loopback, ...environment });
  const importObject = createImportObject(
    createObjectImportDeps({ ...importConfig, kubeconfig: kubeconfigs['import-object'] }, log, connect),
  );
  const backupConfig = parseConfig(z.object(backupSettings), {
    K_SINK: brokerUrl,
    ALLOWED_ADDRESSES: loopback,
    ...environment,
  });
  const backupDeps = createBackupDeps({ ...backupConfig, kubeconfig: kubeconfigs['backup-metadata'] }, log, connect);
  const transferConfig = parseConfig(TransferConfig, { ...environment });
  const { publicUrl } = transferConfig;
  const handlers = [
    ['initialize', createInitialize(depsOf('initialize'))],
    ['sidecar-sync', createSidecarSync(depsOf('sidecar-sync'))],
    ['cron-tick', createCronTick({ ...depsOf('cron-tick'), publicUrl })],
    ['import-object', importObject],
    ['backup-metadata', createBackupMetadata(backupDeps)],
  ] as const;
  const recorded = handlers.map(([name, app]) => {
    const tracer = createTracer({ endpoint: config.traceEndpoint, service: name, log });
    return [name, traced(app, tracer)] as const;
  });
  const inFlight = new Set<Promise<Response>>();
  const track = (answer: Promise<Response>): Promise<Response> => {
    inFlight.add(answer);
    return answer.finally(() => inFlight.delete(answer));
  };
  const exchange = createExchangeDeps(
    { ...transferConfig, settings: toPopulateSettings(config) },
    await connectTo(kubeconfigs.transfer),
    log.with({ function: 'transfer' }),
  );
  return {
    exchange,
    metrics: createMetrics({
      kube: await connectTo(kubeconfigs.metrics),
      log: log.with({ function: 'metrics' }),
      now: Date.now,
    }),
    admission,
    transferImage: config.transferImage,
    subscribers: new Map(
      recorded.map(([name, app]) => [name, (request: Request) => track(Promise.resolve(app.fetch(request)))]),
    ),
    notifyOfObject: (notification) => track(Promise.resolve(importObject.fetch(notification))),
    idle: async () => void (await Promise.allSettled(inFlight)),
  };
};
