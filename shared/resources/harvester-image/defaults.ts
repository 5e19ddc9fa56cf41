// What a Harvester image leaves open, filled in at admission.
import { storageClasses } from '#shared/api/foreign/core.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterLabels } from '#shared/api/harvester/image.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import { type BackendRegistry, registrationOf } from '#shared/backends/registry.ts';
import { defaultClassOf } from '#shared/populate/storage/profile.ts';
import { classAnnotationOf } from '#shared/resources/harvester-image/rules.ts';
import { textOf } from '#shared/resources/harvester-image/source.ts';
import type { DefaultRequest, DefaultRule } from '#shared/resources/rule.ts';

type Fill = DefaultRule<HarvesterImage>['fill'];

/** The CRD has the same defaults; an API server that stores the object without them must not change what it means. */
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

/** The label finds images of one display name, so it follows the name whatever the user wrote into it. */
const labelName: Fill = ({ object }) =>
  withEntry(object, 'labels', harvesterLabels.displayName, toDisplayNameLabel(object.spec.displayName));

/** More classes than anybody has. */
const pageSize = 200;

/** What was decided once stays: a client that applies its own manifest again does not know of it. */
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

/** Annotation and field say the same, so that either may be read. What was written in both is left alone, right or wrong. */
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

/** Decided once, so that a class which changes later changes nothing about disks that are there. */
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
  // Last: it looks at the class that was decided on.
  { id: 'class-parameters', fill: fillParameters(backends) },
];
