// The rights that manifests grant to each service account, one verb on one resource each, and which of them a set of calls needed.
import type { Manifest } from '#infra/generate/manifest.ts';
import type { AccountCall } from '#test/roles/calls.ts';
import { systemNamespace } from '#shared/api/names.ts';

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

interface Binding extends Manifest {
  readonly roleRef: { readonly kind: string; readonly name: string };
  readonly subjects: readonly { readonly name: string; readonly namespace: string }[];
}

/** Every right of every account of ours, each once. Roles that are not among the manifests are Kubernetes' own and left out. */
export const rightsOf = (manifests: readonly Manifest[]): readonly Right[] => {
  const bindings = manifests.filter(({ kind }) => kind.endsWith('RoleBinding')) as unknown as readonly Binding[];
  const rights = bindings.flatMap(({ metadata, roleRef, subjects }) => {
    const role = manifests.find(
      (one) =>
        one.kind === roleRef.kind &&
        one.metadata.name === roleRef.name &&
        (roleRef.kind === 'ClusterRole' || one.metadata.namespace === metadata.namespace),
    );
    const rules = (role?.['rules'] ?? []) as readonly Rule[];
    return subjects.flatMap(({ name }) => rules.flatMap((rule) => rightsOfRule(name, metadata.namespace, rule)));
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

/** Whether a call is let through by a right, whoever has it. */
export const covers = (right: Right, call: AccountCall): boolean =>
  right.verb === call.verb &&
  right.group === call.group &&
  right.resource === call.resource &&
  (right.namespace === undefined || right.namespace === call.namespace) &&
  (right.names.length === 0 || right.names.includes(call.name));

/** One line about a right, such as `cron-tick: patch events`. */
export const describe = ({ account, verb, group, resource, namespace, names }: Right): string => {
  const of = group === '' ? resource : `${resource}.${group}`;
  const where = namespace === undefined ? '' : ` in ${namespace}`;
  return `${account}: ${verb} ${of}${names.length === 0 ? '' : ` (${names.join(', ')})`}${where}`;
};

/** What was called without a right that lets it through. A server refuses that; owner references alone slip through where it does not look. */
export const missing = (rights: readonly Right[], calls: readonly AccountCall[]): readonly string[] =>
  calls
    .filter((call) => !rights.some((right) => right.account === call.account && covers(right, call)))
    .map((call) =>
      describe({ ...call, namespace: call.namespace === systemNamespace ? call.namespace : undefined, names: [] }),
    );

/**
 * What is granted and was never called. Accounts of one group run the same code on whichever of them an event reaches first: what several of
 * them are granted is needed when one of them calls it.
 */
export const unused = (
  rights: readonly Right[],
  calls: readonly AccountCall[],
  group: readonly string[],
): readonly string[] => {
  const keyOf = (right: Right) => describe({ ...right, account: '' });
  const holders = Map.groupBy(
    rights.filter(({ account }) => group.includes(account)),
    keyOf,
  );
  const callersOf = (right: Right): readonly string[] =>
    group.includes(right.account) ? (holders.get(keyOf(right)) ?? []).map(({ account }) => account) : [right.account];
  return rights
    .filter((right) => !calls.some((call) => callersOf(right).includes(call.account) && covers(right, call)))
    .map(describe);
};
