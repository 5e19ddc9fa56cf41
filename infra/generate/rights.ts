// The rights that manifests grant to each service account, one verb on one resource each. Held against what is called by `test/roles`.
import type { GeneratedManifest } from '#infra/generate/manifest.ts';

export interface Right {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Where it holds; left out: everywhere. */
  readonly namespace?: string | undefined;
  /** Objects it holds for; empty: all. */
  readonly names: readonly string[];
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
  readonly resourceNames?: readonly string[];
}

interface Binding extends GeneratedManifest {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly kind: string; readonly name: string }[];
}

/** Every right of every account of ours, each once. Roles that are not among the manifests are Kubernetes' own and left out. */
export const rightsOf = (manifests: readonly GeneratedManifest[]): readonly Right[] => {
  const bindings = manifests.filter(({ kind }) => kind.endsWith('RoleBinding')) as unknown as readonly Binding[];
  const rights = bindings.flatMap(({ metadata, roleRef, subjects }) => {
    const role = manifests.find(
      (one) =>
        one.kind === roleRef.kind &&
        one.metadata.name === roleRef.name &&
        (roleRef.kind === 'ClusterRole' || one.metadata.namespace === metadata.namespace),
    );
    const rules = (role?.['rules'] ?? []) as readonly Rule[];
    const accounts = subjects.filter(({ kind }) => kind === 'ServiceAccount');
    return accounts.flatMap(({ name }) => rules.flatMap((rule) => rightsOfRule(name, metadata.namespace, rule)));
  });
  return [...new Map(rights.map((right) => [describe(right), right])).values()];
};

const rightsOfRule = (account: string, namespace: string | undefined, rule: Rule): readonly Right[] =>
  rule.verbs.flatMap((verb) =>
    rule.apiGroups.flatMap((group) =>
      rule.resources.map((resource) => ({
        account,
        verb,
        group,
        resource,
        namespace,
        names: rule.resourceNames ?? [],
      })),
    ),
  );

/** One line about a right, such as `cron-tick: patch events`. */
export const describe = ({ account, verb, group, resource, namespace, names }: Right): string => {
  const of = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return `${account}: ${verb} ${of}${names.length === 0 ? '' : ` (${names.join(', ')})`}${where}`;
};
