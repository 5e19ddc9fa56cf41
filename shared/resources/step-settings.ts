// Settings of one step of the reconciler, in functions and in Workers, and the dependencies created from them.
import { z } from 'zod';
import type { Send } from '#events/sender.ts';
import { backends } from '#shared/backends/registry.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { jobSettings, toJobSettings } from '#shared/populate/config.ts';
import { type PopulateSettings, defaultSettings } from '#shared/populate/settings.ts';
import { createAnnouncer } from '#shared/resources/announcer.ts';
import { createConfigLook } from './cdi-config/look.ts';
import { type LimitsLook, createLimitsLook } from '#shared/resources/tenant-limit/applied.ts';
import { createCdiLook } from '#shared/resources/cdi-mode.ts';
import { cloudSettings, createTrustLook, proxySettings, toProxies } from './network-settings.ts';
import { addressSettings, cdiSettings, setting } from '#shared/runtime/config.ts';
import type { Logger } from '#shared/runtime/log.ts';
import type { ReconcileDeps } from '#shared/resources/deps.ts';

const list = (separator: RegExp) =>
  z.string().transform((text) =>
    text
      .split(separator)
      .map((part) => part.trim())
      .filter((part) => part !== ''),
  );

export const stepSettings = {
  ...cdiSettings,
  ...jobSettings,
  transferSink: setting(
    'TRANSFER_SINK',
    'URL for progress events of transfer Jobs. Default: K_SINK.',
    z.url().optional(),
  ),
  transferSinkAudience: setting(
    'TRANSFER_SINK_AUDIENCE',
    'Audience of the token of transfer Jobs for that URL. Default: no token.',
    z.string().optional(),
  ),
  ...addressSettings,
  plainRegistries: setting(
    'PLAIN_REGISTRIES',
    'Registries that are accessed without TLS, as host:port, separated by commas.',
    z.string().default('').pipe(list(/,/)),
  ),
  ...proxySettings,
  ...cloudSettings,
  objectStoreEndpoint: setting(
    'OBJECT_STORE_ENDPOINT',
    'URL of the object store for `spec.source.objectStore` of images. Default: such images are rejected.',
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
    'Name of the Secret with its credentials, in the namespace of each image. Default: requests are not signed.',
    z.string().optional(),
  ),
  templates: setting(
    'TEMPLATES',
    'Templates of golden images in HyperConverged and SSP objects: `auto` handles those without an operator, `serve` all, `off` none.',
    z.enum(['auto', 'serve', 'off']).default('auto'),
  ),
  goldenNamespace: setting(
    'GOLDEN_NAMESPACE',
    'Namespace of golden images whose template has none.',
    z.string().default('kubevirt-os-images'),
  ),
  filesystemOverhead: setting(
    'FILESYSTEM_OVERHEAD',
    'Share of a volume that its file system uses for itself, 0 to 1.',
    z.coerce.number<string>().min(0).max(1).default(defaultSettings.filesystemOverhead),
  ),
} as const;

/** `sink`: URL for events, also passed to Jobs. */
export type StepConfig = z.output<z.ZodObject<typeof stepSettings>> & {
  readonly sink?: string | undefined;
  readonly traceEndpoint?: string | undefined;
};

const toObjectStore = (config: StepConfig): PopulateSettings['objectStore'] =>
  config.objectStoreEndpoint === undefined
    ? undefined
    : {
        endpoint: config.objectStoreEndpoint,
        region: config.objectStoreRegion,
        pathStyle: config.objectStorePathStyle,
        secretName: config.objectStoreSecret,
      };

export const toPopulateSettings = (config: StepConfig): PopulateSettings => ({
  ...toJobSettings(config),
  allowedAddresses: config.allowedAddresses,
  plainRegistries: config.plainRegistries,
  proxies: toProxies(config),
  clouds: config.cloudEndpoints,
  objectStore: toObjectStore(config),
  eventSink: config.transferSink ?? config.sink,
  eventAudience: config.transferSinkAudience,
  traceEndpoint: config.traceEndpoint,
  filesystemOverhead: config.filesystemOverhead,
});

export interface StepParts {
  readonly kube: KubeClient;
  readonly log: Logger;
  /** Name in registries. */
  readonly architecture: string;
  /** Default: no events are sent. */
  readonly send?: Send | undefined;
}

/** Without polls of sources, which need sockets of their own. */
export const createStepDeps = (
  config: StepConfig,
  { kube, log, architecture, send }: StepParts,
): ReconcileDeps & { readonly limits: LimitsLook } => ({
  kube,
  backends,
  settings: toPopulateSettings(config),
  cdi: createCdiLook(kube, config.cdi),
  trust: createTrustLook(kube),
  config: createConfigLook(kube),
  limits: createLimitsLook(kube),
  templates: { mode: config.templates, namespace: config.goldenNamespace, architecture },
  now: Date.now,
  log,
  ...(send === undefined ? {} : { send, announce: createAnnouncer(send) }),
});
