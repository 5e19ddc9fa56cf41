// How an operator says which proxy sources on the web are reached through. Shared by every function that asks them, and handed on to Jobs.
import { z } from 'zod';
import { Proxies } from '#shared/clients/http/proxy.ts';
import { setting } from '#shared/runtime/config.ts';

/** An environment often holds such a variable with nothing in it. */
const proxyUrl = z
  .string()
  .default('')
  .transform((text) => (text === '' ? undefined : text))
  .pipe(Proxies.shape.http);

/** What an environment variable of a pod may hold is bounded: a bundle of all authorities of the world does not fit. */
export const mostPemCharacters = 100_000;

export const proxySettings = {
  httpProxy: setting(
    'HTTP_PROXY',
    'URL of the proxy that sources with http: URLs are reached through; names inside the cluster never are.',
    proxyUrl,
  ),
  httpsProxy: setting(
    'HTTPS_PROXY',
    'URL of the proxy that sources with https: URLs are reached through, by a tunnel.',
    proxyUrl,
  ),
  noProxy: setting(
    'NO_PROXY',
    'Hosts that are reached without it, separated by commas: names, `.suffix`, addresses, CIDRs, or `*`.',
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
    'PEM certificates to trust besides the well-known ones: those of the proxy.',
    z
      .string()
      .max(mostPemCharacters, { error: 'is too long for a Job: name the authority of the proxy alone' })
      .optional(),
  ),
} as const;

type ProxyConfig = z.output<z.ZodObject<typeof proxySettings>>;

/** `undefined`: everything is reached directly. */
export const toProxies = ({ httpProxy, httpsProxy, noProxy, proxyCa }: ProxyConfig): Proxies | undefined =>
  httpProxy === undefined && httpsProxy === undefined && (proxyCa ?? '') === ''
    ? undefined
    : { http: httpProxy, https: httpsProxy, none: noProxy, ca: proxyCa };
