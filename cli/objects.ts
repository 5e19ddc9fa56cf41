// Every object that Bullion serves, read as one thing, and the names that people call its kind by. Called by `get` and `why`.
import { type AnyImage, isImage } from '#cli/image.ts';
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { servedKinds } from '#shared/api/kinds.ts';
import type { KubeObject, ResourceType } from '#shared/api/object.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { Denied, isNotFound } from '#shared/runtime/errors.ts';

/** Kinds this cluster lacks, or this person may not see, have nothing to tell. */
export const listIfAny = async <T extends KubeObject>(
  kube: KubeClient,
  type: ResourceType<T>,
  namespace: string | undefined,
  labelSelector?: string,
): Promise<readonly T[]> => {
  const found: T[] = [];
  try {
    for await (const object of kube.listAll(type, { namespace, labelSelector })) found.push(object);
  } catch (error) {
    if (!isNotFound(error) && !(error instanceof Denied)) throw error;
  }
  return found;
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
