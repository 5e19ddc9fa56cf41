// Who may open connections to our pods, and where these may go. Called by kustomize.ts for the component `network-policies`.
import { apiServicePort } from '#infra/generate/apis.ts';
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { admissionFunctions, transferFunction } from '#infra/generate/wiring.ts';
import { longhornApiPort, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { downloadPort, uploadPort } from '#shared/populate/sources/upload.ts';

/** Ports of queue-proxy that take requests: plain, HTTP/2 and TLS. */
const queueProxyPorts = [8012, 8013, 8112];
/** Its metrics: what the autoscaler reads, and how many requests there were, which Prometheus reads from wherever it runs. */
const metricsPorts = { autoscaler: 9090, requests: 9091 } as const;

const namespaces = (...names: readonly string[]): object => ({
  namespaceSelector: {
    matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'In', values: names }],
  },
});

export const tcp = (...ports: readonly number[]): readonly object[] => ports.map((port) => ({ protocol: 'TCP', port }));

/** Where a node keeps answers for its own pods, as NodeLocal DNSCache does; it is in no namespace. */
const nodeDns = { ipBlock: { cidr: '169.254.20.10/32' } };

export const dns = {
  to: [namespaces('kube-system', 'openshift-dns'), nodeDns],
  ports: [53, 5353].flatMap((port) => ['UDP', 'TCP'].map((protocol) => ({ protocol, port }))),
};
/** No selector reaches the API server: it is no pod. The ports keep the rest away. */
export const apiServer = { ports: tcp(443, 6443) };
/** The Broker's ingress, which is reached on the port of its pods. */
const brokerDoor = { to: [namespaces('knative-eventing')], ports: tcp(80, 443, 8080, 8443) };

export const policy = (name: string, spec: object): GeneratedManifest => ({
  apiVersion: 'networking.k8s.io/v1',
  kind: 'NetworkPolicy',
  metadata: { name, namespace: systemNamespace, labels: partOf('network') },
  spec,
});

/** Nothing comes in or goes out but what another policy allows. */
const nothing = policy('default-deny', { podSelector: {}, policyTypes: ['Ingress', 'Egress'] });

/** Where Knative's activator and Eventing are, and gateways that reach functions from inside the cluster; OpenShift has its own place for them. */
const senders = [
  'knative-serving',
  'knative-eventing',
  'kourier-system',
  'knative-serving-ingress',
  'istio-system',
  'contour-internal',
];
/** The gateway through which people come, where it is another one. */
const outsideGateways = ['contour-external'];

/** Events come through Knative's activator, its gateway or straight from Eventing; metrics are fetched by its autoscaler. */
const toFunctions = policy('functions', {
  podSelector: { matchExpressions: [{ key: 'serving.knative.dev/service', operator: 'Exists' }] },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [
    { from: [namespaces(...senders)], ports: tcp(...queueProxyPorts) },
    { from: [namespaces('knative-serving')], ports: tcp(metricsPorts.autoscaler) },
    { ports: tcp(metricsPorts.requests) },
  ],
  egress: [dns, apiServer, brokerDoor],
});

/** Those that ask sources for new versions, wherever these are. Addresses that must not be asked are refused by the function itself. */
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

/** The API server calls from an address of its own, which no selector reaches. */
const admission = policy('admission', {
  podSelector: { matchLabels: partOf('admission') },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ ports: tcp(...admissionFunctions.map(({ port }) => port)) }],
  egress: [dns, apiServer],
});

/** People come to it. Bytes go to and come from the pods that have the volumes mounted, in whatever namespace these are, and Longhorn. */
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

/** The API server asks for tokens from an address of its own, as it asks admission. */
const tokens = policy('tokens', {
  podSelector: { matchLabels: partOf(transferFunction.apiService) },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ ports: tcp(apiServicePort) }],
  egress: [dns, apiServer],
});

export const buildNetworkPolicies = (): readonly GeneratedManifest[] => [
  nothing,
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
