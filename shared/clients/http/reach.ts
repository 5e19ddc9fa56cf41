// Which servers may be asked for a namespace: what its administrator allows and denies. Compared with each URL before it is requested, so that neither a
// redirect nor the token service of a registry leads elsewhere, and with each address that a name resolves to.
import { z } from 'zod';
import { type AddressPolicy, createAddressList, decoded } from '#shared/clients/http/address.ts';
import { HttpFailure } from '#shared/clients/http/errors.ts';

const ServerPlace = z.object({
  /** Host in lower case, with or without a port; `*.suffix`: every name below it. */
  host: z.string(),
  /** What the path begins with, from `/` to `/`. Default: any path. */
  path: z.string().optional(),
});
export type ServerPlace = z.infer<typeof ServerPlace>;

const Denial = z.object({
  place: ServerPlace.optional(),
  /** CIDR. */
  addresses: z.string().optional(),
  /** The end of a sentence about the place. */
  because: z.string(),
});
export type Denial = z.infer<typeof Denial>;

export const ServerReach = z.object({
  /** The URL must be in each of these lists. */
  allowed: z.array(z.object({ places: z.array(ServerPlace), because: z.string() })),
  denied: z.array(Denial),
});
export type ServerReach = z.infer<typeof ServerReach>;

/** As the URL parser has it, without brackets and the dot of a complete name; an address in its shortest notation, IPv4 also where IPv6 maps it. */
const plainHost = (hostname: string): string => {
  const plain = hostname
    .toLowerCase()
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '');
  const url = URL.parse(`http://${plain.includes(':') ? `[${plain}]` : plain}`);
  const normal = url?.hostname.replace(/^\[|\]$/g, '') ?? plain;
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(normal) ?? [];
  if (high === undefined || low === undefined) return normal;
  const [first, second] = [Number.parseInt(high, 16), Number.parseInt(low, 16)];
  return [first >> 8, first & 255, second >> 8, second & 255].join('.');
};

const defaultPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/** A host of a pattern, and its port, if it has one. An IPv6 address with a port has brackets. */
const splitHost = (pattern: string): { readonly name: string; readonly port: string | undefined } => {
  const [, bracketed, plain, port] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+))?$/.exec(pattern) ?? [];
  return { name: plainHost(bracketed ?? plain ?? pattern), port };
};

const isHostOf = (url: URL, pattern: string): boolean => {
  const { name, port } = splitHost(pattern);
  if (port !== undefined && port !== (url.port || defaultPorts[url.protocol])) return false;
  const host = plainHost(url.hostname);
  if (name === '*') return true;
  if (!name.startsWith('*.')) return name === host;
  return host.endsWith(name.slice(1)) && host.length > name.length - 1;
};

/** An encoded slash or dot could lead out of the folder at a server that decodes it before it looks the path up. */
const leadsOut = (pathname: string): boolean => /%2f|%5c|\\|%2e/i.test(pathname);

export const isAt = (url: URL, { host, path }: ServerPlace): boolean => {
  if (!isHostOf(url, host)) return false;
  return path === undefined || (`${url.pathname}/`.startsWith(path) && !leadsOut(url.pathname));
};

/** Whether it may be there for some server: what is denied, or must be signed, must not be reached by another notation of its path. */
export const mayBeAt = (url: URL, { host, path }: ServerPlace): boolean => {
  if (!isHostOf(url, host)) return false;
  if (path === undefined || leadsOut(url.pathname)) return true;
  return `${decoded(url.pathname)}/`
    .replace(/\/{2,}/g, '/')
    .toLowerCase()
    .startsWith(path.toLowerCase());
};

/** Why a URL may not be requested; `undefined`: it may. */
export const whyOutOfReach = ({ allowed, denied }: ServerReach, url: URL): string | undefined => {
  const denial = denied.find(({ place, addresses }) =>
    place === undefined ? isInRange(plainHost(url.hostname), addresses) : mayBeAt(url, place),
  );
  if (denial !== undefined) return denial.because;
  return allowed.find(({ places }) => !places.some((place) => isAt(url, place)))?.because;
};

const isInRange = (address: string, cidr: string | undefined): boolean =>
  cidr !== undefined && createAddressList([cidr])(address);

/** The addresses that a name may resolve to. */
export const withinReach = (isRefused: AddressPolicy, reach: ServerReach | undefined): AddressPolicy => {
  const ranges = reach?.denied.flatMap(({ addresses }) => addresses ?? []) ?? [];
  if (ranges.length === 0) return isRefused;
  const isDenied = createAddressList(ranges);
  return (address) => isRefused(address) || isDenied(address);
};

/** The failure of a name whose addresses are denied; `undefined`: they are refused for something else. */
export const deniedBy = (
  reach: ServerReach | undefined,
  hostname: string,
  addresses: readonly string[],
): HttpFailure | undefined => {
  const denial = reach?.denied.find(({ addresses: range }) => addresses.some((address) => isInRange(address, range)));
  return denial && new HttpFailure('SourceNotAllowed', `${hostname} is at ${addresses.join(', ')}: ${denial.because}`);
};

/** Throws HttpFailure for a URL that is out of reach. */
export const requireReach = (reach: ServerReach | undefined, url: URL): void => {
  const because = reach && whyOutOfReach(reach, url);
  if (because !== undefined) throw new HttpFailure('SourceNotAllowed', `${url.host} is not asked: ${because}`);
};

/** With further servers: those that administrators configured as mirrors, and the registry itself. */
export const extendReach = (reach: ServerReach | undefined, hosts: readonly string[]): ServerReach | undefined =>
  reach && {
    ...reach,
    allowed: reach.allowed.map(({ places, because }) => ({
      places: [...places, ...hosts.map((host) => ({ host: host.toLowerCase() }))],
      because,
    })),
  };
