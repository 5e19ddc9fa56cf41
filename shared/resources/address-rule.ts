// Rejects addresses in sources that no transfer will connect to, at admission. The addresses of a host name are known only after resolution:
// the transfer checks them after each resolution and redirect.
import type { AddressPolicy } from '#shared/clients/http/address.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type RequestRule, faultIf } from '#shared/resources/rule.ts';
import type { Fault } from '#shared/runtime/errors.ts';

const ofPolicy = ['gpg', 'minisign'].flatMap((way) => [`${way}.checksums`, `${way}.signature`]);
const ofCron = ['registry.url', 'http.url', 'http.checksumURL', 's3.url'];
const ofDataVolume = ['http', 'registry', 's3', 'gcs', 'imageio', 'vddk'].map((type) => `${type}.url`);
const ofExport = ['s3.url', 'registry.url'];

/** Every text that may be a URL, of all kinds: the test compares them with the schemas. */
export const urlFields: readonly string[] = [
  'spec.url',
  ...new Set(['http', ...ofCron, ...ofDataVolume, 'vddk.initImageURL'].map((field) => `spec.source.${field}`)),
  ...ofCron.map((field) => `spec.template.spec.source.${field}`),
  ...ofExport.map((field) => `spec.destination.${field}`),
  ...ofPolicy.map((field) => `spec.verify.signature.${field}`),
];

/** A fault for each URL whose host is a forbidden address. */
export const addressFaults = (object: KubeObject, isRefused: AddressPolicy): readonly Fault[] =>
  urlFields.flatMap((field) => {
    const address = addressOf(valueAt(object, field));
    if (address === undefined || !isRefused(address)) return [];
    const message = `refers to ${address}, an address of the machine itself, its link or a metadata service: transfers do not connect to it unless it is in ALLOWED_ADDRESSES`;
    return faultIf(true, field, message);
  });

type Rule = RequestRule<KubeObject, unknown>;

/** What was accepted before stays, even if fewer addresses are allowed since. */
const changedFaults = ({ object, before }: Parameters<Rule['check']>[0], isRefused: AddressPolicy): readonly Fault[] =>
  before === undefined
    ? []
    : addressFaults(object, isRefused).filter(({ field }) => valueAt(object, field) !== valueAt(before, field));

export const addressRules = (isRefused: AddressPolicy): readonly Rule[] => {
  const rule = { id: 'address', reason: 'Invalid' } as const;
  return [
    { ...rule, on: 'CREATE', check: ({ object }) => addressFaults(object, isRefused) },
    { ...rule, on: 'UPDATE', check: (request) => changedFaults(request, isRefused) },
  ];
};

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
