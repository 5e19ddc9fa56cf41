// Which requests go through a proxy, by the words people know from curl and CDI: HTTP_PROXY, HTTPS_PROXY, NO_PROXY. Pure.
import { BlockList, isIP } from 'node:net';
import { z } from 'zod';

const ProxyUrl = z
  .url({ protocol: /^https?$/ })
  .refine((text) => URL.canParse(text) && new URL(text).username === '' && new URL(text).password === '', {
    error: 'may hold no user or password: Jobs would show them to whoever may read Jobs',
  });

/** How sources on the web are reached. */
export const Proxies = z.object({
  /** For `http:` URLs. */
  http: ProxyUrl.optional(),
  /** For `https:` URLs, by a tunnel. */
  https: ProxyUrl.optional(),
  /** Hosts that are reached directly: names, `.suffix`, addresses, CIDRs, each with `:port` where that matters, or `*`. */
  none: z.array(z.string()).default([]),
  /** PEM certificates to trust besides the well-known ones: of a proxy with TLS, and of one that opens the TLS of others. */
  ca: z.string().optional(),
});
export type Proxies = z.infer<typeof Proxies>;

/** A name that only means something inside the cluster or on this machine. */
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

/** `host`, `host:port`, `[v6]:port`, each perhaps with a dot or `*.` before it. */
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
  // As in curl: a name stands for what is below it, too; with a dot before it, for that alone.
  return host === name || (isIP(host) === 0 && host.endsWith(name.startsWith('.') ? name : `.${name}`));
};

/** URL of the proxy that a request goes through; `undefined`: none. */
export const proxyFor = (url: URL, proxies: Proxies | undefined): string | undefined => {
  const isTls = url.protocol === 'https:';
  const proxy = isTls ? proxies?.https : proxies?.http;
  const host = url.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  if (proxies === undefined || proxy === undefined || isInternal(host)) return undefined;
  const port = url.port === '' ? (isTls ? '443' : '80') : url.port;
  return proxies.none.some((entry) => isExempt(host, port, entry)) ? undefined : proxy;
};
