// The Job that moves bytes: the only place that knows how transfer-job is started. Called by backends.
import type { Container, EnvVar, Job, PodSpec, PodVolume, VolumeMode } from '#shared/api/foreign/core.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { childMetadata } from '#shared/api/owner.ts';
import { type JobBackup, mountsOfBackup, toBackupRequest } from '#shared/populate/job/output.ts';
import { type JobExport, mountsOfExport, toExportRequest } from '#shared/populate/job/output.ts';
import { type PodWishes, podSpecOf, scratchOf } from '#shared/populate/job/pod-place.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { type JobSource, isSent, mountsOfSource, toTransferSource } from '#shared/populate/source.ts';
import { toServeRequest } from '#shared/populate/sources/upload.ts';
import { traceOfObject } from '#shared/runtime/span.ts';
import { toTraceparent } from '#shared/runtime/trace.ts';
import type { Inspection } from '#shared/transfer/report.ts';
import type { Checksum, TransferContent, TransferSpec } from '#shared/transfer/spec.ts';

export type TransferMode = TransferSpec['mode'];

/** Where the pod finds its volume. */
const devicePath = '/dev/bullion-target';
const mountPath = '/target';
const scratchDir = '/scratch';
/** Where Knative mounts tokens, and transfer-job looks for one. */
const tokenPath = '/oidc';

/** KubeVirt runs guests as this user, so that it can read what we write. */
export const qemuUser = 107;

/** Seconds a worker gets beyond its own deadline before it is killed from outside. */
const graceSeconds = 60;

/**
 * Seconds a finished Job stays. Its name keeps a late, stale pass from starting the same transfer again, and its pods keep their logs;
 * after a day neither matters.
 */
const keepSeconds = 24 * 3600;
/** Seconds for one that changed nothing: its name is wanted again soon. */
const forgetSeconds = 60;

/** Kubernetes waits 10 s · 2^(n-1) before try n+1 of a Job, at most 6 minutes. */
export const backoffSeconds = (failures: number): number => Math.min(360, 10 * 2 ** Math.max(0, failures - 1));

export interface TransferTargetVolume {
  readonly claimName: string;
  readonly volumeMode: VolumeMode;
  /** Left out: a disk. */
  readonly content?: TransferContent | undefined;
  /** Largest disk to let in, or bytes of all files. */
  readonly capacityBytes: number;
  /** Bytes the guest's disk shall have at least. */
  readonly diskBytes?: number | undefined;
  /** Its file takes all of its room at once. */
  readonly preallocated?: boolean | undefined;
}

export interface TransferRequest {
  readonly mode: TransferMode;
  /** What it is to its owner, and the first part of its name; left out: its mode. */
  readonly role?: 'keep';
  readonly owner: ObjectRef;
  readonly source: JobSource;
  readonly checksum?: Checksum | undefined;
  /** What an inspection found before. */
  readonly expected?: Inspection | undefined;
  /** Needed by `import`. */
  readonly target?: TransferTargetVolume | undefined;
  /** Needed by `export`, whose source is a claim, and by `abort` and `discard`, whose source is `blank`. */
  readonly export?: JobExport | undefined;
  /** Needed by `backup`, whose source is a claim. */
  readonly backup?: JobBackup | undefined;
  /** For `serve`, whose source is a claim: names what it holds, where nobody writes to it any more. */
  readonly identity?: string | undefined;
  /** Failed attempts tolerated. */
  readonly retries: number;
  readonly pod?: PodWishes | undefined;
}

/** Fixed by the owner's UID, so that no second transfer of an image can ever run beside the first. */
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
  ...(settings.proxies === undefined ? {} : { proxies: settings.proxies }),
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

/** What a Job does is a part of its owner's trace. */
const traceOf = ({ owner }: TransferRequest, { traceEndpoint }: PopulateSettings): readonly EnvVar[] =>
  traceEndpoint === undefined
    ? []
    : [
        { name: 'OTEL_EXPORTER_OTLP_ENDPOINT', value: traceEndpoint },
        { name: 'TRACEPARENT', value: toTraceparent(traceOfObject(owner.uid)) },
      ];

/** For the Broker alone: the API server takes no token of this audience. Renewed by the kubelet when four fifths of its time are over. */
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

/** A runtime gives devices to root unless it is told otherwise; their owner needs no capability to open them. */
const userOf = (
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

/** Longest a Job may live: every attempt to its limit, and the waits between them. */
const jobSeconds = (retries: number, settings: PopulateSettings): number => {
  const waits = Array.from({ length: retries }, (_, index) => backoffSeconds(index + 1));
  const attempts = (settings.attemptSeconds + graceSeconds) * (retries + 1);
  return attempts + waits.reduce((sum, wait) => sum + wait, 0) + settings.childSeconds;
};

/**
 * The Job of one transfer. Attempts are its pods, each of which leaves a TransferReport as its termination message. A permanent fault ends
 * the Job as succeeded with a failed report; a transient one fails the pod and Kubernetes tries again.
 */
export const buildTransferJob = (request: TransferRequest, settings: PopulateSettings): Job => {
  const role = request.role ?? request.mode;
  const container = containerOf(request, settings);
  const metadata = childMetadata(request.owner, role, transferJobName(role, request.owner));
  return {
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata,
    spec: {
      backoffLimit: request.retries,
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
