// The webhook certificate: permissions of cron-tick, and the objects for cert-manager as an alternative.
import { type GeneratedManifest, partOf } from '#infra/generate/manifest.ts';
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from '#shared/api/foreign/admission.ts';
import { admissionCertificate, systemNamespace } from '#shared/api/names.ts';

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
