// The exporter and its monitors, for the component `monitoring`: it requires the kinds of the Prometheus operator, which a cluster may not
// have.
import { grant, grantInOwn, rule } from '#infra/generate/rbac.ts';
import { probesAt, restricted } from '#infra/generate/services.ts';
import { type GeneratedManifest, functionsImage, partOf, settingsFrom } from '#infra/generate/manifest.ts';
import { eventFunctions } from '#infra/generate/event-functions.ts';
import { apiServer, dns, policy, tcp } from '#infra/generate/network.ts';
import { metricsFunction, transferFunction } from '#infra/generate/wiring.ts';
import { deployments } from '#shared/api/foreign/kubernetes.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { listings } from '#shared/metrics/collect.ts';

const { name } = metricsFunction;
const port = 8080;
const metadata = { name, namespace: systemNamespace, labels: partOf(name) };

/** It has only read access to what it counts. */
export const buildMetricsAccess = (): readonly GeneratedManifest[] => [
  ...grant(
    name,
    listings.map(({ type }) => rule(type, ['list'])),
  ),
  ...grantInOwn(name, [rule(deployments, ['get'])]),
];

/** One replica is enough: an outage causes only a gap, and an alert. */
const deployment: GeneratedManifest = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata,
  spec: {
    replicas: 1,
    selector: { matchLabels: partOf(name) },
    template: {
      metadata: { labels: partOf(name) },
      spec: {
        serviceAccountName: name,
        enableServiceLinks: false,
        containers: [
          {
            name,
            ...functionsImage,
            ...settingsFrom,
            args: [name],
            env: [{ name: 'HOST', value: '0.0.0.0' }],
            ports: [{ name: 'metrics', containerPort: port }],
            ...probesAt({ port }),
            resources: { requests: { cpu: '10m', memory: '64Mi' }, limits: { memory: '256Mi' } },
            securityContext: restricted,
          },
        ],
      },
    },
  },
};

const service: GeneratedManifest = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata,
  spec: { selector: partOf(name), ports: [{ name: 'metrics', port, targetPort: 'metrics' }] },
};

/** With our own labels: `namespace` is that of an image, not of the exporter. */
export const serviceMonitor: GeneratedManifest = {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'ServiceMonitor',
  metadata,
  spec: {
    selector: { matchLabels: partOf(name) },
    endpoints: [{ port: 'metrics', interval: '30s', scrapeTimeout: '25s', honorLabels: true }],
  },
};

/** Number, status and duration of requests, as counted by Knative's queue-proxy beside each running function. */
const podMonitor: GeneratedManifest = {
  apiVersion: 'monitoring.coreos.com/v1',
  kind: 'PodMonitor',
  metadata: { name: 'functions', namespace: systemNamespace, labels: partOf(name) },
  spec: {
    selector: {
      matchExpressions: [
        {
          key: 'serving.knative.dev/service',
          operator: 'In',
          values: [...eventFunctions.map((fn) => fn.name), transferFunction.name],
        },
      ],
    },
    podMetricsEndpoints: [{ port: 'http-usermetric', interval: '30s' }],
  },
};

/** From any namespace: the metrics contain names of images but no secrets. */
const network = policy(name, {
  podSelector: { matchLabels: partOf(name) },
  policyTypes: ['Ingress', 'Egress'],
  ingress: [{ ports: tcp(port) }],
  egress: [dns, apiServer],
});

export const buildMonitoring = (): readonly GeneratedManifest[] => [
  deployment,
  service,
  network,
  serviceMonitor,
  podMonitor,
];
