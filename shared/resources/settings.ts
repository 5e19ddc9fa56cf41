// The configuration of the functions that reconcile images, and the reconciler's dependencies created from it.
import type { z } from 'zod';
import type { Post } from '#events/post.ts';
import { createSender } from '#events/send.ts';
import type { Send } from '#events/sender.ts';
import { type Connect, createLateKubeClient } from '#shared/clients/kube/late.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { whyUnusable } from '#shared/golden/signature/keys.ts';
import { createVerifier } from '#shared/golden/signature/verify.ts';
import { configuredSettings } from '#shared/resources/cdi-config/look.ts';
import { toProxies } from '#shared/resources/network-settings.ts';
import { createPollReach } from '#shared/resources/tenant-limit/poll-reach.ts';
import { createStepDeps, stepSettings } from '#shared/resources/step-settings.ts';
import { callerSettings, kubeSettings, serverSettings, sinkSettings, traceSettings } from '#shared/runtime/config.ts';
import { trustedSettings } from '#shared/resources/network-settings.ts';
import { createFileLook } from '#shared/transfer/file-look.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

export const reconcileSettings = {
  ...serverSettings,
  ...kubeSettings,
  ...callerSettings,
  ...traceSettings,
  ...sinkSettings,
  ...stepSettings,
} as const;

/** The part of a function's configuration that the reconciler uses. */
type DriverConfig = z.output<z.ZodObject<typeof reconcileSettings>>;
type SinkConfig = Pick<DriverConfig, keyof typeof sinkSettings>;

/** Architectures in registries, by the names of Node. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** How a function reaches others. Default: the API server and the sink over the network. */
export interface Reach {
  readonly connect?: Connect | undefined;
  readonly post?: Post | undefined;
}

/** Sends to the configured sink, if there is one. */
export const createSinkSender = ({ sink, sinkTokenFile: tokenFile }: SinkConfig, post?: Post): Send | undefined =>
  sink === undefined ? undefined : createSender({ sink, tokenFile, ...(post === undefined ? {} : { post }) });

/** `warm` loads what the first event needs. */
export const createReconcileDeps = (
  config: DriverConfig,
  log: Logger,
  { connect, post }: Reach = {},
): ReconcileDeps & { readonly warm: () => Promise<void> } => {
  const kube = createLateKubeClient(config.kubeconfig, connect);
  const send = createSinkSender(config, post);
  const { allowedAddresses } = config;
  const architecture = architectures[process.arch] ?? process.arch;
  const proxies = toProxies(config);
  const deps = createStepDeps(config, { kube, log, architecture, send });
  const registries = async () => configuredSettings(deps.settings, await deps.config());
  const reachOf = createPollReach({ limits: deps.limits, registries });
  const { cloudEndpoints: clouds } = config;
  const sources = { kube, reachOf, allowedAddresses, registries, proxies, clouds, now: Date.now };
  return {
    ...deps,
    warm: kube.warm,
    look: createFileLook(() => trustedSettings(deps, true)),
    observe: createObserver({ ...sources, architecture }),
    verify: createVerifier(sources),
    whyUnusable,
  };
};
