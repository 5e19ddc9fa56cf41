// The aggregated API of upload tokens under infra/apis: APIServices, and their Deployment. The local cluster uses the same APIServices with its
// own address.
import { apart, probesAt, restricted } from '#infra/generate/services.ts';
import { type GeneratedManifest, functionsImage, partOf, settingsFrom } from '#infra/generate/manifest.ts';
import { transferFunction } from '#infra/generate/wiring.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { uploadTokenGroup, uploadTokenVersions } from '#shared/exchange/upload-token.ts';

const name = transferFunction.apiService;
/** Secret with the certificate of its Service. */
export const apiCertificate = `${name}-tls`;
const certificate = apiCertificate;
/** Of the container behind the Service. */
export const apiServicePort = 8443;
const port = apiServicePort;

const inSystem = { name, namespace: systemNamespace, labels: partOf(name) };

export const buildApiServices = (): readonly GeneratedManifest[] =>
  uploadTokenVersions.map((version, index) => ({
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: {
      name: `${version}.${uploadTokenGroup}`,
      labels: partOf(name),
      annotations: { 'cert-manager.io/inject-ca-from': `${systemNamespace}/${certificate}` },
    },
    spec: {
      group: uploadTokenGroup,
      version,
      groupPriorityMinimum: 1000,
      versionPriority: 15 - index,
      service: { name, namespace: systemNamespace, port: 443 },
    },
  }));

/** The API server waits for it and does not retry, so there are two replicas. */
export const buildApiWorkload = (): readonly GeneratedManifest[] => [
  {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: inSystem,
    spec: {
      replicas: 2,
      selector: { matchLabels: partOf(name) },
      template: {
        metadata: { labels: partOf(name) },
        spec: {
          serviceAccountName: transferFunction.name,
          enableServiceLinks: false,
          topologySpreadConstraints: apart(partOf(name)),
          containers: [
            {
              name,
              ...functionsImage,
              ...settingsFrom,
              args: [transferFunction.name],
              env: [
                { name: 'HOST', value: '0.0.0.0' },
                { name: 'PORT', value: String(port) },
                { name: 'TLS_DIR', value: '/tls' },
              ],
              ports: [{ name: 'https', containerPort: port }],
              ...probesAt({ port, scheme: 'HTTPS' }),
              resources: { requests: { cpu: '20m', memory: '96Mi' }, limits: { memory: '256Mi' } },
              securityContext: restricted,
              volumeMounts: [{ name: 'tls', mountPath: '/tls', readOnly: true }],
            },
          ],
          volumes: [{ name: 'tls', secret: { secretName: certificate } }],
        },
      },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: inSystem,
    spec: { selector: partOf(name), ports: [{ name: 'https', port: 443, targetPort: 'https' }] },
  },
  {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: inSystem,
    spec: { minAvailable: 1, selector: { matchLabels: partOf(name) } },
  },
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Issuer',
    metadata: inSystem,
    spec: { selfSigned: {} },
  },
  {
    apiVersion: 'cert-manager.io/v1',
    kind: 'Certificate',
    metadata: { ...inSystem, name: certificate },
    spec: {
      secretName: certificate,
      dnsNames: [`${name}.${systemNamespace}.svc`, `${name}.${systemNamespace}.svc.cluster.local`],
      issuerRef: { kind: 'Issuer', name },
      privateKey: { algorithm: 'ECDSA', size: 256, rotationPolicy: 'Always' },
    },
  },
];
