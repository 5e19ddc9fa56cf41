// Every object that Bullion serves, read as one thing, and the names that people call its kind by.
import { type KubeEvent, kubeEvents, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import { backends, type Registration } from '#shared/backends/registry.ts';
import { type AnyImage, findImage, type Found, imageGroups, isImage } from './image.ts';
import type { Story } from './story.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { reconcilerOf } from '#shared/resources/registry.ts';
import { Denied, InvalidInput, isNotFound, messageOf, NotFound } from '#shared/runtime/errors.ts';

/** What could be read of a kind. */
export type Read<T> =
  | { readonly is: 'read'; readonly items: readonly T[] }
  /** The cluster does not serve the kind. */
  | { readonly is: 'missing' }
  /** `message`: in the words of the API server. */
  | { readonly is: 'denied'; readonly message: string };

/** Errors other than a missing kind or a missing right are thrown. */
export const readOr = async <T>(read: () => Promise<readonly T[]>): Promise<Read<T>> => {
  try {
    return { is: 'read', items: await read() };
  } catch (error) {
    if (isNotFound(error)) return { is: 'missing' };
    if (error instanceof Denied) return { is: 'denied', message: messageOf(error) };
    throw error;
  }
};

export const readAll = <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  where: Pick<ListOptions, 'namespace' | 'labelSelector' | 'fieldSelector'> = {},
): Promise<Read<T>> => readOr(() => Array.fromAsync(kube.listAll(type, where)));

/** Kinds that this cluster lacks, or that this person may not list, have no objects. */
export const listIfAny = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly T[]> => {
  const read = await readAll(kube, type, { namespace, labelSelector });
  return read.is === 'read' ? read.items : [];
};

/** Beside images: what else has a name that a person may ask for, in the order it is looked for. */
export const otherTypes: readonly ResourceType<AnyImage>[] = [
  ...servedKinds
    .map(({ type }) => type)
    .filter((type) => type.namespaced && !isImage(type) && type.kind !== downloaderKind.type.kind),
  persistentVolumeClaims,
];

export const namesOf = ({ kind, plural, group }: ResourceType): readonly string[] => {
  const shortNames = servedKinds.find(({ type }) => type.plural === plural && type.group === group)?.shortNames ?? [
    'pvc',
  ];
  return [kind.toLowerCase(), plural, `${plural}.${group}`, ...shortNames];
};

/** Of our own kinds, what came of a DataVolume's attempts is in a field of its own. */
export const withDetail = (image: AnyImage): AnyImage => {
  const { status } = image as AnyImage & { readonly status?: { readonly detail?: object } };
  if (status?.detail === undefined) return image;
  const whole: NonNullable<AnyImage['status']> = { ...status.detail, ...status };
  return { ...image, status: whole };
};

const getIfAny = (kube: KubeClient, type: ResourceType<AnyImage>, key: { namespace: string; name: string }) =>
  readOr(async () => [await kube.get(type, key)].filter((found) => found !== undefined));

/** `undefined`: nothing was denied. */
const denialOf = (reads: readonly Read<AnyImage>[]): Denied | undefined => {
  const denied = reads.find((read) => read.is === 'denied');
  return denied && new Denied(denied.message);
};

/** An image by its name or with its group, before anything else; `undefined`: there is none of the name. */
const imageIfAny = async (kube: KubeClient, namespace: string, wanted: string): Promise<Found | undefined> => {
  const [prefix = '', name] = wanted.split('/');
  if (name !== undefined && !imageGroups.some((group) => group === prefix)) throw unknownKind(prefix, wanted);
  try {
    return await findImage(kube, namespace, wanted);
  } catch (error) {
    if (!isNotFound(error) || name !== undefined) throw error;
    return undefined;
  }
};

const unknownKind = (prefix: string, wanted: string): InvalidInput =>
  new InvalidInput(
    `${wanted}: ${prefix} is not a kind that is known here: write <name>, or <kind>/<name> with ` +
      `${[...imageGroups, ...otherTypes.map(({ kind }) => kind.toLowerCase())].join(', ')} or a short name; ` +
      `of other kinds, kubectl describe ${prefix} ${wanted.slice(prefix.length + 1)}`,
  );

