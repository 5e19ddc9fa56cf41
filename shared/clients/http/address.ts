// Which addresses a user's URL may lead to. Decided after DNS, for every connection, by the HTTP client.
import { BlockList, isIP } from 'node:net';
import { InvalidInput } from '#shared/runtime/errors.ts';

/** Says whether a connection to this IP address must not be made. */
export type AddressPolicy = (address: string) => boolean;

/** Addresses that mean "this machine", "this link" or "the cloud's own services" to whoever connects. */
const refusedRanges = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '::1/128',
  'fe80::/10',
  'ff00::/8',
];

/** Metadata services outside the link-local range: Alibaba, Azure, Oracle, AWS and Google over IPv6. */
const metadataAddresses = [
  '100.100.100.200/32',
  '168.63.129.16/32',
  '192.0.0.192/32',
  'fd00:ec2::254/128',
  'fd20:ce::254/128',
];

/** The same IPv4 ranges reached through NAT64 and 6to4 addresses. */
const embeddedRanges = [
  '64:ff9b::7f00:0/104',
  '64:ff9b::a9fe:0/112',
  '64:ff9b::/104',
  '2002:7f00::/24',
  '2002:a9fe::/32',
  '2002::/24',
];

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
 * Refuses loopback, link-local, unspecified, multicast and metadata addresses, save those in `allowed` (CIDRs or single addresses).
 * Private networks are fine: that is where images live. Throws InvalidInput for a malformed range.
 */
export const createAddressPolicy = (allowed: readonly string[]): AddressPolicy => {
  const refused = listOf([...refusedRanges, ...metadataAddresses, ...embeddedRanges]);
  const exceptions = listOf(allowed);
  return (address) => {
    const plain = address.replace(/%.*$/, '');
    if (isIP(plain) === 0) return true;
    const family = familyOf(plain);
    return refused.check(plain, family) && !exceptions.check(plain, family);
  };
};
