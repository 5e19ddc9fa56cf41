// The configuration of import-object, and the dependencies created from it.
import { z } from 'zod';
import { secretTexts, secrets } from '#shared/api/foreign/core.ts';
import { createAddressPolicy } from '#shared/clients/http/address.ts';
import { createHttpClient } from '#shared/clients/http/client.ts';
import { type Connect, createLateKubeClient } from '#shared/clients/kube/late.ts';
import { openObjectStore } from '#shared/clients/cloud/store.ts';
import type { ObjectImportDeps } from '#shared/object-import/drive.ts';
import { ImportRules } from '#shared/object-import/rules.ts';
import { cloudSettings, proxySettings, toProxies } from '#shared/resources/network-settings.ts';
import { type StepConfig, stepSettings } from '#shared/resources/step-settings.ts';
import {
  callerSettings,
  jsonText,
  kubeSettings,
  serverSettings,
  setting,
  traceSettings,
  wholeNumber,
} from '#shared/runtime/config.ts';
import { createListingClock } from '#shared/object-import/sweep.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

export const objectImportSettings = {
  ...serverSettings,
  ...kubeSettings,
  ...callerSettings,
  ...traceSettings,
  allowedAddresses: stepSettings.allowedAddresses,
  ...proxySettings,
  ...cloudSettings,
  objectStoreEndpoint: stepSettings.objectStoreEndpoint,
  objectStoreRegion: stepSettings.objectStoreRegion,
  objectStorePathStyle: stepSettings.objectStorePathStyle,
  objectStoreSecret: stepSettings.objectStoreSecret,
  importRules: setting(
    'IMPORT_RULES',
    'Rules for objects to import: a JSON list of {bucket, prefix, suffixes, namespace, storageClassName, keep, onDelete}.',
    z.string().default('[]').pipe(jsonText(ImportRules)),
  ),
  listSeconds: setting(
    'LIST_SECONDS',
    'Seconds between listings of the buckets, for objects whose notification was lost.',
    wholeNumber(0).default(900),
  ),
  notificationToken: setting(
    'NOTIFICATION_TOKEN',
    'Bearer token for plain notifications, and for CloudEvents of stores if callers need a token of Knative (OIDC_AUDIENCE). Otherwise CloudEvents need no token, because Triggers send none. Default: plain notifications need no token either.',
    z.string().min(1).optional(),
  ),
} as const;

export type ObjectImportConfig = z.output<z.ZodObject<typeof objectImportSettings>>;

/** Idle timeout of a store in milliseconds. */
const idleMs = 10_000;

type StoreConfig = Pick<
  StepConfig,
  | 'objectStoreEndpoint'
  | 'objectStoreRegion'
  | 'objectStorePathStyle'
  | 'objectStoreSecret'
  | 'allowedAddresses'
  | keyof typeof proxySettings
  | keyof typeof cloudSettings
>;

export const createObjectImportDeps = (
  config: ObjectImportConfig,
  log: Logger,
  connect?: Connect,
): ObjectImportDeps => {
  const kube = createLateKubeClient(config.kubeconfig, connect);
  const isListingDue = createListingClock(config.listSeconds * 1000, Date.now);
  return { kube, rules: config.importRules, openStore: openStoreOf(kube, config), isListingDue, now: Date.now, log };
};

const openStoreOf =
  (kube: ObjectImportDeps['kube'], config: StoreConfig): ObjectImportDeps['openStore'] =>
  async ({ namespace }) => {
    const secret = await readSecret(kube, namespace, config.objectStoreSecret);
    const isRefused = createAddressPolicy(config.allowedAddresses);
    const plain = { isRefused, idleMs, proxies: toProxies(config) };
    const http = createHttpClient({ ...plain, ca: secret?.['ca.crt'] });
    const { objectStoreEndpoint: endpoint, objectStoreRegion: region, objectStorePathStyle: pathStyle } = config;
    return openObjectStore(
      { http, endpoint, region, pathStyle },
      { secret, secretName: config.objectStoreSecret, use: 'read' },
      { asks: createHttpClient(plain), now: Date.now, clouds: config.cloudEndpoints },
    );
  };

const readSecret = async (
  kube: ObjectImportDeps['kube'],
  namespace: string,
  name: string | undefined,
): Promise<Readonly<Record<string, string>> | undefined> => {
  if (name === undefined) return undefined;
  const secret = await kube.get(secrets, { namespace, name });
  if (secret === undefined)
    throw new InvalidInput(
      `Secret ${name} with the credentials of the object store is missing in namespace ${namespace}`,
    );
  return secretTexts(secret);
};
