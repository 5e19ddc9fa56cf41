// What the Workers that reconcile images have in common: a Trigger of Knative calls them, and shows a token of the cluster's issuer.
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
    "Audience that callers' tokens must be made for: what the Trigger names as that of its subscriber.",
    z.string().min(1),
  ),
  oidcSubjects: setting(
    'OIDC_SUBJECTS',
    'Accounts that may call, separated by commas; a star at the end of one stands for any end.',
    callerSettings.oidcSubjects.refine((names) => names.length > 0, 'names no account: nobody could call'),
  ),
  sink: setting(
    'BROKER_URL',
    'https URL at which the Broker is reached from outside, for what is told of images that are ready or have failed; without it nobody is told.',
    safeUrl.optional(),
  ),
  brokerToken: setting(
    'BROKER_TOKEN',
    'Token that is shown there, made for the audience of the Broker; a secret. Without it none is shown.',
    z.string().min(1).optional(),
  ),
  architecture: setting(
    'ARCHITECTURE',
    'Of golden images whose template names none, where the cluster does not say its own.',
    z.string().default('amd64'),
  ),
  ...stepSettings,
  transferSink: setting(
    'TRANSFER_SINK',
    'URL of the Broker inside the cluster, that transfer Jobs post their progress to; without it they tell nobody.',
    z.url().optional(),
  ),
} as const;

type Config = z.output<z.ZodObject<typeof reconcileWorkerSettings>>;

const senderTo = ({ sink, brokerToken }: Config): Send | undefined =>
  sink === undefined
    ? undefined
    : createSenderOver({
        sink,
        // The token is for this address alone.
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
