// Certificate authorities that transfers trust besides the default ones: Harvester's setting `additional-ca`. Created once, called by the
// reconciler before something is fetched.
import { z } from 'zod';
import { harvesterSettings } from '#shared/api/foreign/backup.ts';
import { CloudEndpoints } from '#shared/clients/cloud/endpoints.ts';
import { Proxies } from '#shared/clients/http/proxy.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { cached } from '#shared/runtime/cached.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { jsonText, setting } from '#shared/runtime/config.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** PEM certificates; `undefined`: there are none. Throws Unavailable if the API is, InvalidInput if they do not fit into a Job. */
export type TrustLook = () => Promise<string | undefined>;

export const trustSetting = 'additional-ca';

/** Milliseconds for which the result is cached. */
const lastsMs = 60_000;

export const createTrustLook = (kube: KubeClient, now: () => number = Date.now): TrustLook => {
  const read = cached(() => readPem(kube), lastsMs, now);
  return async () => {
    const pem = await read();
    if (pem !== undefined && pem.length > mostPemCharacters)
      throw new InvalidInput(
        `Harvester's setting ${trustSetting} is too long for a Job: include only your own authorities`,
      );
    return pem;
  };
};

const readPem = async (kube: KubeClient): Promise<string | undefined> => {
  const found = await kube.get(harvesterSettings, { name: trustSetting });
  return found?.value || found?.default || undefined;
};

/** Read only if something may be fetched. */
export const trustedSettings = async (
  { settings, trust }: { readonly settings: PopulateSettings; readonly trust: TrustLook },
  isFetching: boolean | undefined,
): Promise<PopulateSettings> => (isFetching === true ? trusting(settings, await trust()) : settings);

/** The settings of Jobs. */
export const trusting = (settings: PopulateSettings, pem: string | undefined): PopulateSettings => {
  if (pem === undefined) return settings;
  const { proxies = { none: [] } } = settings;
  const ca = [proxies.ca, pem].filter((one) => one !== undefined).join('\n');
  return { ...settings, additionalCa: pem, proxies: { ...proxies, ca } };
};

// Proxy settings of the operator for sources on the web. Shared by every function that connects to sources, and passed on to Jobs.

/** Environments often contain such a variable with an empty value. */
const proxyUrl = z
  .string()
  .default('')
  .transform((text) => (text === '' ? undefined : text))
  .pipe(Proxies.shape.http);

/** The size of an environment variable is limited: a bundle of all public authorities does not fit. */
const mostPemCharacters = 100_000;

export const proxySettings = {
  httpProxy: setting(
    'HTTP_PROXY',
    'URL of the proxy for sources with http: URLs; not used for names inside the cluster.',
    proxyUrl,
  ),
  httpsProxy: setting('HTTPS_PROXY', 'URL of the proxy for sources with https: URLs, used as a tunnel.', proxyUrl),
  noProxy: setting(
    'NO_PROXY',
    'Hosts that are accessed without the proxy, separated by commas: names, `.suffix`, addresses, CIDRs, or `*`.',
    z
      .string()
      .default('')
      .transform((text) =>
        text
          .split(',')
          .map((entry) => entry.trim())
          .filter((entry) => entry !== ''),
      ),
  ),
  proxyCa: setting(
    'PROXY_CA',
    'PEM certificates to trust besides the default ones: those of the proxy.',
    z
      .string()
      .max(mostPemCharacters, { error: 'is too long for a Job: include only the authority of the proxy' })
      .optional(),
  ),
} as const;

export const cloudSettings = {
  cloudEndpoints: setting(
    'CLOUD_ENDPOINTS',
    'Stores and token services of clouds in place of the public ones, as JSON: googleStorage, googleToken, googleSts, googleIam, azureLogin, azureStorage. Credentials of clouds are sent only to these.',
    jsonText(CloudEndpoints).optional(),
  ),
} as const;

type ProxyConfig = z.output<z.ZodObject<typeof proxySettings>>;

/** `undefined`: no proxy. */
export const toProxies = ({ httpProxy, httpsProxy, noProxy, proxyCa }: ProxyConfig): Proxies | undefined =>
  httpProxy === undefined && httpsProxy === undefined && (proxyCa ?? '') === ''
    ? undefined
    : { http: httpProxy, https: httpsProxy, none: noProxy, ca: proxyCa };
