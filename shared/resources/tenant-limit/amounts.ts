// What a namespace uses, and whether there is room for more. Pure.
import type { NamespaceUsage, Quota, TenantLimit } from '#shared/api/bullion/tenant-limit.ts';
import type { PersistentVolumeClaim } from '#shared/api/foreign/core.ts';
import { deletedOwner } from '#shared/api/names.ts';
import { type KubeObject, ownerOf } from '#shared/api/object.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import { requestedBytes } from '#shared/populate/population.ts';
import { advise } from './places.ts';
import { type Counted, isPartOfAnother, wantedBy } from './wanted.ts';

/** An object that is counted, or is to be. */
export interface CountedItem {
  readonly uid: string;
  /** `undefined`: the bytes of a deleted image, which take storage and nothing else. */
  readonly counts: Counted | undefined;
  /** Name of such bytes, by which an image takes them back. */
  readonly left?: string | undefined;
  readonly className?: string | undefined;
  readonly bytes: number;
  readonly isBegun: boolean;
}

type Amounts = Pick<Quota, 'images' | 'volumes' | 'storage'>;

/** What was requested for a claim, or what it has got. */
const sizeOf = (claim: PersistentVolumeClaim): number =>
  Math.max(requestedBytes(claim), parseQuantity(claim.status?.capacity?.['storage']) ?? 0);

/** Objects of one namespace. A claim is counted with its owner: its size is what the owner really takes. */
export const itemsOf = (
  objects: readonly KubeObject[],
  claims: readonly PersistentVolumeClaim[],
): readonly CountedItem[] => {
  // The golden volume of an image may be a DataVolume, whose claim is the image's.
  const parents = new Map(
    objects.filter(isPartOfAnother).map((object) => [object.metadata.uid ?? '', ownerOf(object)?.uid ?? '']),
  );
  const rootOf = (uid: string): string => parents.get(uid) ?? uid;
  const byOwner = Map.groupBy(claims, (claim) => rootOf(ownerOf(claim)?.uid ?? ''));
  const counted = objects.flatMap((object): readonly CountedItem[] => {
    const { uid = '', deletionTimestamp } = object.metadata;
    const wanted = wantedBy(object);
    if (wanted?.counts === undefined) return [];
    const { counts, className, bytes = 0, isBegun } = wanted;
    const own = byOwner.get(uid) ?? [];
    const largest = Math.max(bytes, ...own.map(sizeOf));
    const ofClaim = own.map(({ spec }) => spec.storageClassName).find((name) => name !== undefined);
    // What is being deleted has its room until it is gone.
    return [
      {
        uid,
        counts,
        className: ofClaim ?? className,
        bytes: largest,
        isBegun: isBegun || own.length > 0 || deletionTimestamp !== undefined,
      },
    ];
  });
  const left = byOwner.get(deletedOwner) ?? [];
  return [...counted, ...left.map(leftItem)];
};

const leftItem = (claim: PersistentVolumeClaim): CountedItem => ({
  uid: claim.metadata.uid ?? '',
  counts: undefined,
  left: claim.metadata.name,
  className: claim.spec.storageClassName,
  bytes: sizeOf(claim),
  isBegun: true,
});

const countOf = (items: readonly CountedItem[], what: Counted): number =>
  items.filter(({ counts }) => counts === what).length;
const bytesIn = (items: readonly CountedItem[]): number => items.reduce((total, { bytes }) => total + bytes, 0);

interface Scope {
  readonly amounts: Amounts;
  /** Default: all classes. */
  readonly className?: string;
}

const scopesOf = ({ storageClasses = [], ...amounts }: Quota): readonly Scope[] => [
  { amounts },
  ...storageClasses.map(({ name, ...of }) => ({ amounts: of, className: name })),
];

const inScope = ({ className }: Scope, items: readonly CountedItem[]): readonly CountedItem[] =>
  className === undefined ? items : items.filter((item) => item.className === className);

const where = ({ className }: Scope): string => (className === undefined ? '' : ` of class ${className}`);

/** Why a scope has no room. */
const shortages = (scope: Scope, others: readonly CountedItem[], item: CountedItem): readonly string[] => {
  const there = inScope(scope, others);
  if (inScope(scope, [item]).length === 0) return [];
  const { amounts } = scope;
  const most = item.counts && amounts[item.counts];
  const count = there.filter(({ counts }) => counts === item.counts).length;
  const storage = parseQuantity(amounts.storage);
  const bytes = bytesIn(there);
  return [
    ...(most !== undefined && count + 1 > most
      ? [`the ${item.counts}${where(scope)} of this namespace to ${most}, and it has ${count}`]
      : []),
    ...(storage !== undefined && bytes + item.bytes > storage && item.bytes > 0
      ? [
          `the storage${where(scope)} of this namespace to ${formatQuantity(storage)}, of which ${formatQuantity(bytes)} is used, and this one takes ${formatQuantity(item.bytes)}`,
        ]
      : []),
  ];
};

/** Why there is no room for an item beside others; empty: there is. */
export const quotaRefusals = (
  limits: readonly TenantLimit[],
  others: readonly CountedItem[],
  item: CountedItem,
): readonly string[] =>
  limits.flatMap(({ metadata, spec }) =>
    scopesOf(spec.quota ?? {})
      .flatMap((scope) => shortages(scope, others, item))
      .map((text) =>
        advise(
          `TenantLimit ${metadata.name} limits ${text}: delete what is not needed, or ask for more`,
          spec.message ?? 'the administrator of the cluster decides',
        ),
      ),
  );

/** Why a class may not be used; empty: it may. */
export const classRefusals = (limits: readonly TenantLimit[], className: string | undefined): readonly string[] =>
  limits.flatMap(({ metadata, spec: { storageClasses, message } }) => {
    if (storageClasses === undefined || className === undefined || storageClasses.allow.includes(className)) return [];
    const allowed = storageClasses.allow.length === 0 ? 'none' : storageClasses.allow.join(', ');
    const text = `storage class ${className} is not allowed by TenantLimit ${metadata.name}, which allows ${allowed}`;
    return [advise(text, storageClasses.message, message)];
  });

const isFull = (amounts: Amounts, items: readonly CountedItem[], what: keyof Amounts): boolean => {
  if (what === 'storage') {
    const most = parseQuantity(amounts.storage);
    return most !== undefined && bytesIn(items) >= most;
  }
  const most = amounts[what];
  return most !== undefined && countOf(items, what) >= most;
};

const usedOf = (items: readonly CountedItem[]) => ({
  images: countOf(items, 'images'),
  volumes: countOf(items, 'volumes'),
  storage: formatQuantity(bytesIn(items)),
});

/** What one namespace uses of a limit. */
export const usageOf = (
  { quota = {} }: TenantLimit['spec'],
  namespace: string,
  items: readonly CountedItem[],
): NamespaceUsage => {
  const scopes = scopesOf(quota);
  const reached = scopes.flatMap((scope) =>
    (['images', 'volumes', 'storage'] as const)
      .filter((what) => isFull(scope.amounts, inScope(scope, items), what))
      .map((what) => `${what}${where(scope)}`),
  );
  const classes = scopes.flatMap((scope) =>
    scope.className === undefined ? [] : [{ name: scope.className, ...usedOf(inScope(scope, items)) }],
  );
  return {
    namespace,
    ...usedOf(items),
    ...(classes.length === 0 ? {} : { storageClasses: classes }),
    ...(reached.length === 0 ? {} : { reached }),
  };
};
