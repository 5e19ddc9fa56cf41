// Common parts of the cases of `authorization`.
import type { Answer, CaseContext } from '#local-cluster/conformance/suite/case.ts';
import { at, itemsAt, type JsonValue } from '#local-cluster/conformance/suite/json.ts';
import { type Body, create, eventually, grouped } from '#local-cluster/conformance/topics/objects.ts';

export const rbac = 'rbac.authorization.k8s.io/v1';

export const as = (t: CaseContext, user: string) => ({ 'impersonate-user': `${user}-${t.id}` });

export const callAs = (t: CaseContext, user: string, method: string, path: string, body?: unknown): Promise<Answer> =>
  t.call(method, path, { headers: as(t, user), ...(body === undefined ? {} : { body }) });

export const role = (name: string, rules: readonly Body[]): Body => ({
  apiVersion: rbac,
  kind: 'Role',
  metadata: { name },
  rules,
});

export const binding = (name: string, roleRef: Body, subjects: readonly Body[]): Body => ({
  apiVersion: rbac,
  kind: 'RoleBinding',
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...roleRef },
  subjects,
});

export const userOf = (t: CaseContext, user: string): Body => ({
  apiGroup: 'rbac.authorization.k8s.io',
  kind: 'User',
  name: `${user}-${t.id}`,
});

/** Grants a user rules in the case's namespace and waits until they are effective. */
export const grant = async (t: CaseContext, user: string, rules: readonly Body[]): Promise<string> => {
  const ns = await t.namespace();
  await create(t, grouped(rbac, ns, 'roles'), role(user, rules));
  await create(t, grouped(rbac, ns, 'rolebindings'), binding(user, { kind: 'Role', name: user }, [userOf(t, user)]));
  const first = rules[0] ?? {};
  const attributes = {
    namespace: ns,
    verb: itemsAt(first as JsonValue, 'verbs')[0],
    group: itemsAt(first as JsonValue, 'apiGroups')[0],
    resource: itemsAt(first as JsonValue, 'resources')[0],
    name: itemsAt(first as JsonValue, 'resourceNames')[0],
  };
  await eventually(
    'the grant holds',
    () => review(t, user, attributes),
    (status) => at(status, 'allowed') === true,
  );
  return ns;
};

export const review = async (t: CaseContext, user: string, resourceAttributes: Body): Promise<JsonValue> => {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user: `${user}-${t.id}`, resourceAttributes },
  };
  return at(await create(t, '/apis/authorization.k8s.io/v1/subjectaccessreviews', body), 'status');
};

export const configMapRule = (...verbs: readonly string[]): Body => ({
  apiGroups: [''],
  resources: ['configmaps'],
  verbs,
});
