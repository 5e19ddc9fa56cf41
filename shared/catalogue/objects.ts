// Every object that Bullion serves, read as one thing, and the names that people call its kind by.
import { type AnyImage, type Found, findImage, isImage } from '#shared/catalogue/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient, ListOptions } from '#shared/clients/kube/client.ts';
import { Denied, InvalidInput, NotFound, isNotFound, messageOf } from '#shared/runtime/errors.ts';

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
  where: Pick<ListOptions, 'namespace' | 'labelSelector'> = {},
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
