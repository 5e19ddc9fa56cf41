// CustomResourceDefinitions as objects: defaults, validation, names. What they bring to life is in registry/custom.ts.
import { type Cause, forbidden, invalid, required } from '../schema/cause.ts';
import { isSame } from '../objects/equal.ts';
import { type ApiObject, type Fields, ensureFields, fieldsAt, listAt, setDefault, textAt } from '../objects/object.ts';
import type { Json } from '../schema/json.ts';
import type { Strategy } from '../registry/resource.ts';
import { specChanged, specOf, withStatus } from './strategy.ts';

const defaultNames = (names: Fields): void => {
  const kind = textAt(names, 'kind') ?? '';
  setDefault(names, 'singular', kind.toLowerCase());
  setDefault(names, 'listKind', `${kind}List`);
};

const defaults = (crd: ApiObject): void => {
  const spec = ensureFields(crd, 'spec');
  setDefault(spec, 'conversion', { strategy: 'None' });
  defaultNames(ensureFields(spec, 'names'));
};

const storageVersion = (crd: ApiObject): string =>
  textAt(listAt(specOf(crd), 'versions').find((version) => version['storage'] === true) ?? {}, 'name') ?? '';

const schemaCauses = (version: Fields, path: string): Cause[] => {
  const schema = fieldsAt(fieldsAt(version, 'schema'), 'openAPIV3Schema');
  if (version['schema'] === undefined || Object.keys(fieldsAt(version, 'schema')).length === 0) {
    return [required(`${path}.schema.openAPIV3Schema`, 'schemas are required')];
  }
  if (schema['type'] === undefined || schema['type'] === '') {
    return [required(`${path}.schema.openAPIV3Schema.type`, 'must not be empty at the root')];
  }
  return schema['type'] === 'object'
    ? []
    : [invalid(`${path}.schema.openAPIV3Schema.type`, schema['type'] as Json, 'must be object at the root')];
};

const nameCauses = (crd: ApiObject): Cause[] => {
  const spec = specOf(crd);
  const names = fieldsAt(spec, 'names');
  const causes: Cause[] = [];
  for (const field of ['plural', 'singular', 'kind', 'listKind']) {
    if ((textAt(names, field) ?? '') === '') causes.push(required(`spec.names.${field}`));
  }
  const expected = `${textAt(names, 'plural') ?? ''}.${textAt(spec, 'group') ?? ''}`;
  if (crd.metadata.name !== expected) {
    causes.push(invalid('metadata.name', crd.metadata.name ?? '', 'must be spec.names.plural+"."+spec.group'));
  }
  return causes;
};

const versionCauses = (crd: ApiObject): Cause[] => {
  const versions = listAt(specOf(crd), 'versions');
  const stored = versions.filter((version) => version['storage'] === true);
  const causes = versions.flatMap((version, index) => schemaCauses(version, `spec.versions[${index}]`));
  if (stored.length !== 1) {
    causes.push(
      invalid(
        'spec.versions',
        specOf(crd)['versions'] as Json,
        'must have exactly one version marked as storage version',
      ),
    );
  }
  return causes;
};

const scopeCauses = (crd: ApiObject): Cause[] => {
  const scope = textAt(specOf(crd), 'scope') ?? '';
  if (scope === '') return [required('spec.scope')];
  if (scope === 'Cluster' || scope === 'Namespaced') return [];
  return [
    {
      reason: 'FieldValueNotSupported',
      field: 'spec.scope',
      message: `Unsupported value: "${scope}": supported values: "Cluster", "Namespaced"`,
    },
  ];
};

const groupCauses = (crd: ApiObject): Cause[] => {
  const group = textAt(specOf(crd), 'group') ?? '';
  if (group === '') return [required('spec.group')];
  return group.includes('.') ? [] : [invalid('spec.group', group, 'should be a domain with at least one dot')];
};

/** Versions that objects may still be stored under; one that was ever the storage version stays until it is removed by hand. */
const storedVersions = (crd: ApiObject, before: readonly string[]): string[] => {
  const current = storageVersion(crd);
  return before.includes(current) ? [...before] : [...before, current];
};

export const crdStrategy: Strategy = withStatus({
  hasGeneration: true,
  defaults,
  prepareCreate: (crd) => {
    crd['status'] = {
      conditions: null,
      acceptedNames: { plural: '', kind: '' },
      storedVersions: [storageVersion(crd)],
    };
  },
  prepareUpdate: (crd, old) => {
    const before = fieldsAt(old, 'status');
    const stored = Array.isArray(before['storedVersions']) ? (before['storedVersions'] as string[]) : [];
    crd['status'] = { ...before, storedVersions: storedVersions(crd, stored) };
  },
  bumpsGeneration: specChanged,
  validate: (crd) => [...nameCauses(crd), ...groupCauses(crd), ...scopeCauses(crd), ...versionCauses(crd)],
  validateUpdate: (crd, old) => {
    const [spec, before] = [specOf(crd), specOf(old)];
    const fixed = ['group', 'scope'].filter((field) => !isSame(spec[field], before[field]));
    const causes = fixed.map((field) => invalid(`spec.${field}`, (spec[field] ?? null) as Json, 'field is immutable'));
    const served = listAt(spec, 'versions').map((version) => version['name']);
    const stored = (fieldsAt(crd, 'status')['storedVersions'] ?? []) as string[];
    stored.forEach((version, index) => {
      if (!served.includes(version)) {
        causes.push(
          invalid(
            `status.storedVersions[${index}]`,
            version,
            `missing from spec.versions; ${version} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in ${version} and removes ${version} from status.storedVersions`,
          ),
        );
      }
    });
    if (!isSame(fieldsAt(spec, 'names')['plural'], fieldsAt(before, 'names')['plural'])) {
      causes.push(forbidden('spec.names.plural', 'field is immutable'));
    }
    return causes;
  },
});
