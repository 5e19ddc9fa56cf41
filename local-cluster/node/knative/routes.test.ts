import { describe, expect, it } from 'vitest';
import { type KnativeIngress, backendsOf, isOurs, ingressClass, targetOf } from '#local-cluster/node/knative/routes.ts';

const backend = (serviceName: string, more: object = {}) => ({
  serviceNamespace: 'ns',
  serviceName,
  servicePort: 80,
  ...more,
});

const ingressOf = (hosts: readonly string[], paths: readonly object[]): KnativeIngress => ({
  apiVersion: 'networking.internal.knative.dev/v1alpha1',
  kind: 'Ingress',
  metadata: { name: 'one', namespace: 'ns' },
  spec: { rules: [{ hosts, http: { paths } }] } as KnativeIngress['spec'],
});

const tagged = { headers: { 'Knative-Serving-Tag': { exact: 'next' } }, splits: [backend('next')] };
const split = { splits: [backend('old', { percent: 70 }), backend('new', { percent: 30 })] };
const ingresses = [
  ingressOf(['plain.ns', 'plain.ns.svc.cluster.local'], [{ splits: [backend('plain-1')] }]),
  ingressOf(['split.ns'], [split]),
  ingressOf(['tagged.ns'], [{ splits: [backend('current')] }, tagged]),
  ingressOf(['paths.ns'], [{ splits: [backend('all')] }, { path: '/v1', splits: [backend('first')] }]),
];

describe('a request', () => {
  it.each([
    ['by its host', { host: 'plain.ns' }, 0, 'plain-1'],
    ['by another name of its host', { host: 'plain.ns.svc.cluster.local' }, 0.99, 'plain-1'],
    ['to the first split', { host: 'split.ns' }, 0.69, 'old'],
    ['to the second split', { host: 'split.ns' }, 0.7, 'new'],
    ['without the header that one path asks for', { host: 'tagged.ns' }, 0, 'current'],
    ['with that header', { host: 'tagged.ns', headers: { 'knative-serving-tag': 'next' } }, 0, 'next'],
    ['with another value of it', { host: 'tagged.ns', headers: { 'knative-serving-tag': 'last' } }, 0, 'current'],
    ['by the longest prefix of its path', { host: 'paths.ns', path: '/v1/a' }, 0, 'first'],
    ['of another path', { host: 'paths.ns', path: '/v2' }, 0, 'all'],
    ['of a host that nobody has', { host: 'none.ns' }, 0, undefined],
  ])('is routed %s', (_what, request, dice, expected) => {
    const target = targetOf(ingresses, { path: '/', headers: {}, ...request }, dice);
    expect(target?.serviceName).toBe(expected);
  });

  it('has the headers of its path and of its split', () => {
    const of = (revision: string) => ({ appendHeaders: { 'Knative-Serving-Revision': revision } });
    const path = { appendHeaders: { a: '1' }, splits: [backend('x', of('x-1'))] };
    expect(targetOf([ingressOf(['h'], [path])], { host: 'h', path: '/', headers: {} }, 0)).toEqual({
      ...backend('x'),
      headers: { a: '1', 'Knative-Serving-Revision': 'x-1' },
    });
  });
});

it('backends are those of all splits', () => {
  expect(backendsOf(ingresses[1]!).map(({ serviceName }) => serviceName)).toEqual(['old', 'new']);
});

it.each([
  [ingressClass, true],
  ['kourier.ingress.networking.knative.dev', false],
])('an Ingress of the class %s is ours: %s', (name, expected) => {
  const ingress = ingressOf([], []);
  const annotations = { 'networking.knative.dev/ingress.class': name };
  expect(isOurs({ ...ingress, metadata: { ...ingress.metadata, annotations } })).toBe(expected);
});
