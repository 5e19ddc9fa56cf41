// Every function in one process. Called by cluster.ts, each with an account of its own, and by infra/single, all with one.
import { Hono } from 'hono';
import type { z } from 'zod';
import { createApp as createBackupMetadata } from '#functions/backup-metadata/app.ts';
import { createApp as createCronTick } from '#functions/cron-tick/app.ts';
import { createApp as createImportObject } from '#functions/import-object/app.ts';
import { createApp as createInitialize } from '#functions/initialize/app.ts';
import { createApp as createMetrics } from '#functions/metrics/app.ts';
import { createApp as createMutate } from '#functions/mutate/app.ts';
import { createApp as createSidecarSync } from '#functions/sidecar-sync/app.ts';
import { createApp as createValidate } from '#functions/validate/app.ts';
import type { Post } from '#events/post.ts';
import type { Subscriber } from '#local-cluster/broker/resolver.ts';
import { backupSettings, createBackupDeps } from '#shared/backup/settings.ts';
import { createObjectImportDeps, objectImportSettings } from '#shared/object-import/settings.ts';
import { TransferConfig } from '#functions/transfer/config.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type ExchangeDeps } from '#shared/exchange/deps.ts';
import { createExchangeDeps } from '#shared/exchange/settings.ts';
import { reportWrites } from '#shared/resources/agenda.ts';
import { createReconcileDeps, reconcileSettings } from '#shared/resources/settings.ts';
import { toPopulateSettings } from '#shared/resources/step-settings.ts';
import { certificateSettings, tickSettings } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';
import { createTracer, traced } from '#shared/runtime/tracer.ts';

/** Settings of all of them. */
export const functionSettings = {
  ...reconcileSettings,
  ...objectImportSettings,
  ...backupSettings,
  ...TransferConfig.shape,
  ...certificateSettings,
  ...tickSettings,
} as const;
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
  readonly config: z.output<z.ZodObject<typeof functionSettings>>;
  readonly connect: (account: (typeof functionAccounts)[number]) => Promise<KubeClient>;
  /** Posts the functions' own events. Default: over a socket. */
  readonly post?: Post | undefined;
  readonly log: Logger;
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
  /** OCI images of the functions' Jobs, and the function that each starts. */
  readonly jobImages: Readonly<Record<string, string>>;
  /** Calls import-object like an object store: directly, without the broker. */
  readonly notifyOfObject: (notification: Request) => Promise<Response>;
  /** Resolves when no event is being handled. A broker that stops does not wait for answers, although functions still work. */
  readonly idle: () => Promise<void>;
}

export const createFunctions = async ({ config, connect, post, log }: FunctionsOptions): Promise<Functions> => {
  const depsOf = (account: (typeof functionAccounts)[number]) =>
    createReconcileDeps(config, log, { connect: () => connect(account), post });
  let writes = 0;
  const countedDepsOf = (account: 'initialize' | 'sidecar-sync') => {
    const report = async () => reportWrites(await connect(account), () => (writes += 1));
    return createReconcileDeps(config, log, { connect: report, post });
  };
  const tickDeps = { ...depsOf('cron-tick'), publicUrl: config.publicUrl, writesElsewhere: () => writes };
  const admission = new Hono();
  const { allowedAddresses, ownCertificate, sweepSeconds } = config;
  for (const create of [createValidate, createMutate]) {
    admission.route('/', create({ ...depsOf('admission'), allowedAddresses }));
  }
  const importObject = createImportObject({
    ...createObjectImportDeps(config, log, () => connect('import-object')),
    token: config.notificationToken,
  });
  const backupDeps = createBackupDeps(config, log, { connect: () => connect('backup-metadata'), post });
  const handlers = [
    ['initialize', createInitialize(countedDepsOf('initialize'))],
    ['sidecar-sync', createSidecarSync(countedDepsOf('sidecar-sync'))],
    ['cron-tick', createCronTick({ ...tickDeps, ownCertificate, sweepSeconds })],
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
    { ...config, settings: toPopulateSettings(config) },
    await connect('transfer'),
    log.with({ function: 'transfer' }),
  );
  return {
    exchange,
    metrics: createMetrics({
      kube: await connect('metrics'),
      log: log.with({ function: 'metrics' }),
      now: Date.now,
    }),
    admission,
    jobImages: { [config.transferImage]: 'transfer-job', [config.bootImage]: 'boot-job' },
    subscribers: new Map(
      recorded.map(([name, app]) => [name, (request: Request) => track(Promise.resolve(app.fetch(request)))]),
    ),
    notifyOfObject: (notification) => track(Promise.resolve(importObject.fetch(notification))),
    idle: async () => void (await Promise.allSettled(inFlight)),
  };
};
