// The validation of a CustomResourceDefinition, with the messages of kube-apiserver. Called by crds.ts.
import { isSame } from '../objects/equal.ts';
import { type ApiObject, type Fields, fieldsAt, isFields, listAt, textAt } from '../objects/object.ts';
import { type Cause, invalid, notSupported, required } from '../schema/cause.ts';
import { validateCrdSchema } from '../schema/crd-schema.ts';
import type { JsonSchema } from '../schema/json-schema.ts';
import type { Json } from '../schema/json.ts';

const label = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;
const labelMessage =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const mixedMessage = `may have mixed case, but should otherwise match: ${labelMessage}`;

const versionsOf = (crd: ApiObject): Fields[] => listAt(fieldsAt(crd, 'spec'), 'versions');

const schemaOf = (version: Fields): unknown => fieldsAt(version, 'schema')['openAPIV3Schema'];

/** Errors name the schema as the server stores it: at one place when all versions have the same. */
const schemaPath = (versions: readonly Fields[], index: number): string =>
  versions.every((version) => isSame(schemaOf(version), schemaOf(versions[0] ?? {})))
    ? 'spec.validation.openAPIV3Schema'
    : `spec.versions[${index}].schema.openAPIV3Schema`;

const schemaCauses = (versions: readonly Fields[]): Cause[] => {
  const missing = versions.flatMap((version, index) =>
    isFields(schemaOf(version)) ? [] : [required(`spec.versions[${index}].schema.openAPIV3Schema`)],
  );
  if (missing.length > 0) return missing;
  const checked = new Set<string>();
  return versions.flatMap((version, index) => {
    const path = schemaPath(versions, index);
    if (checked.has(path)) return [];
    checked.add(path);
    const schema = schemaOf(version) as JsonSchema;
    if ((schema.type ?? '') === '') return [required(`${path}.type`, 'must not be empty at the root')];
    return validateCrdSchema(schema, path, fieldsAt(version, 'subresources')['status'] !== undefined);
  });
};

/** Versions as Go prints their internal form, which does not include a schema that all versions share. */
const shownVersions = (versions: readonly Fields[]): string => {
  const shared = schemaPath(versions, 0).startsWith('spec.validation');
  return JSON.stringify(
    versions.map((version) => ({
      Name: version['name'] ?? '',
      Served: version['served'] ?? false,
      Storage: version['storage'] ?? false,
      Deprecated: version['deprecated'] ?? false,
      DeprecationWarning: version['deprecationWarning'] ?? null,
      Schema: shared ? null : (version['schema'] ?? null),
      Subresources: null,
      AdditionalPrinterColumns: null,
      SelectableFields: null,
    })),
  );
};

const storageCauses = (crd: ApiObject): Cause[] => {
  const versions = versionsOf(crd);
  const storage = versions
    .filter((version) => version['storage'] === true)
    .map((version) => textAt(version, 'name') ?? '');
  if (storage.length === 1) return [];
  const detail = 'must have exactly one version marked as storage version';
  const many: Cause = {
    reason: 'FieldValueInvalid',
    field: 'spec.versions',
    message: `Invalid value: ${shownVersions(versions)}: ${detail}`,
  };
  if (storage.length === 0) {
    return [many, invalid('status.storedVersions', null, 'must have at least one stored version')];
  }
  return [
    invalid('status.storedVersions', [storage[0] ?? ''], `must have the storage version ${storage.at(-1) ?? ''}`),
    many,
  ];
};

const nameCauses = (crd: ApiObject): Cause[] => {
  const names = fieldsAt(fieldsAt(crd, 'spec'), 'names');
  return (['listKind', 'plural', 'singular', 'kind'] as const).flatMap((field) => {
    const name = textAt(names, field) ?? '';
    const path = `spec.names.${field}`;
    if (name === '') return [required(path)];
    const isKind = field === 'kind' || field === 'listKind';
    if (label.test(isKind ? name.toLowerCase() : name)) return [];
    return [invalid(path, name, isKind ? mixedMessage : labelMessage)];
  });
};

const groupCauses = (crd: ApiObject): Cause[] => {
  const group = textAt(fieldsAt(crd, 'spec'), 'group') ?? '';
  if (group === '') return [required('spec.group')];
  return group.includes('.') ? [] : [invalid('spec.group', group, 'should be a domain with at least one dot')];
};

const scopeCauses = (crd: ApiObject): Cause[] => {
  const scope = textAt(fieldsAt(crd, 'spec'), 'scope') ?? '';
  if (scope === '') return [required('spec.scope')];
  return ['Cluster', 'Namespaced'].includes(scope)
    ? []
    : [notSupported('spec.scope', scope, ['Cluster', 'Namespaced'])];
};

const objectNameCauses = (crd: ApiObject): Cause[] => {
  const spec = fieldsAt(crd, 'spec');
  const expected = `${textAt(fieldsAt(spec, 'names'), 'plural') ?? ''}.${textAt(spec, 'group') ?? ''}`;
  const { name = '' } = crd.metadata;
  return name === expected ? [] : [invalid('metadata.name', name, 'must be spec.names.plural+"."+spec.group')];
};

/** Every error of a definition. */
export const validateDefinition = (crd: ApiObject): Cause[] => [
  ...objectNameCauses(crd),
  ...groupCauses(crd),
  ...scopeCauses(crd),
  ...nameCauses(crd),
  ...storageCauses(crd),
  ...schemaCauses(versionsOf(crd)),
];

/** Immutable fields, and versions that objects may still be stored in. */
export const validateDefinitionUpdate = (crd: ApiObject, old: ApiObject): Cause[] => {
  const [spec, before] = [fieldsAt(crd, 'spec'), fieldsAt(old, 'spec')];
  const names = (of: Fields, field: string) => fieldsAt(of, 'names')[field];
  const fixed = [
    ...['group', 'scope'].map((field) => [`spec.${field}`, spec[field], before[field]] as const),
    ...['kind', 'plural'].map((field) => [`spec.names.${field}`, names(spec, field), names(before, field)] as const),
  ];
  const served = versionsOf(crd).map((version) => version['name']);
  const stored = (fieldsAt(crd, 'status')['storedVersions'] ?? []) as string[];
  return [
    ...fixed
      .filter(([, now, then]) => !isSame(now, then))
      .map(([field, now]) => invalid(field, (now ?? null) as Json, 'field is immutable')),
    ...stored.flatMap((version, index) => {
      if (served.includes(version)) return [];
      const detail = `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`;
      return [invalid(`status.storedVersions[${index}]`, version, detail)];
    }),
  ];
};
