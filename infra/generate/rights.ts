// The permissions that manifests grant to each service account, one verb on one resource each. Compared with actual calls by `test/roles`.
import type { GeneratedManifest } from '#infra/generate/manifest.ts';

export interface Right {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
  /** Namespace. Default: all. */
  readonly namespace?: string | undefined;
  /** Names of objects; empty: all. */
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

const isBinding = (manifest: GeneratedManifest): manifest is Binding => manifest.kind.endsWith('RoleBinding');

/** Every permission of our accounts, without duplicates. Roles that are not among the manifests belong to Kubernetes and are skipped. */
export const rightsOf = (manifests: readonly GeneratedManifest[]): readonly Right[] => {
  const rights = manifests.filter(isBinding).flatMap(({ metadata, roleRef, subjects }) => {
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

/** A permission on one line, such as `cron-tick: patch events`. */
export const describe = ({ account, verb, group, resource, namespace, names }: Right): string => {
  const of = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return `${account}: ${verb} ${of}${names.length === 0 ? '' : ` (${names.join(', ')})`}${where}`;
};
