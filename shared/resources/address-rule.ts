// Rejects addresses in sources that no transfer will connect to, at admission. The addresses of a host name are known only after resolution:
// the transfer checks them after each resolution and redirect.
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type RequestRule, faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Fields with a URL in sources of all kinds. */
const inSource = ['http', 'http.url', 'http.checksumURL', 'registry.url', 's3.url', 'gcs.url'];

const places: readonly string[] = [
  'spec.url',
  'spec.destination.s3.url',
  ...['spec.source', 'spec.template.spec.source'].flatMap((source) => inSource.map((field) => `${source}.${field}`)),
];

/** A fault for each URL whose host is a forbidden address. */
export const addressFaults = (object: KubeObject, isRefused: AddressPolicy): readonly Fault[] =>
  places.flatMap((field) => {
    const address = addressOf(valueAt(object, field));
    if (address === undefined || !isRefused(address)) return [];
    const message = `refers to ${address}, an address of the machine itself, its link or a metadata service: transfers do not connect to it unless it is in ALLOWED_ADDRESSES`;
    return faultIf(true, field, message);
  });

export const addressRule = (isRefused: AddressPolicy): RequestRule<KubeObject, unknown> => ({
  id: 'address',
  on: 'CREATE',
  reason: 'Invalid',
  check: ({ object }) => addressFaults(object, isRefused),
});

const valueAt = (object: unknown, path: string): unknown =>
  path
    .split('.')
    .reduce<unknown>((node, step) => (node as Readonly<Record<string, unknown>> | undefined)?.[step], object);

/** The address in the host of a URL, in any notation: the URL parser reads `0x7f.1` as 127.0.0.1. `localhost` is one without resolution. */
const addressOf = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  const host = URL.parse(text.replace(/^(?!https?:)[a-z][\w+.-]*:(?=\/\/)/iu, 'http:'))?.hostname;
  if (host === undefined) return undefined;
  const plain = host.replace(/^\[|\]$|\.$/g, '');
  if (/(^|\.)localhost$/.test(plain)) return '127.0.0.1';
  return /^[\d.]+$|:/.test(plain) ? plain : undefined;
};
