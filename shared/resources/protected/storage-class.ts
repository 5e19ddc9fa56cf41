// A storage class must not be deleted while images use it. Images have its name as a label, so that one page per kind is enough.
import type { AdmissionRequest } from '#shared/api/admission.ts';
import { harvesterAnnotations } from '#shared/api/harvester/image.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import type { ImageDialect, ImageObject } from '#shared/resources/dialect.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

/** Enough for a message. */
const most = 5;

const usersAmong = async <T extends ImageObject>(
  dialect: ImageDialect<T>,
  name: string,
  kube: KubeClient,
): Promise<readonly string[]> => {
  const labelSelector = `${labels.storageClass}=${toDisplayNameLabel(name)}`;
  const { items } = await kube.list(dialect.kind.type, { labelSelector, limit: most });
  // The label is a hint: users can set it.
  const users = items.filter(
    (item) => item.metadata.deletionTimestamp === undefined && dialect.toImage(item).storage.className === name,
  );
  return users.map(({ metadata }) => `${dialect.kind.singular} ${metadata.namespace ?? ''}/${metadata.name}`);
};

export const keepClassInUse = async ({ name = '' }: AdmissionRequest, kube: KubeClient): Promise<AdmissionAnswer> => {
  const users = [
    ...(await usersAmong(harvesterImages, name, kube)),
    ...(await usersAmong(hyperCloudImages, name, kube)),
  ];
  if (users.length === 0) return allowed;
  return refused('Forbidden', [], `storage class ${name} is used by images: ${users.join(', ')}; delete those first`);
};

export const keepReservedClass = ({ name = '', oldObject }: AdmissionRequest): AdmissionAnswer =>
  oldObject?.metadata.annotations?.[harvesterAnnotations.reservedClass] === 'true'
    ? refused(
        'Forbidden',
        [],
        `storage class ${name} is reserved by the annotation ${harvesterAnnotations.reservedClass}`,
      )
    : allowed;

/** The label that finds the images of a class. */
export const withClassLabel = <T extends KubeObject>(object: T, className: string | undefined): T =>
  className === undefined
    ? object
    : {
        ...object,
        metadata: {
          ...object.metadata,
          labels: { ...object.metadata.labels, [labels.storageClass]: toDisplayNameLabel(className) },
        },
      };
