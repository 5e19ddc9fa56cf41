// The addresses a user's URL may resolve to. Checked after DNS, for every connection, by the HTTP client.
import { BlockList, isIP } from 'node:net';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Returns true for an IP address that must not be connected to. */
export type AddressPolicy = (address: string) => boolean;

/** Addresses of the connecting machine, of its link, or of services of the cloud. */
const refusedRanges = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  'fe80::/10',
  'ff00::/8',
];

/** Metadata services outside the link-local range: IPv4 of Alibaba, Azure and Oracle; IPv6 of AWS, Google, Oracle and Scaleway. */
const metadataRanges = [
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::/32',
  'fd20:ce::/64',
  'fd00:c1::/32',
  'fd00:42::42/128',
];

/** The sixteen bytes of an IPv6 address in any notation. */
const bytesOf = (address: string): readonly number[] => {
  // A URL normalizes every notation, even a dotted end, to hexadecimal groups.
  const [head = '', tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split('::');
  const groupsOf = (text = ''): string[] => (text === '' ? [] : text.split(':'));
  const [before, after] = [groupsOf(head), groupsOf(tail)];
  const zeroes = Array.from({ length: 8 - before.length - after.length }, () => '0');
  return [...before, ...zeroes, ...after].flatMap((group) => {
    const value = Number.parseInt(group, 16);
    return [value >> 8, value & 0xff];
  });
};

interface Embedding {
  /** Hexadecimal digits of the address from byte `at` on. Default: from its start. */
  readonly prefix: string;
  readonly at?: number;
  /** Positions of the bytes of the IPv4 address. */
  readonly bytes: readonly [number, number, number, number];
  /** The IPv4 address is stored with every bit inverted. */
  readonly isInverted?: true;
  /** The bytes may have another meaning: addresses that no translator forwards are ignored here. */
  readonly isGuess?: true;
}

const lastFour = [12, 13, 14, 15] as const;
/** Operators choose a translation prefix within it, of any length in RFC 6052: the address can be at four positions. */
const localTranslation = '0064ff9b0001';

const embeddings: readonly Embedding[] = [
  { prefix: '000000000000000000000000', bytes: lastFour }, // IPv4-compatible, `::` and `::1` among them
  { prefix: '00000000000000000000ffff', bytes: lastFour }, // IPv4-mapped
  { prefix: '0000000000000000ffff0000', bytes: lastFour }, // IPv4-translated (SIIT)
  { prefix: '0064ff9b0000000000000000', bytes: lastFour }, // NAT64
  { prefix: localTranslation, bytes: lastFour },
  { prefix: localTranslation, bytes: [9, 10, 11, 12], isGuess: true },
  { prefix: localTranslation, bytes: [7, 9, 10, 11], isGuess: true },
  { prefix: localTranslation, bytes: [6, 7, 9, 10], isGuess: true },
  { prefix: '2002', bytes: [2, 3, 4, 5] }, // 6to4
  { prefix: '20010000', bytes: [4, 5, 6, 7] }, // Teredo: the server
  { prefix: '20010000', bytes: lastFour, isInverted: true }, // Teredo: the client
  { prefix: '00005efe', at: 8, bytes: lastFour }, // ISATAP
  { prefix: '02005efe', at: 8, bytes: lastFour },
];

/** Every IPv4 address that a packet to this IPv6 address may reach by translation or a tunnel. */
const embeddedIn = (address: string): readonly string[] => {
  const all = bytesOf(address);
  const hex = Buffer.from(all).toString('hex');
  return embeddings
    .filter(({ prefix, at = 0 }) => hex.startsWith(prefix, at * 2))
    .map(({ bytes, isInverted, isGuess }) => {
      const found = bytes.map((at) => (all[at] ?? 0) ^ (isInverted ? 0xff : 0));
      return { found, isGuess };
    })
    .filter(({ found: [first = 0], isGuess }) => isGuess !== true || (first > 0 && first < 224))
    .map(({ found }) => found.join('.'));
};

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

const listOf = (cidrs: readonly string[]): BlockList => {
  const list = new BlockList();
  for (const cidr of cidrs) {
    const [address = '', prefix, rest] = cidr.trim().split('/');
    const bits = isIP(address) === 6 ? 128 : 32;
    const length = prefix === undefined ? bits : Number(prefix);
    const isValid = isIP(address) !== 0 && rest === undefined && /^\d*$/.test(prefix ?? '') && length <= bits;
    if (!isValid) {
      throw new InvalidInput(`"${cidr}" is not an address range; write it like 10.0.0.0/8 or fd00::/8`);
    }
    list.addSubnet(address, length, familyOf(address));
  }
  return list;
};

/**
 * Rejects loopback, link-local, unspecified, multicast and metadata addresses, except those in `allowed` (CIDRs or single addresses), and every
 * IPv6 address that embeds one of them. Private networks are allowed: images are often stored there. Throws InvalidInput for an invalid range.
 */
export const createAddressPolicy = (allowed: readonly string[]): AddressPolicy => {
  const refused = listOf([...refusedRanges, ...metadataRanges]);
  const exceptions = listOf(allowed);
  const isRefused = (address: string): boolean => {
    const family = familyOf(address);
    if (exceptions.check(address, family)) return false;
    return refused.check(address, family) || (family === 'ipv6' && embeddedIn(address).some(isRefused));
  };
  return (address) => {
    const plain = address.replace(/%.*$/, '');
    return isIP(plain) === 0 || isRefused(plain);
  };
};

/** Whether an address is in one of the ranges, or embeds an IPv4 address that is. Throws InvalidInput for an invalid range. */
export const createAddressList = (cidrs: readonly string[]): AddressPolicy => {
  const list = listOf(cidrs);
  const isIn = (address: string): boolean => {
    const family = familyOf(address);
    return list.check(address, family) || (family === 'ipv6' && embeddedIn(address).some(isIn));
  };
  return (address) => {
    const plain = address.replace(/%.*$/, '');
    return isIP(plain) !== 0 && isIn(plain);
  };
};

/** A part of a URL; as it is where it is not encoded, since a literal per cent sign is allowed. */
export const decoded = (text: string): string => {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
};
