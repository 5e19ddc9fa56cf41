// Builds transfer Jobs: the only place that knows the interface of transfer-job. Called by backends.
import {
  type Container,
  type EnvVar,
  type Job,
  type PodSpec,
  type PodVolume,
  type VolumeMode,
  disruptionTarget,
} from '#shared/api/foreign/core.ts';
import { childMetadata, type ObjectRef } from '#shared/api/object.ts';
import { annotations, labels } from '#shared/api/names.ts';
import { type JobBackup, mountsOfBackup, toBackupRequest } from '#shared/populate/job/output.ts';
import { type JobExport, mountsOfExport, toExportRequest } from '#shared/populate/job/output.ts';
import { type PodWishes, podSpecOf, scratchOf } from '#shared/populate/job/pod-place.ts';
import { reachIn } from '#shared/populate/job/transfer-reach.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import {
  type JobSource,
  hostOfSource,
  isFromServer,
  isSent,
  mountsOfSource,
  toTransferSource,
} from '#shared/populate/source.ts';
import { toServeRequest } from '#shared/populate/sources/upload.ts';
import { toTraceparent, traceOfObject } from '#shared/runtime/trace.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum, TransferContent, TransferSpec } from '#shared/transfer/spec.ts';

export type TransferMode = TransferSpec['mode'];

/** Path of the target volume in the pod. */
const devicePath = '/dev/bullion-target';
const mountPath = '/target';
const scratchDir = '/scratch';
/** Mount path of the OIDC token, as in Knative; transfer-job reads it here. */
const tokenPath = '/oidc';

/** KubeVirt runs guests as this user, who must be able to read the disk. */
export const qemuUser = 107;

/** Seconds between the worker's own deadline and its termination by Kubernetes. */
const graceSeconds = 60;

/**
 * Seconds a finished Job is kept. Its name prevents that a late, stale pass starts the same transfer again, and its pods keep their logs;
 * neither is needed after a day.
 */
const keepSeconds = 24 * 3600;
/** Seconds for a Job that changed nothing: its name is soon needed again. */
const forgetSeconds = 60;

/** Kubernetes waits 10 s · 2^(n-1) before attempt n+1 of a Job, at most 6 minutes. */
export const backoffSeconds = (failures: number): number => Math.min(360, 10 * 2 ** Math.max(0, failures - 1));

export interface TransferTargetVolume {
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Default: a disk. */
  readonly content?: TransferContent | undefined;
  /** Size limit of the disk, or of all files. */
  readonly capacityBytes: number;
  /** Minimal size of the guest's disk in bytes. */
  readonly diskBytes?: number | undefined;
  /** The disk file is preallocated. */
  readonly preallocated?: boolean | undefined;
}

export interface TransferRequest {
  readonly mode: TransferMode;
  /** Role for the owner, and first part of the name. Default: the mode. */
  readonly role?: 'keep';
  readonly owner: ObjectRef;
  readonly source: JobSource;
  readonly checksum?: Checksum | undefined;
  /** Result of an earlier inspection. */
  readonly expected?: Inspection | undefined;
  /** Required for `import`. */
  readonly target?: TransferTargetVolume | undefined;
  /** Required for `export`, whose source is a claim, and for `abort` and `discard`, whose source is `blank`. */
  readonly export?: JobExport | undefined;
  /** Required for `backup`, whose source is a claim. */
  readonly backup?: JobBackup | undefined;
  /** For `serve`, whose source is a claim: identifies its content, if it has no writer any more. */
  readonly identity?: string | undefined;
  /** Failed attempts tolerated. */
  readonly retries: number;
  readonly pod?: PodWishes | undefined;
}

/** Derived from the owner's UID, so that two transfers of one image never run at the same time. */
export const transferJobName = (role: TransferMode | 'keep', owner: Pick<ObjectRef, 'uid'>): string =>
  `${role}-${owner.uid}`;

