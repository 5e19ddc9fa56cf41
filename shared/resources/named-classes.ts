// A volume in the storage class of an image is a copy of that image: users who name the class, in any kind of object, must be allowed to read
// the image. Checked at admission, because claims are later created by functions that may read every image.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { type Owner, ownerOf } from '#shared/api/owner.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import type { AskedSource } from '#shared/resources/access-rule.ts';

interface NamedClass {
  readonly field: string;
  readonly name: string;
}

const isClassField = (key: string): boolean => /storageClassName$/i.test(key);

/** At any depth: the fields have the same name in all kinds. */
const classesIn = (value: unknown, path: string): readonly NamedClass[] => {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]: [string, unknown]) => {
    const field = `${path}.${key}`;
    if (typeof inner !== 'string') return classesIn(inner, field);
    return isClassField(key) && inner !== '' ? [{ field, name: inner }] : [];
  });
};

export const namedClasses = (object: KubeObject): readonly NamedClass[] => {
  const key = harvesterAnnotations.storageClassName;
  const name = object.metadata.annotations?.[key] ?? '';
  const written = name === '' ? [] : [{ field: `metadata.annotations[${key}]`, name }];
  return [...classesIn((object as { readonly spec?: unknown }).spec, 'spec'), ...written];
};

export const imageOfClass = async (kube: KubeClient, name: string): Promise<Owner | undefined> => {
  const found = name === '' ? undefined : await kube.get(storageClasses, { name });
  return found && ownerOf(found);
};

/** Images of the classes that an object names; one look-up per class. */
export const imagesOfClasses = async (object: KubeObject, kube: KubeClient): Promise<readonly AskedSource[]> => {
  const found = await Promise.all(
    namedClasses(object).map(async ({ field, name }): Promise<readonly AskedSource[]> => {
      const image = await imageOfClass(kube, name);
      if (image === undefined) return [];
      return [{ use: 'use-image', namespace: image.namespace, name: image.name, field, shown: 'of this class' }];
    }),
  );
  return found.flat();
};
