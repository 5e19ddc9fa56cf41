// What a TenantLimit itself must be. Its reconciler reports the same of one that bypassed admission.
import type { TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { createAddressList } from '#shared/clients/http/address.ts';
import { type RequestRule, type SpecRule, faultIf, faultsOf } from '#shared/resources/rule.ts';
import type { Resource } from '#shared/resources/reconciler.ts';
import { type Fault, InvalidInput, messageOf } from '#shared/runtime/errors.ts';

type Rule = SpecRule<TenantLimit>;

const storageFaults: Rule['check'] = ({ spec: { quota = {} } }) => {
  const { storage, storageClasses = [] } = quota;
  const written = [
    { field: 'spec.quota.storage', value: storage },
    ...storageClasses.map((one, index) => ({
      field: `spec.quota.storageClasses[${index}].storage`,
      value: one.storage,
    })),
  ];
  return written.flatMap(({ field, value }) =>
    faultIf(value !== undefined && parseQuantity(value) === undefined, field, `"${value}" is not a size: write 500Gi`),
  );
};

const classFaults: Rule['check'] = ({ spec: { quota = {} } }) => {
  const names = (quota.storageClasses ?? []).map(({ name }) => name);
  return names.flatMap((name, index) =>
    faultIf(
      names.indexOf(name) < index,
      `spec.quota.storageClasses[${index}].name`,
      `${name} has an earlier entry: write both limits into one`,
    ),
  );
};

const port = String.raw`(?::\d{1,5})?`;
const hostForm = new RegExp(
  String.raw`^(?:\*|(?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?${port}|\[[0-9a-f:]+\]${port}|[0-9a-f:]*::[0-9a-f:]*)$`,
  'i',
);
const registryForm = /^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?(?:\/[a-z0-9._-]+)*\/?$/i;
const bucketForm = /^[a-z0-9][a-z0-9._-]{0,254}$/i;

interface WrittenPlace {
  readonly host?: string | undefined;
  readonly registry?: string | undefined;
  readonly bucket?: string | undefined;
  readonly store?: string | undefined;
  readonly addresses?: string | undefined;
}

const hostAdvice = 'write a host such as images.example.com, *.example.com or 10.0.0.5:8080, without scheme and path';

const placeFaults = ({ host, registry, bucket, store, addresses }: WrittenPlace, field: string): readonly Fault[] => [
  ...faultIf(host !== undefined && !hostForm.test(host), `${field}.host`, `"${host}" is not a host: ${hostAdvice}`),
  ...faultIf(store !== undefined && !hostForm.test(store), `${field}.store`, `"${store}" is not a host: ${hostAdvice}`),
  ...faultIf(
    registry !== undefined && !registryForm.test(registry),
    `${field}.registry`,
    `"${registry}" is not a registry: write quay.io or quay.io/containerdisks, without scheme and tag`,
  ),
  ...faultIf(
    bucket !== undefined && !bucketForm.test(bucket),
    `${field}.bucket`,
    `"${bucket}" is not the name of a bucket`,
  ),
  ...rangeFaults(addresses, `${field}.addresses`),
];

const rangeFaults = (addresses: string | undefined, field: string): readonly Fault[] => {
  if (addresses === undefined) return [];
  try {
    createAddressList([addresses]);
    return [];
  } catch (error) {
    if (!(error instanceof InvalidInput)) throw error;
    return [{ field, message: messageOf(error) }];
  }
};

const sourceFaults: Rule['check'] = ({ spec: { sources = {} } }) =>
  (['allow', 'deny', 'signed'] as const).flatMap((list) =>
    (sources[list] ?? []).flatMap((place, index) => placeFaults(place, `spec.sources.${list}[${index}]`)),
  );

const valueForm = /^([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;

/** No namespace has such a label, so that the limit would never apply. */
const selectorFaults: Rule['check'] = ({ spec: { namespaceSelector } }) => {
  const { matchLabels = {}, matchExpressions = [] } = namespaceSelector;
  const written = [
    ...Object.entries(matchLabels).map(([key, value]) => ({ field: `matchLabels[${key}]`, value })),
    ...matchExpressions.flatMap(({ values = [] }, index) =>
      values.map((value) => ({ field: `matchExpressions[${index}].values`, value })),
    ),
  ];
  return written.flatMap(({ field, value }) =>
    faultIf(
      !valueForm.test(value),
      `spec.namespaceSelector.${field}`,
      `"${value}" cannot be the value of a label: write up to 63 letters, digits, -, _ and .`,
    ),
  );
};

/** Another kind of signature would never be found. */
const signatureFaults: Rule['check'] = ({ spec: { sources = {} } }) =>
  (sources.signed ?? []).flatMap(({ registry, host, bucket, signature }, index) => {
    const isByCosign = signature.cosign !== undefined;
    const field = `spec.sources.signed[${index}].signature`;
    return [
      ...faultIf(
        registry !== undefined && !isByCosign,
        field,
        'images in a registry are signed by cosign: write cosign',
      ),
      ...faultIf(
        (host ?? bucket) !== undefined && isByCosign,
        field,
        'cosign signs images in registries: for files of a host or bucket, write gpg or minisign',
      ),
    ];
  });

/** A limit that says nothing would be taken for one that works. */
const limitsSomething: Rule['check'] = ({ spec: { quota, storageClasses, sources } }) =>
  faultIf(
    (quota ?? storageClasses ?? sources) === undefined,
    'spec',
    'limits nothing: write quota, storageClasses or sources',
  );

export const limitSpecRules: readonly Rule[] = [
  { id: 'limits-something', check: limitsSomething },
  { id: 'sizes', check: storageFaults },
  { id: 'one-quota-of-a-class', check: classFaults },
  { id: 'places', check: sourceFaults },
  { id: 'selector', check: selectorFaults },
  { id: 'fitting-signature', check: signatureFaults },
];

export const faultsOfLimit = (object: TenantLimit): readonly Fault[] => faultsOf(limitSpecRules, object);

export const limitRules: readonly RequestRule<TenantLimit, Resource>[] = limitSpecRules.flatMap(({ id, check }) =>
  (['CREATE', 'UPDATE'] as const).map((on) => ({
    id,
    on,
    reason: 'Invalid' as const,
    check: ({ object }: { readonly object: TenantLimit }) => check(object),
  })),
);
