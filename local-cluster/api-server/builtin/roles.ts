// Roles and their bindings.
import { isSame } from '../objects/equal.ts';
import { pathSegment } from '../objects/names.ts';
import { type ApiObject, type Fields, fieldsAt, listAt, textAt, setDefault } from '../objects/object.ts';
import { type Cause, invalid, notSupported, required } from '../schema/cause.ts';
import type { Json } from '../schema/json.ts';
import type { Strategy } from '../registry/resource.ts';
import { plainStrategy } from './define.ts';

const ruleCauses = (role: ApiObject): Cause[] =>
  listAt(role, 'rules').flatMap((rule, index) => {
    const path = `rules[${index}]`;
    const paths = rule['nonResourceURLs'];
    if (!Array.isArray(rule['verbs']) || rule['verbs'].length === 0) {
      return [required(`${path}.verbs`, 'verbs must contain at least one value')];
    }
    if (!Array.isArray(paths) || paths.length === 0 || role.kind === 'ClusterRole') return [];
    return [invalid(`${path}.nonResourceURLs`, paths as Json, 'namespaced rules cannot apply to non-resource URLs')];
  });

export const roleStrategy: Strategy = {
  ...plainStrategy,
  nameRule: pathSegment,
  createsOnUpdate: true,
  validate: ruleCauses,
};

const subjectKinds = ['ServiceAccount', 'User', 'Group'];

const subjectCauses = (binding: ApiObject): Cause[] =>
  listAt(binding, 'subjects').flatMap((subject, index) => {
    const kind = textAt(subject, 'kind') ?? '';
    return subjectKinds.includes(kind) ? [] : [notSupported(`subjects[${index}].kind`, kind, subjectKinds)];
  });

/** The reference as Go prints its internal form. */
const referenceText = (binding: ApiObject): string => {
  const reference = fieldsAt(binding, 'roleRef');
  return JSON.stringify({ APIGroup: reference['apiGroup'], Kind: reference['kind'], Name: reference['name'] });
};

export const bindingStrategy: Strategy = {
  ...plainStrategy,
  nameRule: pathSegment,
  createsOnUpdate: true,
  defaults: (binding) => {
    for (const subject of listAt(binding, 'subjects')) {
      if (subject['kind'] !== 'ServiceAccount') setDefault(subject, 'apiGroup', 'rbac.authorization.k8s.io');
    }
    if (binding['roleRef'] !== undefined)
      setDefault(binding['roleRef'] as Fields, 'apiGroup', 'rbac.authorization.k8s.io');
  },
  validate: subjectCauses,
  validateUpdate: (binding, old) =>
    isSame(binding['roleRef'], old['roleRef'])
      ? []
      : [
          {
            ...invalid('roleRef', null, ''),
            message: `Invalid value: ${referenceText(binding)}: cannot change roleRef`,
          },
        ],
};
