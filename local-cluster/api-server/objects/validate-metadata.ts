// The rules of metadata for every kind, at creation and at update.
import { type Cause, childPath, forbidden, indexPath, invalid, required, tooLong } from '../schema/cause.ts';
import type { OwnerReference } from '#shared/api/object.ts';
import type { Json } from '../schema/json.ts';
import { type NameRule, labelValueFaults, qualifiedName } from './names.ts';
import { isSame } from './equal.ts';
import type { Metadata } from './object.ts';

const path = 'metadata';
const annotationLimit = 256 * 1024;

const nameCauses = (metadata: Metadata, rule: NameRule): Cause[] => {
  const causes: Cause[] = [];
  if (metadata.generateName !== undefined && metadata.generateName !== '') {
    for (const fault of rule(metadata.generateName, true)) {
      causes.push(invalid('metadata.generateName', metadata.generateName, fault));
    }
  }
  if (metadata.name === undefined || metadata.name === '') {
    causes.push(required('metadata.name', 'name or generateName is required'));
    return causes;
  }
  for (const fault of rule(metadata.name, false)) causes.push(invalid('metadata.name', metadata.name, fault));
  return causes;
};

export const labelCauses = (labels: Readonly<Record<string, string>> | undefined, field: string): Cause[] =>
  Object.entries(labels ?? {}).flatMap(([key, value]) => [
    ...qualifiedName(key, 'valid label key').map((fault) => invalid(field, key, fault)),
    ...labelValueFaults(value).map((fault) => invalid(field, value, fault)),
  ]);

const annotationCauses = (annotations: Readonly<Record<string, string>> | undefined): Cause[] => {
  const field = childPath(path, 'annotations');
  const entries = Object.entries(annotations ?? {});
  const causes = entries.flatMap(([key]) =>
    qualifiedName(key.toLowerCase()).map((fault) => invalid(field, key, fault)),
  );
  const size = entries.reduce((sum, [key, value]) => sum + Buffer.byteLength(key) + Buffer.byteLength(value), 0);
  return size > annotationLimit ? [...causes, tooLong(field, annotationLimit)] : causes;
};

/** An owner reference with its fields in the order Go prints them. */
const ownerText = ({ apiVersion, kind, name, uid, controller, blockOwnerDeletion }: OwnerReference): string =>
  JSON.stringify({ apiVersion, kind, name, uid, controller, blockOwnerDeletion });

const ownersText = ({ ownerReferences = [] }: Metadata): string => `[${ownerReferences.map(ownerText).join(',')}]`;

const ownersPath = 'metadata.ownerReferences';

const ownersFault = (shown: string, detail: string): Cause => ({
  reason: 'FieldValueInvalid',
  field: ownersPath,
  message: `Invalid value: ${shown}: ${detail}`,
});

const neededOfOwner = ['apiVersion', 'kind', 'name', 'uid'] as const;

const oneOwnerCauses = (owner: OwnerReference): Cause[] => [
  ...neededOfOwner
    .filter((field) => (owner[field] ?? '') === '')
    .map((field) =>
      invalid(`${ownersPath}.${field}`, '', field === 'apiVersion' ? 'version must not be empty' : 'must not be empty'),
    ),
  ...(owner.apiVersion === 'v1' && owner.kind === 'Event'
    ? [ownersFault(ownerText(owner), '/v1, Kind=Event is disallowed from being an owner')]
    : []),
];

const ownerCauses = (metadata: Metadata): Cause[] => {
  const owners = metadata.ownerReferences ?? [];
  const controllers = owners.filter(({ controller }) => controller === true).map(({ kind, name }) => `${kind}/${name}`);
  const shared = controllers
    .slice(1)
    .map((other, index) =>
      ownersFault(
        ownersText(metadata),
        `Only one reference can have Controller set to true. Found "true" in references for ${controllers[index] ?? ''} and ${other}`,
      ),
    );
  return [...owners.flatMap(oneOwnerCauses), ...shared];
};

const standardFinalizers = new Set(['foregroundDeletion', 'orphan', 'kubernetes']);

/** Only built-in kinds require a domain: Longhorn's finalizer is `longhorn.io`. */
const finalizerCauses = (metadata: Metadata, needsDomain: boolean): Cause[] => {
  const field = 'metadata.finalizers';
  const finalizers = metadata.finalizers ?? [];
  const causes = finalizers.flatMap((finalizer, index) => [
    ...qualifiedName(finalizer).map((fault) => invalid(field, finalizer, fault)),
    ...(!needsDomain || finalizer.includes('/') || standardFinalizers.has(finalizer)
      ? []
      : [
          invalid(
            indexPath(field, index),
            finalizer,
            'name is neither a standard finalizer name nor is it fully qualified',
          ),
        ]),
  ]);
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    causes.push(invalid(field, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return causes;
};

const namespaceCauses = (metadata: Metadata, namespaced: boolean): Cause[] => {
  const given = metadata.namespace !== undefined && metadata.namespace !== '';
  if (namespaced) return given ? [] : [required('metadata.namespace')];
  return given ? [forbidden('metadata.namespace', 'not allowed on this type')] : [];
};

export interface MetadataRules {
  readonly nameRule: NameRule;
  readonly namespaced: boolean;
  readonly isCustom: boolean;
}

export const validateMetadata = (metadata: Metadata, rules: MetadataRules): Cause[] => [
  ...nameCauses(metadata, rules.nameRule),
  ...namespaceCauses(metadata, rules.namespaced),
  ...labelCauses(metadata.labels, 'metadata.labels'),
  ...annotationCauses(metadata.annotations),
  ...ownerCauses(metadata),
  ...finalizerCauses(metadata, !rules.isCustom),
];

const immutable = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp'] as const;

/** What an update may not change; fields that the server sets were restored before. */
export const validateMetadataUpdate = (metadata: Metadata, old: Metadata): Cause[] => {
  const causes: Cause[] = [];
  if (old.deletionTimestamp !== undefined) {
    const added = (metadata.finalizers ?? []).filter((finalizer) => !(old.finalizers ?? []).includes(finalizer));
    if (added.length > 0) {
      const shown = added.map((finalizer) => `string{"${finalizer}"}`).join(', ');
      causes.push(
        forbidden(
          'metadata.finalizers',
          `no new finalizers can be added if the object is being deleted, found new finalizers []${shown}`,
        ),
      );
    }
  }
  for (const field of immutable) {
    if (!isSame(metadata[field], old[field])) {
      causes.push(invalid(keyOf(field), (metadata[field] ?? null) as Json, 'field is immutable'));
    }
  }
  return causes;
};

const keyOf = (field: string): string => childPath(path, field);
