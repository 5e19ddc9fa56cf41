import { expect, it } from 'vitest';
import { buildNetworkPolicies } from '#infra/generate/network.ts';

interface NetworkPolicy {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly podSelector: { readonly matchExpressions?: readonly { readonly values?: readonly string[] }[] };
    readonly egress?: readonly object[];
    readonly ingress?: readonly { readonly from?: unknown; readonly ports?: readonly { readonly port: number }[] }[];
  };
}

it('Prometheus reaches what it is told to read of functions, from wherever it runs, and nothing else of them', () => {
  const policies = buildNetworkPolicies() as readonly unknown[] as readonly NetworkPolicy[];
  const { ingress = [] } = policies.find(({ metadata }) => metadata.name === 'functions')!.spec;
  const open = ingress.filter(({ from }) => from === undefined).flatMap(({ ports = [] }) => ports);
  // `http-usermetric` of queue-proxy, which the PodMonitor of the component `monitoring` names.
  expect(open.map(({ port }) => port)).toEqual([9091]);
});

it('functions that ask registries, web servers or object stores themselves reach them, and no others do', () => {
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