const specOf = (request: TransferRequest, settings: PopulateSettings): TransferSpec => ({
  mode: request.mode,
  source: toTransferSource(request.source, { owner: request.owner, settings }),
  ...(request.checksum === undefined ? {} : { checksum: request.checksum }),
  ...(request.expected === undefined ? {} : { expected: request.expected }),
  ...(request.target === undefined ? {} : { target: targetOf(request.target) }),
  ...(request.export === undefined
    ? {}
    : { export: toExportRequest(request.export, { owner: request.owner, settings }) }),
  ...(request.backup === undefined
    ? {}
    : { backup: toBackupRequest(request.backup, { owner: request.owner, settings }) }),
  ...(request.mode === 'serve' ? { serve: toServeRequest(request.identity, { owner: request.owner, settings }) } : {}),
  scratchDir,
  limits: {
    idleSeconds: 60,
    floor: { bytes: settings.slowestBytes, seconds: settings.slowestSeconds },
    totalSeconds: settings.attemptSeconds,
    retries: 5,
  },
  allowedAddresses: [...settings.allowedAddresses],
  ...(isFromServer(request.source) ? reachIn(request, settings) : {}),
  ...(settings.proxies === undefined ? {} : { proxies: settings.proxies }),
  ...(settings.clouds === undefined ? {} : { clouds: settings.clouds }),
});

const pathOf = ({ volumeMode, content }: TransferTargetVolume): string => {
  if (volumeMode === 'Block') return devicePath;
  return content === 'archive' ? mountPath : `${mountPath}/disk.img`;
};

const targetOf = (target: TransferTargetVolume): NonNullable<TransferSpec['target']> => ({
  path: pathOf(target),
  volumeMode: target.volumeMode,
  ...(target.content === undefined ? {} : { content: target.content }),
  capacityBytes: target.capacityBytes,
  ...(target.diskBytes === undefined ? {} : { diskBytes: target.diskBytes }),
  ...(target.preallocated === true ? { preallocated: true } : {}),
});

