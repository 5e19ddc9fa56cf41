// Common parts of the Workers that reconcile images: called by a Trigger of Knative, with a token of the cluster's issuer.
import { z } from 'zod';
import { createHandlerPost } from '#events/post.ts';
import { type Send, createSenderOver } from '#events/sender.ts';
import { type App, clusterSettings, clusterWorker } from '#infra/workers/cluster-worker.ts';
import { safeUrl } from '#infra/workers/settings.ts';
import { createStepDeps, stepSettings } from '#shared/resources/step-settings.ts';
import { discoverIssuer, withCaller } from '#shared/runtime/caller.ts';
import { callerSettings, setting } from '#shared/runtime/config.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const reconcileWorkerSettings = {
  ...clusterSettings,
  oidcAudience: setting(
    'OIDC_AUDIENCE',
    'Audience that the tokens of callers must have: the audience of the subscriber in the Trigger.',
    z.string().min(1),
  ),
  oidcSubjects: setting(
    'OIDC_SUBJECTS',
    'Accounts that may call, separated by commas; a trailing * matches any suffix.',
    callerSettings.oidcSubjects.refine((names) => names.length > 0, 'is empty: no account could call'),
  ),
  sink: setting(
    'BROKER_URL',
    'https URL of the Broker outside the cluster, for announcements of ready or failed images. Default: none are sent.',
    safeUrl.optional(),
  ),
  brokerToken: setting(
    'BROKER_TOKEN',
    'Bearer token for that URL, with the audience of the Broker; a secret. Default: none is sent.',
    z.string().min(1).optional(),
  ),
  architecture: setting(
    'ARCHITECTURE',
    'Architecture of golden images whose template has none, if the cluster does not define its own.',
    z.string().default('amd64'),
  ),
  ...stepSettings,
  transferSink: setting(
    'TRANSFER_SINK',
    'URL of the Broker inside the cluster, for progress events of transfer Jobs. Default: none are sent.',
    z.url().optional(),
  ),
} as const;

type Config = z.output<z.ZodObject<typeof reconcileWorkerSettings>>;

const senderTo = ({ sink, brokerToken }: Config): Send | undefined =>
  sink === undefined
    ? undefined
    : createSenderOver({
        sink,
        // The token must be sent only to this address.
        post: createHandlerPost((request) => fetch(request, { redirect: 'manual' })),
        token: () => Promise.resolve(brokerToken),
      });

export const reconcileWorker = (name: string, createApp: (deps: ReconcileDeps) => App) =>
  clusterWorker(name, z.object(reconcileWorkerSettings), (config, { kube, log }) => {
    const { architecture, transferSink, oidcAudience: audience, oidcSubjects: subjects } = config;
    const deps = {
      ...createStepDeps({ ...config, sink: transferSink }, { kube, log, architecture, send: senderTo(config) }),
    };
    return withCaller(createApp(deps), { audience, subjects }, { discover: () => discoverIssuer(kube), log });
  });
