// The Knative Services of the functions, under infra/knative.
import type { EventFunction } from '#infra/generate/event-functions.ts';
import { named } from '#infra/generate/knative.ts';
import { type GeneratedManifest, functionsImage, partOf, settingsFrom } from '#infra/generate/manifest.ts';
import { consoleFunction, transferFunction } from '#infra/generate/wiring.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { defaultSettings } from '#shared/populate/settings.ts';

/** Draining a Knative pod takes up to 45 s and must fit in `timeoutSeconds`, which is also its grace period. */
const timeoutSeconds = 60;

interface Scaling {
  readonly maxScale: number;
  /** Concurrent requests of an instance. */
  readonly concurrency: number;
  readonly timeoutSeconds: number;
  /** Default: Knative's. */
  readonly responseStartTimeoutSeconds?: number;
}

/** Of one function; scales to zero. */
const scaledService = (
  name: string,
  { maxScale, concurrency, ...timeouts }: Scaling,
  container: object = functionContainer(name),
): GeneratedManifest => ({
  apiVersion: 'serving.knative.dev/v1',
  kind: 'Service',
  metadata: named(name, name),
  spec: {
    template: {
      metadata: {
        labels: partOf(name),
        annotations: {
          'autoscaling.knative.dev/min-scale': '0',
          'autoscaling.knative.dev/max-scale': String(maxScale),
        },
      },
      spec: {
        serviceAccountName: name,
        containerConcurrency: concurrency,
        ...timeouts,
        enableServiceLinks: false,
        containers: [container],
      },
    },
  },
});

export const buildService = ({ name, concurrency }: EventFunction): GeneratedManifest => {
  const service = scaledService(name, { maxScale: 5, concurrency, timeoutSeconds });
  const labels = { ...service.metadata.labels, 'networking.knative.dev/visibility': 'cluster-local' };
  return { ...service, metadata: { ...service.metadata, labels } };
};

/** Path in the image for transfers (`infra/images`). */
const transferCommand = 'node /app/start.mjs transfer-job';

/** Long uploads are answered at their end; longer ones use the resumable protocol. Knative's default limit is ten minutes. */
const transferSeconds = 600;

/** Reachable from outside, unlike the functions that are invoked by events. */
export const buildTransferService = (): GeneratedManifest =>
  scaledService(transferFunction.name, {
    maxScale: 10,
    concurrency: 50,
    timeoutSeconds: transferSeconds,
    // The first byte of an answer is sent after the last byte of an upload; Knative's default timeout for it is five minutes.
    responseStartTimeoutSeconds: transferSeconds,
  });

/** Pages stay up to date by requests that last for minutes, one for each page that somebody looks at. */
const mostPages = 250;

/** One instance seals its own sessions; with the Secret, sessions outlive it, and there may be several. */
export const buildConsole = (): readonly GeneratedManifest[] => {
  const { name } = consoleFunction;
  const secretKeyRef = { name: 'console-session', key: 'key', optional: true };
  const env = [
    { name: 'HOST', value: '0.0.0.0' },
    { name: 'SESSION_KEY', valueFrom: { secretKeyRef } },
  ];
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: named(name, name) },
    scaledService(
      name,
      { maxScale: 1, concurrency: mostPages, timeoutSeconds: transferSeconds },
      { ...functionContainer(name), env },
    ),
  ];
};

/** How Jobs are started, and reach us. */
export const jobEnvironment = [
  { name: 'TRANSFER_IMAGE', value: defaultSettings.transferImage },
  { name: 'TRANSFER_COMMAND', value: transferCommand },
  { name: 'BOOT_IMAGE', value: defaultSettings.bootImage },
  { name: 'TRANSFER_URL', value: `http://${transferFunction.name}.${systemNamespace}.svc.cluster.local` },
] as const;

const functionContainer = (name: string): object => ({
  ...functionsImage,
  ...settingsFrom,
  args: [name],
  env: [{ name: 'HOST', value: '0.0.0.0' }, ...jobEnvironment],
  ports: [{ containerPort: 8080 }],
  readinessProbe: { httpGet: { path: '/readyz' } },
  // Not a startup probe: Knative waits for readiness itself, many times a second, and the kubelet asks once a second at most.
  livenessProbe: { httpGet: { path: '/healthz' }, periodSeconds: 10, initialDelaySeconds: 60 },
  resources: { requests: { cpu: '50m', memory: '96Mi' }, limits: { cpu: '1', memory: '256Mi' } },
  securityContext: restricted,
});

/** Of a container that the kubelet alone looks at: on a busy node the start may take longer than a running process may be silent. */
export const probesAt = (at: { readonly port: number | string; readonly scheme?: 'HTTPS' }): object => ({
  startupProbe: { httpGet: { path: '/healthz', ...at }, periodSeconds: 1, failureThreshold: 120 },
  readinessProbe: { httpGet: { path: '/readyz', ...at }, periodSeconds: 5 },
  livenessProbe: { httpGet: { path: '/healthz', ...at }, periodSeconds: 10, timeoutSeconds: 5 },
});

/** Spreads pods with these labels over different nodes, if there are enough. */
export const apart = (matchLabels: object): readonly object[] => [
  {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels },
  },
];

/** Requirements of the `restricted` Pod Security Standard for a container. */
export const restricted = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  runAsNonRoot: true,
  capabilities: { drop: ['ALL'] },
  seccompProfile: { type: 'RuntimeDefault' },
} as const;
