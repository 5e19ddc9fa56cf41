// Lists, sets and IP addresses in CEL as extended by Kubernetes. Registered by cel-values.ts.

import { BlockList, isIP, isIPv4 } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import type { Environment } from '@marcbachmann/cel-js';

type Scalar = bigint | number | string | boolean;
type List = readonly unknown[];

const isEqual = (a: unknown, b: unknown): boolean =>
  isDeepStrictEqual(a, b) || ((typeof a === 'bigint' || typeof b === 'bigint') && Number(a) === Number(b));

const has = (list: List, value: unknown): boolean => list.some((item) => isEqual(item, value));

const indexOf = (list: List, value: unknown): bigint => BigInt(list.findIndex((item) => isEqual(item, value)));
const lastIndexOf = (list: List, value: unknown): bigint => BigInt(list.findLastIndex((item) => isEqual(item, value)));

const isSorted = (list: readonly Scalar[]): boolean =>
  list.every((item, index) => index === 0 || (list[index - 1] ?? item) <= item);

const sum = (list: readonly Scalar[]): unknown => {
  if (list.every((item) => typeof item === 'bigint')) return list.reduce((total, item) => total + item, 0n);
  return list.reduce<number>((total, item) => total + Number(item), 0);
};

const extreme =
  (name: 'min' | 'max') =>
  (list: readonly Scalar[]): Scalar => {
    const [first, ...rest] = list;
    if (first === undefined) throw new Error(`${name} called on empty list`);
    return rest.reduce((best, item) => ((name === 'min' ? item < best : item > best) ? item : best), first);
  };

/** The value of the name `sets` in an expression. */
class SetsNamespace {}

class Address {
  readonly text: string;

  constructor(text: string) {
    if (isIP(text) === 0) throw new Error(`IP Address "${text}" parse error during conversion from string`);
    this.text = text;
  }
}

class Network {
  readonly text: string;
  readonly address: string;
  readonly prefix: number;

  constructor(text: string) {
    const [address = '', prefix = ''] = text.split('/');
    if (isIP(address) === 0 || !/^\d{1,3}$/.test(prefix) || Number(prefix) > (isIPv4(address) ? 32 : 128))
      throw new Error(`network address parse error during conversion from string: ${text}`);
    [this.text, this.address, this.prefix] = [text, address, Number(prefix)];
  }
}

const familyOf = (address: string): 'ipv4' | 'ipv6' => (isIPv4(address) ? 'ipv4' : 'ipv6');

const containsAddress = (network: Network, address: string): boolean => {
  const list = new BlockList();
  list.addSubnet(network.address, network.prefix, familyOf(network.address));
  return list.check(address, familyOf(address));
};

const canMake = (make: () => unknown): boolean => {
  try {
    make();
    return true;
  } catch {
    return false;
  }
};

const registerLists = (environment: Environment): Environment =>
  environment
    .registerFunction('list.isSorted(): bool', isSorted)
    .registerFunction('list.sum(): dyn', sum)
    .registerFunction('list<A>.min(): A', extreme('min'))
    .registerFunction('list<A>.max(): A', extreme('max'))
    .registerFunction('list.indexOf(dyn): int', indexOf)
    .registerFunction('list.lastIndexOf(dyn): int', lastIndexOf)
    .registerType('SetsNamespace', SetsNamespace)
    .registerConstant('sets', 'SetsNamespace', new SetsNamespace())
    .registerFunction('SetsNamespace.contains(list, list): bool', (_: unknown, a: List, b: List) =>
      b.every((item) => has(a, item)),
    )
    .registerFunction(
      'SetsNamespace.equivalent(list, list): bool',
      (_: unknown, a: List, b: List) => a.every((item) => has(b, item)) && b.every((item) => has(a, item)),
    )
    .registerFunction('SetsNamespace.intersects(list, list): bool', (_: unknown, a: List, b: List) =>
      a.some((item) => has(b, item)),
    );

const registerNetwork = (environment: Environment): Environment =>
  environment
    .registerType('Address', Address)
    .registerType('Network', Network)
    .registerFunction('ip(string): Address', (text: string) => new Address(text))
    .registerFunction('isIP(string): bool', (text: string) => isIP(text) !== 0)
    .registerFunction('Address.family(): int', (address: Address) => (isIPv4(address.text) ? 4n : 6n))
    .registerFunction('cidr(string): Network', (text: string) => new Network(text))
    .registerFunction('isCIDR(string): bool', (text: string) => canMake(() => new Network(text)))
    .registerFunction('Network.prefixLength(): int', (network: Network) => BigInt(network.prefix))
    .registerFunction('Network.ip(): Address', (network: Network) => new Address(network.address))
    .registerFunction('Network.containsIP(string): bool', containsAddress)
    .registerFunction('Network.containsIP(Address): bool', (network: Network, address: Address) =>
      containsAddress(network, address.text),
    );

export const registerCollections = (environment: Environment): Environment =>
  registerNetwork(registerLists(environment));
