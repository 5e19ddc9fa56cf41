// Addresses in sources that no transfer will connect to, refused at admission. What a name leads to is only known when it is looked up: the
// transfer judges that, after each resolution and redirect.
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type RequestRule, faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

/** Fields of a source that hold a URL, whichever kind it is of. */
const inSource = ['http', 'http.url', 'http.checksumURL', 'registry.url', 's3.url', 'gcs.url'];

const places: readonly string[] = [
  'spec.url',
  'spec.destination.s3.url',
  ...['spec.source', 'spec.template.spec.source'].flatMap((source) => inSource.map((field) => `${source}.${field}`)),
];

/** A fault for each URL whose host is an address that must not be connected to. */
export const addressFaults = (object: KubeObject, isRefused: AddressPolicy): readonly Fault[] =>
  places.flatMap((field) => {
    const address = addressOf(valueAt(object, field));
    if (address === undefined || !isRefused(address)) return [];
    const message = `leads to ${address}, which means the machine itself, its link or a metadata service: no transfer connects there, save to ALLOWED_ADDRESSES`;
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

/** The address that a URL's host is, however it is written: a URL of the web has `0x7f.1` as 127.0.0.1. `localhost` is one without a look-up. */
const addressOf = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined;
  const text = value.trim();
  const host = URL.parse(text.replace(/^(?!https?:)[a-z][\w+.-]*:(?=\/\/)/iu, 'http:'))?.hostname;
  if (host === undefined) return undefined;
  const plain = host.replace(/^\[|\]$|\.$/g, '');
  if (/(^|\.)localhost$/.test(plain)) return '127.0.0.1';
  return /^[\d.]+$|:/.test(plain) ? plain : undefined;
};
