// The overlay `single`: one Deployment with every function, for clusters without Knative. Roles and webhooks are those of the base; one account
// has all of the roles. Called by kustomize.ts.
import { parseAllDocuments } from 'yaml';
import { type GeneratedManifest, add, functionsImage, partOf, settingsFrom, patch } from '#infra/generate/manifest.ts';
import { buildMetricsAccess } from '#infra/generate/monitoring.ts';
import { apiCertificate } from '#infra/generate/apis.ts';
import { broker, named } from '#infra/generate/knative.ts';
import { denyAll, policy, tcp } from '#infra/generate/network.ts';
import { apart, jobEnvironment, probesAt, restricted } from '#infra/generate/services.ts';
import type { Outputs } from '#infra/generate/outputs.ts';
import { admissionFunctions, consoleFunction, metricsFunction, transferFunction } from '#infra/generate/wiring.ts';
import { optionalSources, systemNamespace } from '#shared/api/names.ts';

/** The Deployment and its account. */
export const single = 'bullion';
const labels = partOf(single);

/** The ports of its container, by name. */
export const singlePorts = {
  http: 8080,
  events: 8081,
  import: 8082,
  metrics: 8083,
  console: 8084,
  admission: 8443,
  'upload-api': 8444,
} as const;
type PortName = keyof typeof singlePorts;

const toPorts = (names: readonly PortName[]): readonly object[] =>
  names.map((name) => ({ name, containerPort: singlePorts[name] }));

/** The Service that Jobs report progress to. */
const eventsService = 'broker';

const service = (name: string, port: number, targetPort: PortName): GeneratedManifest => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: named(name, name),
  spec: { selector: labels, ports: [{ name: targetPort, port, targetPort }] },
});

const container = {
  name: single,
  ...functionsImage,
  ...settingsFrom,
  args: ['single'],
  env: [
    { name: 'HOST', value: '0.0.0.0' },
    { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
    ...jobEnvironment,
    {
      name: 'TRANSFER_SINK',
      value: `http://${eventsService}.${systemNamespace}.svc.cluster.local/${systemNamespace}/${broker.name}`,
    },
  ],
  ports: toPorts(['http', 'events', 'import', 'metrics', 'admission']),
  // Ready once admission answers, which the API server waits for.
  ...probesAt({ port: 'http' }),
  resources: { requests: { cpu: '50m', memory: '160Mi' }, limits: { memory: '512Mi' } },
  securityContext: restricted,
  // For components.
  volumeMounts: [],
};

/** Longer than it takes to leave the Services, to answer requests in flight and to finish deliveries. */
const graceSeconds = 60;

const deployment: GeneratedManifest = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: named(single, single),
  spec: {
    replicas: 1,
    selector: { matchLabels: labels },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: single,
        enableServiceLinks: false,
        terminationGracePeriodSeconds: graceSeconds,
        topologySpreadConstraints: apart(labels),
        containers: [container],
        volumes: [],
      },
    },
  },
};

const subjects = [{ kind: 'ServiceAccount', name: single, namespace: systemNamespace }];
const isBinding = ({ kind }: GeneratedManifest): boolean => kind.endsWith('RoleBinding');
const isAccount = ({ kind }: GeneratedManifest): boolean => kind === 'ServiceAccount';

/** The rights of the exporter, which is part of the process. */
const metricsAccess = buildMetricsAccess()
  .filter((manifest) => !isAccount(manifest))
  .map((manifest) => (isBinding(manifest) ? { ...manifest, subjects } : manifest));

export const buildSingle = (): readonly GeneratedManifest[] => [
  { apiVersion: 'v1', kind: 'ServiceAccount', metadata: named(single, single) },
  ...metricsAccess,
  deployment,
  service(transferFunction.name, 80, 'http'),
  service(eventsService, 80, 'events'),
  service('import-object', 80, 'import'),
  service(metricsFunction.name, 8080, 'metrics'),
];

interface Binding extends GeneratedManifest {
  readonly subjects: readonly { readonly kind: string }[];
}

const replace = (path: string, value: unknown): object => ({ op: 'replace', path, value });

