import { expect, it } from 'vitest';
import { TransferConfig } from '#functions/transfer/config.ts';
import { buildNetworkPolicies } from '#infra/generate/network.ts';
import { parseConfig } from '#shared/runtime/config.ts';

interface NetworkPolicy {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly podSelector: { readonly matchExpressions?: readonly { readonly values?: readonly string[] }[] };
    readonly egress?: readonly object[];
    readonly ingress?: readonly { readonly from?: unknown; readonly ports?: readonly { readonly port: number }[] }[];
  };
}

it('Prometheus can reach the metrics ports of functions from any namespace, and no other port', () => {
  const policies = buildNetworkPolicies() as readonly unknown[] as readonly NetworkPolicy[];
  const { ingress = [] } = policies.find(({ metadata }) => metadata.name === 'functions')!.spec;
  const open = ingress.filter(({ from }) => from === undefined).flatMap(({ ports = [] }) => ports);
  // `http-usermetric` of queue-proxy, which the PodMonitor of the component `monitoring` names.
  expect(open.map(({ port }) => port)).toEqual([9091]);
});

it('functions that connect to registries, web servers or object stores can reach them, and no other function can', () => {
  const policies = buildNetworkPolicies() as readonly unknown[] as readonly NetworkPolicy[];
  const open = policies
    .filter(({ spec }) => spec.egress?.some((rule) => Object.keys(rule).length === 0))
    .flatMap(({ spec }) => spec.podSelector.matchExpressions?.flatMap(({ values = [] }) => values) ?? []);
  expect(open.filter((name) => name !== 'transfer-job').toSorted()).toEqual([
    'backup-metadata',
    'cron-tick',
    'import-object',
    'initialize',
  ]);
});

interface Peer {
  readonly namespaceSelector: { readonly matchExpressions: readonly { readonly values: readonly string[] }[] };
}
interface Rule {
  readonly from?: readonly Peer[];
  readonly to?: readonly Peer[];
  readonly ports?: readonly { readonly port: number }[];
}
const ruleOf = (name: string, way: 'ingress' | 'egress'): readonly Rule[] => {
  const policies = buildNetworkPolicies() as readonly unknown[] as readonly NetworkPolicy[];
  return (policies.find(({ metadata }) => metadata.name === name)?.spec[way] ?? []) as readonly Rule[];
};
const namespacesOf = (peers: readonly Peer[] = []): readonly string[] =>
  peers.flatMap(({ namespaceSelector }) => namespaceSelector.matchExpressions.flatMap(({ values }) => values));

it.each(['kourier-system', 'knative-serving-ingress', 'istio-system', 'contour-internal', 'knative-serving'])(
  'events from Knative reach functions through %s',
  (namespace) => {
    const [events] = ruleOf('functions', 'ingress');
    expect(namespacesOf(events?.from)).toContain(namespace);
    expect(events?.ports?.map(({ port }) => port)).toContain(8012);
  },
);

it('users can reach the transfer function through a separate Contour gateway, and no other function', () => {
  expect(ruleOf('transfers', 'ingress').flatMap(({ from }) => namespacesOf(from))).toEqual(['contour-external']);
  expect(ruleOf('functions', 'ingress').flatMap(({ from }) => namespacesOf(from))).not.toContain('contour-external');
});

it('the transfer function can reach Longhorn at its default address unless another one is configured', () => {
  const { hostname, port } = new URL(parseConfig(TransferConfig, {}).longhornUrl);
  const [, namespace = ''] = hostname.split('.');
  const way = ruleOf('transfers', 'egress').find(({ to }) => namespacesOf(to).includes(namespace));
  expect(way?.ports?.map((one) => String(one.port))).toEqual([port]);
});
