// Network policies: allowed connections to and from our pods. Called by kustomize.ts for the component `network-policies`.
import { apiServicePort } from '#infra/generate/apis.ts';
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { admissionFunctions, consoleFunction, transferFunction } from '#infra/generate/wiring.ts';
import { longhornApiPort, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { downloadPort, uploadPort } from '#shared/populate/sources/upload.ts';

/** Ports of queue-proxy for requests: plain, HTTP/2 and TLS. */
const queueProxyPorts = [8012, 8013, 8112];
/** Ports of its metrics: for the autoscaler, and request metrics for Prometheus in any namespace. */
const metricsPorts = { autoscaler: 9090, requests: 9091 } as const;

const namespaces = (...names: readonly string[]): object => ({
  namespaceSelector: {
    matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: names }],
  },
});

export const tcp = (...ports: readonly number[]): readonly object[] => ports.map((port) => ({ protocol: 'TCP', port }));

/** The DNS cache of a node, as in NodeLocal DNSCache; it is in no namespace. */
const nodeDns = { ipBlock: { cidr: '169.254.20.10/32' } };

export const dns = {
  to: [namespaces('kube-system', 'openshift-dns'), nodeDns],
  ports: [53, 5353].flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port }))),
};
/** The API server is not a pod, so no selector matches it. The ports exclude everything else. */
export const apiServer = { ports: tcp(443, 6443) };
/** The Broker's ingress, on the port of its pods. */
const brokerDoor = { to: [namespaces('knative-eventing')], ports: tcp(80, 443, 8080, 8443) };

export const policy = (name: string, spec: object): GeneratedManifest => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: systemNamespace, labels: partOf('network') },
  spec,
});

/** Denies everything that no other policy allows. */
export const denyAll = policy('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] });

/** Namespaces of Knative's activator and Eventing, and of gateways inside the cluster; OpenShift has its own. */
const senders = [
  'knative-serving',
  'knative-eventing',
  'kourier-system',
  'knative-serving-ingress',
  'istio-system',
  'contour-internal',
];
/** The gateway for external clients, if it is a separate one. */
const outsideGateways = ['contour-external'];

/** Events come from Knative's activator, its gateway or directly from Eventing; its autoscaler scrapes metrics. */
const requests = (from: readonly string[]): readonly object[] => [
  { from: [namespaces(...from)], ports: tcp(...queueProxyPorts) },
  { from: [namespaces('knative-serving')], ports: tcp(metricsPorts.autoscaler) },
  { ports: tcp(metricsPorts.requests) },
];

const toFunctions = policy('functions', {
  podSelector: { matchExpressions: [{ key: 'serving.knative.dev/service', operator: 'Exists' }] },
  policyTypes: ['Ingress', 'Egress'],
  ingress: requests(senders),
  egress: [dns, apiServer, brokerDoor],
});

/** Functions that poll sources, at any address. The function itself rejects forbidden addresses. */
const polls = policy('polls', {
  podSelector: {
    matchExpressions: [
      {
        key: 'serving.knative.dev/service',
        operator: 'In',
        values: eventFunctions.filter((fn) => fn.polls || fn.asksStores === true).map(({ name }) => name),
      },
    ],
  },
  policyTypes: ['Egress'],
  egress: [{}],
});

/** The API server calls from an address that no selector matches. */
const admission = policy('admission', {
  podSelector: { matchLabels: partOf('admission') },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ ports: tcp(...admissionFunctions.map(({ port }) => port)) }],
  egress: [dns, apiServer],
});

/** Called by external clients. It connects to the pods with the volumes, in any namespace, and to Longhorn. */
const transfers = policy('transfers', {
  podSelector: {
    matchExpressions: [{ key: 'serving.knative.dev/service', operator: 'In', values: [transferFunction.name] }],
  },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ from: [namespaces(...outsideGateways)], ports: tcp(...queueProxyPorts) }],
  egress: [
    { ports: tcp(uploadPort, downloadPort) },
    { to: [namespaces(longhornNamespace)], ports: tcp(longhornApiPort) },
  ],
});

/** The API server requests tokens from an address that no selector matches, as for admission. */
const tokens = policy('tokens', {
  podSelector: { matchLabels: partOf(transferFunction.apiService) },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ ports: tcp(apiServicePort) }],
  egress: [dns, apiServer],
});

/** People call it; it asks the API server alone. Part of its component, and whole without the other policies. */
export const buildConsolePolicy = (): GeneratedManifest =>
  policy(consoleFunction.name, {
    podSelector: { matchLabels: { 'serving.knative.dev/service': consoleFunction.name } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: requests([...senders, ...outsideGateways]),
    egress: [dns, apiServer],
  });

export const buildNetworkPolicies = (): readonly GeneratedManifest[] => [
  denyAll,
  toFunctions,
  polls,
  admission,
  transfers,
  tokens,
  policy('sources', {
    podSelector: {
      matchExpressions: [{ key: 'eventing.knative.dev/source', operator: 'Exists' }],
    },
    policyTypes: ['Egress'],
    egress: [dns, apiServer, brokerDoor],
  }),
];
