// CustomResourceDefinitions as objects: defaults and status. The resources that they define are in registry/custom.ts.
import { type ApiObject, type Fields, ensureFields, fieldsAt, listAt, setDefault, textAt } from '../objects/object.ts';
import type { Strategy } from '../registry/resource.ts';
import { validateDefinition, validateDefinitionUpdate } from './crd-rules.ts';
import { specChanged, specOf, withStatus } from './define.ts';

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

const storageVersions = (crd: ApiObject): string[] =>
  listAt(specOf(crd), 'versions')
    .filter((version) => version['storage'] === true)
    .map((version) => textAt(version, 'name') ?? '');

/** Versions that objects may be stored in; every former storage version stays until it is removed manually. */
const storedVersions = (crd: ApiObject, before: readonly string[]): string[] => [
  ...new Set([...before, ...storageVersions(crd).slice(0, 1)]),
];

export const crdStrategy: Strategy = withStatus({
  hasGeneration: true,
  defaults,
  prepareCreate: (crd) => {
    const stored = storedVersions(crd, []);
    crd['status'] = { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: stored };
  },
  prepareUpdate: (crd, old) => {
    const before = fieldsAt(old, 'status');
    const stored = Array.isArray(before['storedVersions']) ? (before['storedVersions'] as string[]) : [];
    crd['status'] = { ...before, storedVersions: storedVersions(crd, stored) };
  },
  bumpsGeneration: specChanged,
  validate: validateDefinition,
  validateUpdate: validateDefinitionUpdate,
});
