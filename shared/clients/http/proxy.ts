// Decides which requests use a proxy, by the variables of curl and CDI: HTTP_PROXY, HTTPS_PROXY, NO_PROXY. Pure.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

const ProxyUrl = z
  .url({ protocol: /^https?$/ })
  .refine((text) => URL.canParse(text) && new URL(text).username === '' && new URL(text).password === '', {
    error: 'must not contain a user or password: they would be visible in Jobs',
  });

/** Proxies for sources on the web. */
export const Proxies = z.object({
  http: ProxyUrl.optional(),
  /** For `https:` URLs, as a tunnel. */
  https: ProxyUrl.optional(),
  /** Hosts that are accessed directly: names, `.suffix`, addresses, CIDRs, each optionally with `:port`, or `*`. */
  none: z.array(z.string()).default([]),
  /** PEM certificates to trust besides the default ones: for a proxy with TLS, or one that intercepts TLS. */
  ca: z.string().optional(),
});
export type Proxies = z.infer<typeof Proxies>;

/** A name that is valid only inside the cluster or on this machine. */
const isInternal = (host: string): boolean =>
  isIP(host) === 0 ? !host.includes('.') || /\.(svc|local|localhost)$/.test(host) : /^(127\.|::1$)/.test(host);

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

const isWithin = (host: string, range: string): boolean => {
  const [address = '', bits = ''] = range.split('/');
  if (isIP(host) === 0 || isIP(address) === 0 || !/^\d{1,3}$/.test(bits)) return false;
  if (familyOf(host) !== familyOf(address) || Number(bits) > (isIP(address) === 6 ? 128 : 32)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(bits), familyOf(address));
  return list.check(host, familyOf(host));
};

/** `host`, `host:port`, `[v6]:port`, each optionally with the prefix `.` or `*.`. */
const splitEntry = (entry: string): { readonly name: string; readonly port: string | undefined } => {
  if (isIP(entry) !== 0 || entry.includes('/')) return { name: entry, port: undefined };
  const [, name = entry, port] = /^(.*?)(?::(\d+))?$/.exec(entry) ?? [];
  return { name: name.replace(/^\[|\]$/g, '').replace(/^\*(?=\.)/, ''), port };
};

const isExempt = (host: string, port: string, text: string): boolean => {
  const entry = text.trim().toLowerCase();
  if (entry === '*') return true;
  const { name, port: only } = splitEntry(entry);
  if (name === '' || (only !== undefined && only !== port)) return false;
  if (name.includes('/')) return isWithin(host, name);
  // As in curl: a name matches its subdomains too; with a leading dot, only its subdomains.
  return host === name || (isIP(host) === 0 && host.endsWith(name.startsWith('.') ? name : `.${name}`));
};

/** URL of the proxy for a request; `undefined`: none. */
export const proxyFor = (url: URL, proxies: Proxies | undefined): string | undefined => {
  const isTls = url.protocol === 'https:';
  const proxy = isTls ? proxies?.https : proxies?.http;
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (proxies === undefined || proxy === undefined || isInternal(host)) return undefined;
  const port = url.port === '' ? (isTls ? '443' : '80') : url.port;
  return proxies.none.some((entry) => isExempt(host, port, entry)) ? undefined : proxy;
};
