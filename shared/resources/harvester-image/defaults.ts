// Defaults of a Harvester image, set at admission.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { classAnnotationOf } from '#shared/resources/harvester-image/rules.ts';
import { textOf } from '#shared/resources/harvester-image/source.ts';
import type { DefaultRequest, DefaultRule } from '#shared/resources/rule.ts';

type Fill = DefaultRule<HarvesterImage>['fill'];

/** The CRD has the same defaults; an API server that stores the object without them must not change its meaning. */
const specDefaults = { backend: 'backingimage', retry: 3 } as const;

const fillSpec: Fill = ({ object }) => ({ ...object, spec: { ...specDefaults, ...object.spec } });

const withEntry = (
  object: HarvesterImage,
  map: 'labels' | 'annotations',
  key: string,
  value: string,
): HarvesterImage => ({
  ...object,
  metadata: { ...object.metadata, [map]: { ...object.metadata[map], [key]: value } },
});

/** The label finds images by display name, so it always follows the name. */
const labelName: Fill = ({ object }) =>
  withEntry(object, 'labels', harvesterLabels.displayName, toDisplayNameLabel(object.spec.displayName));

/** More classes than any cluster has. */
const pageSize = 200;

/** A class decided once is kept: a client that applies its own manifest again does not know it. */
const decideClass = async ({ object, before, kube }: DefaultRequest<HarvesterImage>): Promise<string | undefined> => {
  const written =
    classAnnotationOf(object) ??
    textOf(object.spec.targetStorageClassName) ??
    classAnnotationOf(before) ??
    textOf(before?.spec.targetStorageClassName);
  if (written !== undefined || before !== undefined) return written;
  const { items } = await kube.list(storageClasses, { limit: pageSize });
  return defaultClassOf(items)?.metadata.name;
};

/** Annotation and field have the same value, so that either may be read. If both are set, they are not changed, valid or not. */
const fillClass: Fill = async (request) => {
  const { object } = request;
  const name = await decideClass(request);
  if (name === undefined) return object;
  const annotated =
    classAnnotationOf(object) === undefined
      ? withEntry(object, 'annotations', harvesterAnnotations.storageClassName, name)
      : object;
  return textOf(object.spec.targetStorageClassName) === undefined
    ? { ...annotated, spec: { ...annotated.spec, targetStorageClassName: name } }
    : annotated;
};

/** Decided once, so that a later change of the class does not affect existing disks. */
const fillParameters =
  (backends: BackendRegistry): Fill =>
  async ({ object, before, kube }) => {
    const registration = registrationOf(backends, object.spec.backend ?? specDefaults.backend);
    if (before !== undefined || !registration.served) return object;
    const className = classAnnotationOf(object) ?? textOf(object.spec.targetStorageClassName);
    const template = className === undefined ? undefined : await kube.get(storageClasses, { name: className });
    const asked = object.spec.storageClassParameters;
    const storageClassParameters = registration.backend.mutator.classParameters(asked, template);
    return storageClassParameters === undefined
      ? object
      : { ...object, spec: { ...object.spec, storageClassParameters } };
  };

export const harvesterImageDefaults = (backends: BackendRegistry): readonly DefaultRule<HarvesterImage>[] => [
  { id: 'backend-and-retry', fill: fillSpec },
  { id: 'display-name-label', fill: labelName },
  { id: 'one-storage-class', fill: fillClass },
  // Last: it uses the class that was decided.
  { id: 'class-parameters', fill: fillParameters(backends) },
];
