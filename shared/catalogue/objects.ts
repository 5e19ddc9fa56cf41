// Every object that Bullion serves, read as one thing, and the names that people call its kind by.
import { type KubeEvent, kubeEvents, persistentVolumeClaims, pods } from '#shared/api/foreign/core.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import { labels } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '#shared/api/object.ts';
import { backends, type Registration } from '#shared/backends/registry.ts';
import { type AnyImage, findImage, type Found, isImage } from './image.ts';
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

const getIfAny = async (kube: KubeClient, type: ResourceType<AnyImage>, key: { namespace: string; name: string }) => {
  try {
    return await kube.get(type, key);
  } catch (error) {
    if (isNotFound(error) || error instanceof Denied) return undefined;
    throw error;
  }
};

/** `<name>`, an image first; or `<kind>/<name>`. A claim that has the name of what fills it is not meant. */
export const findAny = async (kube: KubeClient, namespace: string, wanted: string): Promise<Found> => {
  const [prefix = '', name] = wanted.split('/');
  const asked = name === undefined ? [] : otherTypes.filter((type) => namesOf(type).includes(prefix.toLowerCase()));
  if (asked.length === 0) {
    try {
      return await findImage(kube, namespace, wanted);
    } catch (error) {
      if (!isNotFound(error) || name !== undefined) throw error;
    }
  }
  const key = { namespace, name: name ?? wanted };
  const all = await Promise.all(
    (asked.length === 0 ? otherTypes : asked).map(async (type) => ({ type, image: await getIfAny(kube, type, key) })),
  );
  const found = all.flatMap(({ type, image }): readonly Found[] =>
    image === undefined ? [] : [{ type, image: withDetail(image) }],
  );
  const [only, ...others] =
    found.length > 1 ? found.filter(({ type }) => type.kind !== 'PersistentVolumeClaim') : found;
  if (only === undefined) throw new NotFound(nothingThere(namespace, wanted));
  if (others.length === 0) return only;
  const forms = [only, ...others].map(({ type }) => `${type.kind.toLowerCase()}/${key.name}`);
  throw new InvalidInput(`several objects are named ${key.name}: say ${forms.join(' or ')}`);
};

const nothingThere = (namespace: string, wanted: string): string =>
  `there is no image ${wanted} in namespace ${namespace}, and no other object of that name: ` +
  'bullion images -A lists the images of all namespaces, -n names another one';

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
