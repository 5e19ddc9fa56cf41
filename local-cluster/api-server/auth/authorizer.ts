// Decides whether a user may do something, from the roles and bindings in the store.
import { type ApiObject, type Fields, fieldsAt, listAt, toText } from '../objects/object.ts';
import type { Store } from '../store/store.ts';
import { type User, isSuperuser } from './user.ts';

/** The requested action: on a resource, or (path) on a URL outside of the API. */
export interface Action {
  readonly verb: string;
  readonly group?: string;
  readonly version?: string;
  readonly plural?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly path?: string;
}

export interface Decision {
  readonly allowed: boolean;
  /** The reason, for access reviews. */
  readonly reason: string;
}

export interface Authorizer {
  readonly decide: (user: User, action: Action) => Decision;
  /** All rules that apply to the user in a namespace. */
  readonly rulesFor: (user: User, namespace: string) => readonly Fields[];
}

const rbac = 'rbac.authorization.k8s.io';

/** Maximum number of users and namespaces whose grants are cached. */
const mostKnown = 1_000;

const strings = (value: unknown): readonly string[] => (Array.isArray(value) ? (value as string[]) : []);

const isIn = (list: unknown, value: string): boolean => strings(list).includes('*') || strings(list).includes(value);

const matchesResource = (rule: Fields, action: Action): boolean => {
  const plural = action.plural ?? '';
  const full = (action.subresource ?? '') === '' ? plural : `${plural}/${action.subresource ?? ''}`;
  const resources = strings(rule['resources']);
  const named = resources.some(
    (item) =>
      item === '*' || item === full || ((action.subresource ?? '') !== '' && item === `*/${action.subresource ?? ''}`),
  );
  const names = strings(rule['resourceNames']);
  return (
    named && isIn(rule['apiGroups'], action.group ?? '') && (names.length === 0 || names.includes(action.name ?? ''))
  );
};

const matchesPath = (rule: Fields, path: string): boolean =>
  strings(rule['nonResourceURLs']).some(
    (item) => item === '*' || item === path || (item.endsWith('*') && path.startsWith(item.slice(0, -1))),
  );

const allows = (rule: Fields, action: Action): boolean =>
  isIn(rule['verbs'], action.verb) &&
  (action.path === undefined ? matchesResource(rule, action) : matchesPath(rule, action.path));

const isSubject = (subject: Fields, user: User, namespace: string): boolean => {
  switch (subject['kind']) {
    case 'User':
      return subject['name'] === user.username;
    case 'Group':
      return user.groups.includes(toText(subject['name']));
    case 'ServiceAccount': {
      const of = toText(subject['namespace'], namespace);
      return user.username === `system:serviceaccount:${of}:${toText(subject['name'])}`;
    }
    default:
      return false;
  }
};

interface Grant {
  readonly rule: Fields;
  readonly reason: string;
}

export const createAuthorizer = (store: Store, enabled: boolean): Authorizer => {
  const all = (plural: string, namespace?: string): ApiObject[] =>
    store.page({ collection: `${plural}.${rbac}`, namespace, limit: 10_000 }).entries.map((entry) => entry.object());

  const rulesOf = (binding: ApiObject): Fields[] => {
    const reference = fieldsAt(binding, 'roleRef');
    const isCluster = reference['kind'] === 'ClusterRole';
    const role = store.get({
      collection: `${isCluster ? 'clusterroles' : 'roles'}.${rbac}`,
      namespace: isCluster ? '' : (binding.metadata.namespace ?? ''),
      name: toText(reference['name']),
    });
    return role === undefined ? [] : effectiveRules(role.object());
  };

  /** An aggregated role has the rules of the roles it selects, in addition to its own. */
  const effectiveRules = (role: ApiObject): Fields[] => {
    const selectors = listAt(fieldsAt(role, 'aggregationRule'), 'clusterRoleSelectors');
    if (selectors.length === 0) return listAt(role, 'rules');
    const selected = all('clusterroles').filter((other) =>
      selectors.some((selector) =>
        Object.entries(fieldsAt(selector, 'matchLabels')).every(
          ([key, value]) => other.metadata.labels?.[key] === value,
        ),
      ),
    );
    return [
      ...listAt(role, 'rules'),
      ...selected.filter((other) => other.metadata.name !== role.metadata.name).flatMap(effectiveRules),
    ];
  };

  const grantsOf = (user: User, binding: ApiObject): Grant[] => {
    const namespace = binding.metadata.namespace ?? '';
    const subject = listAt(binding, 'subjects').find((item) => isSubject(item, user, namespace));
    if (subject === undefined) return [];
    const role = fieldsAt(binding, 'roleRef');
    const who = `${toText(subject['kind'])} "${toText(subject['name'])}${subject['kind'] === 'ServiceAccount' ? `/${toText(subject['namespace'], namespace)}` : ''}"`;
    const name = namespace === '' ? (binding.metadata.name ?? '') : `${binding.metadata.name ?? ''}/${namespace}`;
    const reason = `RBAC: allowed by ${binding.kind} "${name}" of ${toText(role['kind'])} "${toText(role['name'])}" to ${who}`;
    return rulesOf(binding).map((rule) => ({ rule, reason }));
  };

  const readGrants = (user: User, namespace: string): readonly Grant[] => [
    ...all('clusterrolebindings').flatMap((binding) => grantsOf(user, binding)),
    ...(namespace === '' ? [] : all('rolebindings', namespace).flatMap((binding) => grantsOf(user, binding))),
  ];

  /** By user and namespace, until any role or binding changes: they are needed for each request, and change rarely. */
  const known = new Map<string, readonly Grant[]>();
  for (const plural of ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'])
    store.subscribe(`${plural}.${rbac}`, () => known.clear());
  const grants = (user: User, namespace: string): readonly Grant[] => {
    const key = JSON.stringify([user.username, user.groups, namespace]);
    const found = known.get(key) ?? readGrants(user, namespace);
    if (known.size >= mostKnown) known.clear();
    known.set(key, found);
    return found;
  };

  return {
    decide: (user, action) => {
      if (!enabled || isSuperuser(user)) return { allowed: true, reason: '' };
      const grant = grants(user, action.namespace ?? '').find(({ rule }) => allows(rule, action));
      return grant === undefined ? { allowed: false, reason: '' } : { allowed: true, reason: grant.reason };
    },
    rulesFor: (user, namespace) =>
      isSuperuser(user)
        ? [
            { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
            { verbs: ['*'], nonResourceURLs: ['*'] },
          ]
        : grants(user, namespace).map(({ rule }) => rule),
  };
};
