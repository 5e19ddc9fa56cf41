// The configuration of the functions that drive images, and the driver's dependencies made from it at the edge.
import { z } from 'zod';
import { createSender } from '#events/send.ts';
import { backends } from '#shared/backends/registry.ts';
import { createLateKubeClient } from '#shared/clients/kube/late.ts';
import { createObserver } from '#shared/golden/poll/observe.ts';
import { jobSettings, toJobSettings } from '#shared/populate/config.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { createAnnouncer } from '#shared/resources/announcer.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import type { DriverDeps } from '#shared/resources/driver.ts';
import { proxySettings, toProxies } from '#shared/resources/proxy-settings.ts';
import {
  addressSettings,
  cdiSettings,
  callerSettings,
  kubeSettings,
  serverSettings,
  setting,
  sinkSettings,
  traceSettings,
} from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';

const list = (separator: RegExp) =>
  z.string().transform((text) =>
    text
      .split(separator)
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );

export const driverSettings = {
  ...serverSettings,
  ...kubeSettings,
  ...callerSettings,
  ...traceSettings,
  ...sinkSettings,
  ...cdiSettings,
  ...jobSettings,
  transferSink: setting(
    'TRANSFER_SINK',
    'URL that transfer Jobs post their progress to; without it K_SINK is taken.',
    z.url().optional(),
  ),
  transferSinkAudience: setting(
    'TRANSFER_SINK_AUDIENCE',
    'Audience of the token that transfer Jobs show there; without it they have no token at all.',
    z.string().optional(),
  ),
  ...addressSettings,
  plainRegistries: setting(
    'PLAIN_REGISTRIES',
    'Registries that are reached without TLS, as host:port, separated by commas.',
    z.string().default('').pipe(list(/,/)),
  ),
  ...proxySettings,
  objectStoreEndpoint: setting(
    'OBJECT_STORE_ENDPOINT',
    'URL of the object store that `spec.source.objectStore` of images means; without it they are refused.',
    z.url().optional(),
  ),
  objectStoreRegion: setting('OBJECT_STORE_REGION', 'Region of the object store.', z.string().default('us-east-1')),
  objectStorePathStyle: setting(
    'OBJECT_STORE_PATH_STYLE',
    'Whether buckets are in the path (true) or in the host name (false).',
    z.stringbool().default(true),
  ),
  objectStoreSecret: setting(
    'OBJECT_STORE_SECRET',
    'Name of the Secret with its credentials, looked for in the namespace of each image; without it requests are not signed.',
    z.string().optional(),
  ),
  templates: setting(
    'TEMPLATES',
    'Templates of golden images in HyperConverged and SSP objects: `auto` carries out those no operator works on, `serve` all, `off` none.',
    z.enum(['auto', 'serve', 'off']).default('auto'),
  ),
  goldenNamespace: setting(
    'GOLDEN_NAMESPACE',
    'Namespace of golden images whose template names none.',
    z.string().default('kubevirt-os-images'),
  ),
  filesystemOverhead: setting(
    'FILESYSTEM_OVERHEAD',
    'Share of a volume that its file system keeps for itself, 0 to 1.',
    z.coerce.number<string>().min(0).max(1).default(defaultSettings.filesystemOverhead),
  ),
} as const;

/** What the schema of a function's configuration gives, as far as the driver is concerned. */
export type DriverConfig = z.output<z.ZodObject<typeof driverSettings>>;

const toObjectStore = (config: DriverConfig): PopulateSettings['objectStore'] =>
  config.objectStoreEndpoint === undefined
    ? undefined
    : {
        endpoint: config.objectStoreEndpoint,
        region: config.objectStoreRegion,
        pathStyle: config.objectStorePathStyle,
        secretName: config.objectStoreSecret,
      };

export const toPopulateSettings = (config: DriverConfig): PopulateSettings => ({
  ...toJobSettings(config),
  allowedAddresses: config.allowedAddresses,
  plainRegistries: config.plainRegistries,
  proxies: toProxies(config),
  objectStore: toObjectStore(config),
  eventSink: config.transferSink ?? config.sink,
  eventAudience: config.transferSinkAudience,
  traceEndpoint: config.traceEndpoint,
  filesystemOverhead: config.filesystemOverhead,
});

/** Architectures as registries name them, by what Node calls this machine's. */
const architectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** `warm` loads what the first event would wait for. */
export const createDriverDeps = (
  config: DriverConfig,
  log: Logger,
): DriverDeps & { readonly warm: () => Promise<void> } => {
  const kube = createLateKubeClient(config.kubeconfig);
  const send =
    config.sink === undefined ? undefined : createSender({ sink: config.sink, tokenFile: config.sinkTokenFile });
  const { allowedAddresses, plainRegistries } = config;
  const architecture = architectures[process.arch] ?? process.arch;
  return {
    kube,
    warm: kube.warm,
    backends,
    settings: toPopulateSettings(config),
    cdi: createCdiLook(kube, config.cdi),
    templates: { mode: config.templates, namespace: config.goldenNamespace, architecture },
    now: Date.now,
    log,
    observe: createObserver({
      kube,
      allowedAddresses,
      plainRegistries,
      proxies: toProxies(config),
      architecture,
      now: Date.now,
    }),
    ...(send === undefined ? {} : { send, announce: createAnnouncer(send) }),
  };
};
