// Proxy settings of the operator for sources on the web. Shared by every function that connects to sources, and passed on to Jobs.
import { z } from 'zod';
import { Proxies } from '#shared/clients/http/proxy.ts';
import { setting } from '#shared/runtime/config.ts';

/** Environments often contain such a variable with an empty value. */
const proxyUrl = z
  .string()
  .default('')
  .transform((text) => (text === '' ? undefined : text))
  .pipe(Proxies.shape.http);

/** The size of an environment variable is limited: a bundle of all public authorities does not fit. */
export const mostPemCharacters = 100_000;

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

type ProxyConfig = z.output<z.ZodObject<typeof proxySettings>>;

/** `undefined`: no proxy. */
export const toProxies = ({ httpProxy, httpsProxy, noProxy, proxyCa }: ProxyConfig): Proxies | undefined =>
  httpProxy === undefined && httpsProxy === undefined && (proxyCa ?? '') === ''
    ? undefined
    : { http: httpProxy, https: httpsProxy, none: noProxy, ca: proxyCa };