const removal = ({ apiVersion, kind, metadata: { name } }: GeneratedManifest): object =>
  patch(kind, name, { $patch: 'delete', apiVersion, kind, metadata: { name, namespace: systemNamespace } });

/** Every role is bound to the one account; the accounts of the functions go. */
const accessPatches = (manifests: Outputs): readonly object[] => {
  const all = Object.entries(manifests)
    .filter(([path]) => path.startsWith('infra/rbac/'))
    .flatMap(([, text]) => parseAllDocuments(text).map((document) => document.toJS() as GeneratedManifest));
  const bindings = all.filter((one): one is Binding => isBinding(one) && (one as Binding).subjects.some(isOfAccount));
  return [
    ...all.filter(isAccount).map(removal),
    ...bindings.map(({ kind, metadata: { name } }) => patch(kind, name, [replace('/subjects', subjects)])),
    // There are no objects of Knative to create sources of.
    patch('Role', 'bullion-event-sources', [
      replace('/rules', [
        { apiGroups: [''], resources: ['configmaps'], verbs: ['get'], resourceNames: [optionalSources] },
      ]),
    ]),
  ];
};

const isOfAccount = ({ kind }: { readonly kind: string }): boolean => kind === 'ServiceAccount';

const workloads = [
  ['apps/v1', 'Deployment'],
  ['policy/v1', 'PodDisruptionBudget'],
] as const;

/** A Deployment of the other shape goes, and its Services lead to the one process. */
const takeOver = (workload: string, services: readonly string[], targetPort: PortName): readonly object[] => [
  ...workloads.map(([apiVersion, kind]) => removal({ apiVersion, kind, metadata: { name: workload } })),
  ...services.map((name) =>
    patch('Service', name, [replace('/spec/selector', labels), replace('/spec/ports/0/targetPort', targetPort)]),
  ),
];

/** Webhook configurations name these Services. */
const admissionPatches = takeOver(
  'admission',
  admissionFunctions.map(({ name }) => name),
  'admission',
);

export const singlePatches = (manifests: Outputs): readonly object[] => [
  ...accessPatches(manifests),
  ...admissionPatches,
];

/** The image of Jobs, as in the base. */
export const singleImageFields = {
  images: [{ group: 'apps', kind: 'Deployment', path: 'spec/template/spec/containers/env/value' }],
};

const ofContainer = (path: string): string => `/spec/template/spec/containers/0${path}`;

/** The process may be reached by everything that may reach one of its functions, and connects to any address, as functions that poll do. */
export const buildSinglePolicies = (): readonly GeneratedManifest[] => [
  denyAll,
  policy(single, {
    podSelector: { matchLabels: labels },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: tcp(...Object.values(singlePorts)) }],
    egress: [{}],
  }),
];

/** The console in the one process. */
export const buildSingleConsole = (): readonly GeneratedManifest[] => [service(consoleFunction.name, 80, 'console')];

export const singleConsolePatch: readonly object[] = [
  add(ofContainer('/env/-'), { name: 'CONSOLE_PORT', value: String(singlePorts.console) }),
  add(ofContainer('/env/-'), {
    name: 'SESSION_KEY',
    valueFrom: { secretKeyRef: { name: 'console-session', key: 'key', optional: true } },
  }),
  ...toPorts(['console']).map((port) => add(ofContainer('/ports/-'), port)),
];

const uploadCertificate = '/upload-api-tls';

/** The API for upload tokens in the one process, with the certificate that cert-manager makes for its Service. */
export const singleUploadPatches: readonly object[] = [
  ...takeOver(transferFunction.apiService, [transferFunction.apiService], 'upload-api'),
  patch('Deployment', single, [
    add(ofContainer('/env/-'), { name: 'UPLOAD_API_PORT', value: String(singlePorts['upload-api']) }),
    add(ofContainer('/env/-'), { name: 'TLS_DIR', value: uploadCertificate }),
    ...toPorts(['upload-api']).map((port) => add(ofContainer('/ports/-'), port)),
    add(ofContainer('/volumeMounts/-'), { name: 'upload-api', mountPath: uploadCertificate, readOnly: true }),
    add('/spec/template/spec/volumes/-', { name: 'upload-api', secret: { secretName: apiCertificate } }),
  ]),
];
