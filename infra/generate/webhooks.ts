// Webhook configurations and the admission Deployment under infra/webhooks. The local cluster uses the same configurations with its own address
// and certificate.
import { functionsImage, type GeneratedManifest, partOf, settingsFrom } from './manifest.ts';
import { apart, probesAt, restricted } from './services.ts';
import { scopeOf } from './webhook-scopes.ts';
import { type AdmissionFunction, admissionFunctions, type Webhook } from './wiring.ts';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '#shared/api/foreign/kubernetes.ts';
import { admissionCertificate, systemNamespace, unguardedNamespaces } from '#shared/api/names.ts';
import type { ResourceType } from '#shared/api/object.ts';

const workload = 'admission';
const { serverSecret: certificate } = admissionCertificate;

/** An outage of ours must never prevent the cluster itself, Knative or our own pods from recovering. */
const namespaceSelector = {
  matchExpressions: [
    {
      key: 'kubernetes.io/metadata.name',
      operator: 'NotIn',
      values: unguardedNamespaces,
    },
  ],
};

const rulesOf = (types: readonly ResourceType[], operations: Webhook['operations']): readonly object[] =>
  types.map((type) => ({
    apiGroups: [type.group],
    apiVersions: [type.version],
    resources: [type.plural],
    operations,
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
  }));

/** Validation must not be bypassed; a missing default can be set later. */
const buildWebhook = (fn: AdmissionFunction, webhook: Webhook, objects: readonly ResourceType[]): object => {
  const {
    types,
    objectSelector,
    conditions,
    failurePolicy,
    reinvocationPolicy = 'IfNeeded',
  } = scopeOf(fn, webhook, objects);
  return {
    name: `${webhook.name}.${fn.name}.bullion.dev`,
    admissionReviewVersions: ['v1'],
    clientConfig: { service: { namespace: systemNamespace, name: fn.name, path: `/${fn.name}`, port: 443 } },
    rules: rulesOf(types as readonly ResourceType[], webhook.operations),
    matchPolicy: 'Equivalent',
    namespaceSelector,
    ...(objectSelector === undefined ? {} : { objectSelector }),
    matchConditions: conditions,
    failurePolicy: failurePolicy ?? (fn.name === 'validate' ? 'Fail' : 'Ignore'),
    ...(fn.name === 'mutate' ? { reinvocationPolicy } : {}),
    sideEffects: 'None',
    timeoutSeconds: 10,
  };
};

export const buildWebhookConfiguration = (
  fn: AdmissionFunction,
  objects: readonly ResourceType[],
): GeneratedManifest => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: fn.name === 'validate' ? 'ValidatingWebhookConfiguration' : 'MutatingWebhookConfiguration',
  metadata: {
    name: 'bullion',
    labels: partOf(fn.name),
    annotations: { 'cert-manager.io/inject-ca-from': `${systemNamespace}/${certificate}` },
  },
  webhooks: fn.webhooks.map((webhook) => buildWebhook(fn, webhook, objects)),
});

export const buildAdmissionWorkload = (): readonly GeneratedManifest[] => [
  buildDeployment(),
  ...admissionFunctions.map(buildService),
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: workload, namespace: systemNamespace, labels: partOf(workload) },
    spec: { minAvailable: 1, selector: { matchLabels: partOf(workload) } },
  },
];

const buildDeployment = (): GeneratedManifest => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: workload, namespace: systemNamespace, labels: partOf(workload) },
  spec: {
    replicas: 2,
    selector: { matchLabels: partOf(workload) },
    template: {
      metadata: { labels: partOf(workload) },
      spec: {
        serviceAccountName: workload,
        enableServiceLinks: false,
        topologySpreadConstraints: apart(partOf(workload)),
        containers: admissionFunctions.map(buildContainer),
      },
    },
  },
});

const buildContainer = (fn: AdmissionFunction): object => ({
  name: fn.name,
  ...functionsImage,
  ...settingsFrom,
  args: [fn.name],
  env: [
    { name: 'HOST', value: '0.0.0.0' },
    { name: 'PORT', value: String(fn.port) },
    { name: 'TLS_FROM_SECRET', value: 'true' },
  ],
  ports: [{ name: fn.name, containerPort: fn.port }],
  ...probesAt({ port: fn.port, scheme: 'HTTPS' }),
  resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { memory: '256Mi' } },
  securityContext: restricted,
});

/** Both functions share pods; each has a Service, so that a configuration can refer to its function. */
const buildService = (fn: AdmissionFunction): GeneratedManifest => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: fn.name, namespace: systemNamespace, labels: partOf(fn.name) },
  spec: { selector: partOf(workload), ports: [{ name: 'https', port: 443, targetPort: fn.name }] },
});

// The webhook certificate: permissions of cron-tick, and the objects for cert-manager as an alternative.

const { configuration, authoritySecret, serverSecret, hosts } = admissionCertificate;
const name = 'bullion-certificate';
const keeper = { kind: 'ServiceAccount', name: 'cron-tick', namespace: systemNamespace };
const rbac = 'rbac.authorization.k8s.io';

/** Two Secrets of our own namespace by name, and the two configurations that must trust them. Creation cannot be restricted by name. */
export const buildCertificateAccess = (): readonly GeneratedManifest[] => [
  {
    apiVersion: `${rbac}/v1`,
    kind: 'Role',
    metadata: { name, namespace: systemNamespace, labels: partOf('cron-tick') },
    rules: [
      {
        apiGroups: [''],
        resources: ['secrets'],
        resourceNames: [authoritySecret, serverSecret],
        verbs: ['get', 'update'],
      },
      { apiGroups: [''], resources: ['secrets'], verbs: ['create'] },
    ],
  },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'RoleBinding',
    metadata: { name, namespace: systemNamespace, labels: partOf('cron-tick') },
    roleRef: { apiGroup: rbac, kind: 'Role', name },
    subjects: [keeper],
  },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name, labels: partOf('cron-tick') },
    rules: [
      {
        apiGroups: ['admissionregistration.k8s.io'],
        resources: [validatingWebhookConfigurations.plural, mutatingWebhookConfigurations.plural],
        resourceNames: [configuration],
        verbs: ['get', 'patch'],
      },
    ],
  },
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name, labels: partOf('cron-tick') },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name },
    subjects: [keeper],
  },
];

/** cert-manager renews the certificate and injects its CA bundle into the webhook configurations. */
export const buildCertificate = (): readonly GeneratedManifest[] => [
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Issuer',
    metadata: { name: 'admission', namespace: systemNamespace, labels: partOf('admission') },
    spec: { selfSigned: {} },
  },
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { name: serverSecret, namespace: systemNamespace, labels: partOf('admission') },
    spec: {
      secretName: serverSecret,
      dnsNames: hosts,
      issuerRef: { kind: 'Issuer', name: 'admission' },
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
    },
  },
];
