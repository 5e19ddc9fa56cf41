// What the address of the list says: which objects, in which order, from where on.
import type { ResourceType } from '#shared/api/object.ts';
import {
  type AnyImage,
  type Found,
  type StateName,
  imageTypes,
  isImage,
  readyOf,
  stateNames,
  stateOf,
} from '#shared/catalogue/image.ts';
import { otherTypes } from '#shared/catalogue/objects.ts';
import { type Tone, pathOf } from '#shared/console/markup.ts';

export type AnyType = ResourceType<AnyImage>;

/** Every kind that has a page. */
export const allTypes: readonly AnyType[] = [...Object.values(imageTypes), ...otherTypes];

/** `virtualmachineimages.harvesterhci.io`: two groups have the same plural. */
export const typeName = ({ plural, group }: Pick<ResourceType, 'plural' | 'group'>): string =>
  group === '' ? plural : `${plural}.${group}`;

export const typeOf = (name: string): AnyType | undefined => allTypes.find((type) => typeName(type) === name);

/** Shown with the golden images instead. */
const goldenPlurals = ['datasources', 'dataimportcrons', 'goldenimagepolicies'];

export const listedTypes = allTypes.filter(
  ({ plural, kind }) => !goldenPlurals.includes(plural) && kind !== 'PersistentVolumeClaim',
);

const labels: Readonly<Record<string, string>> = {
  VirtualMachinePvc: 'VM PVC',
  VirtualMachineVolume: 'VM volume',
  VirtualMachineVolumeExport: 'VM volume export',
};

/** With the group where two kinds have one name. */
export const kindLabel = (type: AnyType): string =>
  isImage(type) ? `Image (${type.group.split('.')[0]})` : (labels[type.kind] ?? type.kind);

export const objectPath = (type: AnyType, { namespace = '', name }: { namespace?: string; name: string }): string =>
  `/objects/${[typeName(type), namespace, name].map(encodeURIComponent).join('/')}`;

export const uploadPath = ({ namespace = '', name }: { namespace?: string; name: string }): string =>
  `/upload/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** `<kind>:<version>`, separated by commas: `readSince` reads it. */
export const toSince = (since: Readonly<Record<string, string>>): string =>
  Object.entries(since)
    .map(([kind, version]) => `${kind}:${version}`)
    .join(',');

export const tones: Readonly<Record<StateName, Tone>> = { ready: 'ok', working: 'busy', failed: 'bad' };

export const sortKeys = ['name', 'size', 'state', 'age'] as const;
export type SortKey = (typeof sortKeys)[number];

export interface Query {
  readonly kind: string;
  readonly namespace: string;
  readonly search: string;
  readonly state: StateName | '';
  /** Empty: kind by kind, as the API lists them. */
  readonly sort: SortKey | '';
  readonly isDescending: boolean;
  /** Where the page begins: of a list in the order of the API `<kind>:<continue>`, else how many come before. */
  readonly after: string;
}

const oneOf = <T extends string>(known: readonly T[], text: string): T | undefined => known.find((one) => one === text);

export const readQuery = (query: URLSearchParams): Query => {
  const get = (name: string): string => query.get(name)?.trim() ?? '';
  return {
    kind: get('kind'),
    namespace: get('namespace'),
    search: get('q'),
    state: oneOf(stateNames, get('state')) ?? '',
    sort: oneOf(sortKeys, get('sort')) ?? '',
    isDescending: get('order') === 'desc',
    after: get('after'),
  };
};

/** The address of a list; `path`: that of its events takes the same query. */
export const listPath = (query: Query, path = '/objects', more: Readonly<Record<string, string>> = {}): string =>
  pathOf(path, {
    kind: query.kind,
    namespace: query.namespace,
    q: query.search,
    state: query.state,
    sort: query.sort,
    order: query.isDescending ? 'desc' : '',
    after: query.after,
    ...more,
  });

export const typesOf = ({ kind }: Query): readonly AnyType[] => {
  const only = typeOf(kind);
  return only === undefined ? listedTypes : [only];
};

/** Whether an object is asked for. */
export const isAskedFor = ({ search, state }: Query, found: Found): boolean => {
  if (state !== '' && stateOf(found) !== state) return false;
  if (search === '') return true;
  const { metadata, spec = {}, status } = found.image;
  const ready = readyOf(found);
  const shown = 'displayName' in spec ? String(spec.displayName) : '';
  const texts = [metadata.name, metadata.namespace, shown, status?.phase, ready?.reason, ready?.message];
  return texts.some((text) => text?.toLowerCase().includes(search.toLowerCase()) === true);
};

const values: Readonly<Record<SortKey, (found: Found) => string | number>> = {
  name: ({ image }) => image.metadata.name,
  size: ({ image }) => image.status?.virtualSize ?? 0,
  state: (found) => `${stateOf(found)} ${found.image.status?.phase ?? ''}`,
  // The youngest first.
  age: ({ image }) => -Date.parse(image.metadata.creationTimestamp ?? ''),
};

const keyOf = ({ image: { metadata } }: Found): string => `${metadata.namespace}/${metadata.name}`;

export const compare =
  ({ sort, isDescending }: Query) =>
  (one: Found, other: Found): number => {
    const turn = isDescending ? -1 : 1;
    const valueOf = values[sort === '' ? 'name' : sort];
    const [a, b] = [valueOf(one), valueOf(other)];
    return (
      turn * (typeof a === 'string' ? a.localeCompare(String(b)) : a - Number(b)) ||
      keyOf(one).localeCompare(keyOf(other))
    );
  };