const environmentOf = (request: TransferRequest, settings: PopulateSettings): readonly EnvVar[] => [
  { name: 'BULLION_TRANSFER', value: JSON.stringify(specOf(request, settings)) },
  { name: 'BULLION_OWNER', value: JSON.stringify(request.owner) },
  { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  ...(isSent(request.source) || request.mode === 'serve'
    ? [{ name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }]
    : []),
  ...(settings.eventSink === undefined ? [] : [{ name: 'K_SINK', value: settings.eventSink }]),
  ...traceOf(request, settings),
];

/** A Job belongs to the trace of its owner. */
const traceOf = ({ owner }: TransferRequest, { traceEndpoint }: PopulateSettings): readonly EnvVar[] =>
  traceEndpoint === undefined
    ? []
    : [
        { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: traceEndpoint },
        { name: 'TRACEPARENT', value: toTraceparent(traceOfObject(owner.uid)) },
      ];

/** Only for the Broker: the API server rejects tokens of this audience. The kubelet renews it at 80 % of its lifetime. */
const tokenVolume = (audience: string): PodVolume => ({
  name: 'oidc-token',
  projected: { sources: [{ serviceAccountToken: { audience, expirationSeconds: 3600, path: 'token' } }] },
});

const volumesOf = (request: TransferRequest, settings: PopulateSettings): readonly PodVolume[] => [
  scratchOf(settings),
  ...(settings.eventAudience === undefined ? [] : [tokenVolume(settings.eventAudience)]),
  ...mountsOfSource(request.source, { owner: request.owner, settings }).volumes,
  ...mountsOfExport(request.export, { owner: request.owner, settings }).volumes,
  ...mountsOfBackup(request.backup, { owner: request.owner, settings }).volumes,
  ...(request.target === undefined
    ? []
    : [{ name: 'target', persistentVolumeClaim: { claimName: request.target.claimName } }]),
];

const mountsOf = (
  { owner, source, target, export: exported, backup }: TransferRequest,
  settings: PopulateSettings,
): Pick<Container, 'volumeMounts' | 'volumeDevices'> => {
  const context = { owner, settings };
  const ofSource = mountsOfSource(source, context);
  const devices = [...ofSource.devices, ...(target?.volumeMode === 'Block' ? [{ name: 'target', devicePath }] : [])];
  const ofTarget = target?.volumeMode === 'Filesystem' ? [{ name: 'target', mountPath }] : [];
  const ofPlaces = [...mountsOfExport(exported, context).mounts, ...mountsOfBackup(backup, context).mounts];
  const ofToken = settings.eventAudience === undefined ? [] : [{ name: 'oidc-token', mountPath: tokenPath }];
  const mounts = [...ofSource.mounts, ...ofPlaces, ...ofTarget, ...ofToken];
  return {
    volumeMounts: [{ name: 'scratch', mountPath: scratchDir }, ...mounts],
    ...(devices.length === 0 ? {} : { volumeDevices: devices }),
  };
};

const containerOf = (request: TransferRequest, settings: PopulateSettings): Container => ({
  name: 'transfer',
  image: settings.transferImage,
  imagePullPolicy: 'IfNotPresent',
  command: settings.transferCommand,
  env: environmentOf(request, settings),
  ...mountsOf(request, settings),
  resources: settings.transferResources,
  terminationMessagePath: '/dev/termination-log',
  securityContext: {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  },
});

/** By default a runtime lets only root open devices; the owner of a device needs no capability to open it. */
export const userOf = (
  { volumeDevices }: Container,
  { devicesAsRoot }: PopulateSettings,
): NonNullable<PodSpec['securityContext']> => ({
  ...(devicesAsRoot && volumeDevices !== undefined
    ? { runAsNonRoot: false, runAsUser: 0 }
    : { runAsNonRoot: true, runAsUser: qemuUser }),
  runAsGroup: qemuUser,
  fsGroup: qemuUser,
  seccompProfile: { type: 'RuntimeDefault' },
});

/** Maximal lifetime of a Job: every attempt up to its timeout, and the back-off between them. */
const jobSeconds = (retries: number, settings: PopulateSettings): number => {
  const waits = Array.from({ length: retries }, (_, index) => backoffSeconds(index + 1));
  const attempts = (settings.attemptSeconds + graceSeconds) * (retries + 1);
  return attempts + waits.reduce((sum, wait) => sum + wait, 0) + settings.childSeconds;
};

/**
 * Of a Job that limits on transfers apply to: imports and exports. A client waits for uploads and downloads, inspections read little, and other
 * volumes wait for the copy of a disk.
 */
const queueMarks = (
  request: TransferRequest,
  settings: PopulateSettings,
): Pick<Job['metadata'], 'labels' | 'annotations'> => {
  const isQueued = ['import', 'export'].includes(request.role ?? request.mode) && !isSent(request.source);
  if (!isQueued) return {};
  const host = hostOfSource(request.source, { owner: request.owner, settings });
  return {
    labels: { [labels.queue]: 'waiting' },
    ...(host === undefined ? {} : { annotations: { [annotations.sourceHost]: host } }),
  };
};

/** Pods that are evicted, preempted or lost with their node have not failed: Kubernetes starts another one at once, once the node has ended it. */
const ignoreDisruptions: Job['spec']['podFailurePolicy'] = {
  rules: [{ action: 'Ignore', onPodConditions: [{ type: disruptionTarget, status: 'True' }] }],
};

/**
 * The Job of one transfer. Attempts are its pods, except those that the cluster ended; each writes a TransferReport as its termination message.
 * On a permanent fault the Job succeeds with a failed report; on a transient one the pod fails and Kubernetes retries.
 */
export const buildTransferJob = (request: TransferRequest, settings: PopulateSettings): Job => {
  const role = request.role ?? request.mode;
  const container = containerOf(request, settings);
  const metadata = childMetadata(request.owner, role, transferJobName(role, request.owner));
  const queue = queueMarks(request, settings);
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...queue.labels },
      annotations: { ...metadata.annotations, ...queue.annotations },
    },
    spec: {
      backoffLimit: request.retries,
      podFailurePolicy: ignoreDisruptions,
      activeDeadlineSeconds: jobSeconds(request.retries, settings),
      ttlSecondsAfterFinished: request.mode === 'serve' ? forgetSeconds : keepSeconds,
      template: {
        metadata: {
          labels: metadata.labels ?? {},
          annotations: { ...request.pod?.annotations, ...metadata.annotations },
        },
        spec: {
          restartPolicy: 'Never',
          activeDeadlineSeconds: settings.attemptSeconds + graceSeconds,
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          ...podSpecOf(request.pod, settings),
          securityContext: userOf(container, settings),
          containers: [container],
          volumes: volumesOf(request, settings),
        },
      },
    },
  };
};
