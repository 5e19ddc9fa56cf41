// A user cannot grant permissions that they do not have, unless they have the verb escalate.
import type { Call } from '../handlers/call.ts';
import { type ApiObject, type Fields, fieldsAt, listAt } from '../objects/object.ts';
import { forbidden } from '../status/status.ts';

const group = 'rbac.authorization.k8s.io';

const strings = (value: unknown): readonly string[] => (Array.isArray(value) ? value.map(String) : []);

const covers = (have: readonly string[], want: readonly string[]): boolean =>
  have.includes('*') || want.every((item) => have.includes(item));

const isCovered = (want: Fields, have: Fields): boolean =>
  ['verbs', 'apiGroups', 'resources', 'nonResourceURLs'].every((field) =>
    covers(strings(have[field]), strings(want[field])),
  ) &&
  (strings(have['resourceNames']).length === 0 ||
    covers(strings(have['resourceNames']), strings(want['resourceNames'])));

/** A rule split into its smallest parts, so that several rules together can cover it. */
const atoms = (rule: Fields): Fields[] =>
  strings(rule['verbs']).flatMap((verb) => [
    ...strings(rule['nonResourceURLs']).map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
    ...strings(rule['apiGroups']).flatMap((apiGroup) =>
      strings(rule['resources']).map((resource) => ({
        verbs: [verb],
        apiGroups: [apiGroup],
        resources: [resource],
        ...(rule['resourceNames'] === undefined ? {} : { resourceNames: rule['resourceNames'] }),
      })),
    ),
  ]);

const quoted = (value: unknown): string =>
  `[${strings(value)
    .map((item) => JSON.stringify(item))
    .join(' ')}]`;

const shown: readonly (readonly [string, string])[] = [
  ['apiGroups', 'APIGroups'],
  ['resources', 'Resources'],
  ['resourceNames', 'ResourceNames'],
  ['nonResourceURLs', 'NonResourceURLs'],
  ['verbs', 'Verbs'],
];

const ruleText = (rule: Fields): string =>
  `{${shown
    .filter(([field]) => rule[field] !== undefined)
    .map(([field, name]) => `${name}:${quoted(rule[field])}`)
    .join(', ')}}`;

const mayEscalate = (call: Call, verb: string): boolean =>
  call.api.authorizer.decide(call.user, { ...call.path, verb }).allowed;

const refuseMissing = (call: Call, object: ApiObject, rules: readonly Fields[]): void => {
  const held = call.api.authorizer.rulesFor(call.user, call.path.namespace);
  const missing = rules.flatMap(atoms).filter((rule) => !held.some((have) => isCovered(rule, have)));
  if (missing.length === 0) return;
  const groups = call.user.groups.map((name) => JSON.stringify(name)).join(' ');
  const list = missing.map(ruleText).join('\n');
  throw forbidden(
    call.resource,
    object.metadata.name ?? '',
    `user "${call.user.username}" (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${list}`,
  );
};

const roleOf = (call: Call, binding: ApiObject): ApiObject | undefined => {
  const reference = fieldsAt(binding, 'roleRef');
  const isCluster = reference['kind'] === 'ClusterRole';
  const plural = isCluster ? 'clusterroles' : 'roles';
  const name = String(reference['name'] as string);
  return call.api.strategies().find(`${plural}.${group}`, isCluster ? '' : call.path.namespace, name);
};

/** Throws a 403 for a role or binding that grants more than its author has. */
export const checkEscalation = (call: Call, object: ApiObject): void => {
  if (call.resource.group !== group) return;
  const { kind } = call.resource;
  if (kind === 'Role' || kind === 'ClusterRole') {
    if (!mayEscalate(call, 'escalate')) refuseMissing(call, object, listAt(object, 'rules'));
    return;
  }
  const role = roleOf(call, object);
  if (role !== undefined && !mayEscalate(call, 'bind')) refuseMissing(call, object, listAt(role, 'rules'));
};
