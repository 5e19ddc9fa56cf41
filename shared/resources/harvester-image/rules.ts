// Rules of a Harvester image, one per line.
import { persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import {
  type HarvesterImage,
  harvesterAnnotations,
  harvesterImageKind,
  harvesterLabels,
} from '#shared/api/harvester/image.ts';
import { parseChecksum } from '#shared/backends/rules/fields.ts';
import { toDisplayNameLabel } from '#shared/backends/rules/fields.ts';
import { parseSourceUrl } from '#shared/backends/rules/fields.ts';
import { readSource, textOf, urlOf } from '#shared/resources/harvester-image/source.ts';
import { type RequestRule, type SpecRule, faultIf, faultOf } from '#shared/resources/rule.ts';
import { annotatedAccessRule } from '#shared/resources/source-access.ts';

type Rule = SpecRule<HarvesterImage>;

const storageClassField = `metadata.annotations[${harvesterAnnotations.storageClassName}]`;

export const classAnnotationOf = (object: HarvesterImage | undefined): string | undefined =>
  textOf(object?.metadata.annotations?.[harvesterAnnotations.storageClassName]);

const needsUrl = ({ spec }: HarvesterImage): boolean => urlOf(spec) !== undefined;

const sameStorageClass: Rule['check'] = (object) => {
  const [annotation, target] = [classAnnotationOf(object), textOf(object.spec.targetStorageClassName)];
  const differ = annotation !== undefined && target !== undefined && annotation !== target;
  return faultIf(differ, 'spec.targetStorageClassName', `differs from ${storageClassField}; write one of them`);
};

const urlPresent: Rule['check'] = (object) =>
  faultIf(
    needsUrl(object) && textOf(object.spec.url) === undefined,
    'spec.url',
    `is required when sourceType is "${object.spec.sourceType}"`,
  );

const urlValid: Rule['check'] = ({ spec }) =>
  urlOf(spec) === 'http' && textOf(spec.url) !== undefined ? faultOf(parseSourceUrl(spec.url ?? ''), 'spec.url') : [];

const urlAbsent: Rule['check'] = (object) =>
  faultIf(
    !needsUrl(object) && textOf(object.spec.url) !== undefined,
    'spec.url',
    `must be empty when sourceType is "${object.spec.sourceType}"`,
  );

const checksum: Rule['check'] = ({ spec }) =>
  textOf(spec.checksum) === undefined ? [] : faultOf(parseChecksum(spec.checksum ?? '', 'sha512'), 'spec.checksum');

const sourceImagePresent: Rule['check'] = ({ spec }) => {
  if (spec.sourceType !== 'clone') return [];
  const { sourceImageName, sourceImageNamespace } = spec.securityParameters ?? {};
  return [
    ...faultIf(!textOf(sourceImageName), 'spec.securityParameters.sourceImageName', 'is required to clone an image'),
    ...faultIf(
      !textOf(sourceImageNamespace),
      'spec.securityParameters.sourceImageNamespace',
      'is required to clone an image',
    ),
  ];
};

const claimPresent: Rule['check'] = ({ spec }) =>
  spec.sourceType === 'export-from-volume'
    ? [
        ...faultIf(!textOf(spec.pvcNamespace), 'spec.pvcNamespace', 'is required to export a volume'),
        ...faultIf(!textOf(spec.pvcName), 'spec.pvcName', 'is required to export a volume'),
      ]
    : [];

export const harvesterImageRules: readonly Rule[] = [
  { id: 'one-storage-class', check: sameStorageClass },
  { id: 'url-given', check: urlPresent },
  { id: 'url-valid', check: urlValid },
  { id: 'no-url', check: urlAbsent },
  { id: 'source-image-given', check: sourceImagePresent },
  { id: 'claim-given', check: claimPresent },
  { id: 'checksum', check: checksum },
  annotatedAccessRule(readSource),
];

/** Images with one label, which is the name or its digest: more than a few can only be in deletion. */
const pageSize = 50;

const displayNameFree: RequestRule<HarvesterImage>['check'] = async ({ object, kube }) => {
  const { displayName } = object.spec;
  const { items } = await kube.list(harvesterImageKind.type, {
    namespace: object.metadata.namespace,
    labelSelector: `${harvesterLabels.displayName}=${toDisplayNameLabel(displayName)}`,
    limit: pageSize,
  });
  const holder = items.find(
    ({ metadata, spec }) =>
      spec.displayName === displayName &&
      metadata.deletionTimestamp === undefined &&
      metadata.name !== object.metadata.name,
  );
  const message = `image ${holder?.metadata.name} of this namespace has this display name; choose another one`;
  return faultIf(holder !== undefined, 'spec.displayName', message);
};

const exportedClaimThere: RequestRule<HarvesterImage>['check'] = async ({ resource: { source }, kube }) => {
  if (source?.type !== 'export-from-volume') return [];
  const { namespace, claimName } = source;
  const claim = await kube.get(persistentVolumeClaims, { namespace, name: claimName });
  return faultIf(claim === undefined, 'spec.pvcName', `claim ${namespace}/${claimName} does not exist`);
};

const classAnnotationKept: RequestRule<HarvesterImage>['check'] = ({ object, before }) => {
  const kept = classAnnotationOf(before);
  return faultIf(kept !== undefined && kept !== classAnnotationOf(object), storageClassField, `must stay ${kept}`);
};

const targetMatchesAnnotation: RequestRule<HarvesterImage>['check'] = ({ object, before }) => {
  const kept = classAnnotationOf(before);
  const target = textOf(object.spec.targetStorageClassName);
  const differ = kept !== undefined && target !== undefined && target !== kept;
  return faultIf(differ, 'spec.targetStorageClassName', `must stay ${kept}, as ${storageClassField} says`);
};

/** Immutable fields are rules of the CRD. */
export const harvesterImageRequestRules: readonly RequestRule<HarvesterImage>[] = [
  { id: 'unique-display-name', on: 'CREATE', reason: 'Conflict', check: displayNameFree },
  { id: 'claim-exists', on: 'CREATE', reason: 'Invalid', check: exportedClaimThere },
  { id: 'fixed-class-annotation', on: 'UPDATE', reason: 'Invalid', check: classAnnotationKept },
  { id: 'class-matches-annotation', on: 'UPDATE', reason: 'Invalid', check: targetMatchesAnnotation },
];