/** `<name>`, an image first; or `<kind>/<name>`. A claim that has the name of what fills it is not meant. */
export const findAny = async (kube: KubeClient, namespace: string, wanted: string): Promise<Found> => {
  const [prefix = '', name] = wanted.split('/');
  const asked = name === undefined ? [] : otherTypes.filter((type) => namesOf(type).includes(prefix.toLowerCase()));
  const image = asked.length === 0 ? await imageIfAny(kube, namespace, wanted) : undefined;
  if (image !== undefined) return image;
  const key = { namespace, name: name ?? wanted };
  const all = await Promise.all(
    (asked.length === 0 ? otherTypes : asked).map(async (type) => ({ type, read: await getIfAny(kube, type, key) })),
  );
  const found = all.flatMap(({ type, read }): readonly Found[] =>
    read.is === 'read' ? read.items.map((image) => ({ type, image: withDetail(image) })) : [],
  );
  const [only, ...others] =
    found.length > 1 ? found.filter(({ type }) => type.kind !== 'PersistentVolumeClaim') : found;
  if (only === undefined) {
    const reads = all.map(({ read }) => read);
    throw (asked.length === 0 ? undefined : denialOf(reads)) ?? new NotFound(nothingThere(key, wanted, asked));
  }
  if (others.length === 0) return only;
  const forms = [only, ...others].map(({ type }) => `${type.kind.toLowerCase()}/${key.name}`);
  throw new InvalidInput(`several objects are named ${key.name}: say ${forms.join(' or ')}`);
};

const nothingThere = (
  { namespace, name }: { readonly namespace: string; readonly name: string },
  wanted: string,
  [type]: readonly ResourceType[],
): string =>
  type === undefined
    ? `there is no image ${wanted} in namespace ${namespace}, and no other object with that name: ` +
      'bullion images -A lists the images of all namespaces, -n names another one'
    : `there is no ${type.kind} ${name} in namespace ${namespace}: ` +
      `kubectl get ${type.plural} -A lists those of all namespaces, -n names another one`;

// Reads everything that explains where an object stands, of whichever kind we serve.

const childTypesOf = ({ type }: Found): readonly ResourceType[] => {
  const reconciler = reconcilerOf({ apiVersion: apiVersionOf(type), kind: type.kind });
  const types = [...(reconciler?.watchedChildren(backends) ?? []).map((watchedChild) => watchedChild.type), pods];
  // Backends make some kinds alike, each would be listed as often.
  return [...new Map(types.map((type) => [`${type.group}/${type.plural}`, type])).values()];
};

/** What a product makes for a backend lies in the namespace of the product. */
const placeOf = (type: ResourceType, namespace: string | undefined): string | undefined => {
  const needs = Object.values(backends).flatMap((one: Registration) => (one.served ? (one.backend.needs ?? []) : []));
  const theirs = needs.find((need) => need.type.plural === type.plural && need.type.group === type.group);
  return type.namespaced ? (theirs?.namespace ?? namespace) : undefined;
};

/** What Bullion made for an object. */
export const childrenOf = async (kube: KubeClient, found: Found): Promise<readonly KubeObject[]> => {
  const { namespace, uid } = found.image.metadata;
  const selector = `${labels.ownerUid}=${uid}`;
  const lists = await Promise.all(
    childTypesOf(found).map((type) => listIfAny(kube, type, placeOf(type, namespace), selector)),
  );
  return lists.flat();
};

export const gather = async (kube: KubeClient, found: Found): Promise<Story> => {
  const { namespace, uid } = found.image.metadata;
  const children = await childrenOf(kube, found);
  const concerned = new Set([uid, ...children.map(({ metadata }) => metadata.uid)]);
  const events: readonly KubeEvent[] = await listIfAny(kube, kubeEvents, namespace);
  return { found, children, events: events.filter(({ involvedObject }) => concerned.has(involvedObject.uid)) };
};
