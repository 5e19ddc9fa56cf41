// Children of an export: a snapshot and the copy restored from it, Jobs, and for local exports a claim and a pod to fetch the file from.
import { annotations } from '#shared/api/names.ts';
import { travellingLabels } from '#shared/api/cdi/names.ts';
import { redactUrl } from '#shared/runtime/redact.ts';
import { environmentOfLabels } from '#shared/transfer/source/registry/labels.ts';
import type { Job, PersistentVolumeClaim, Pod } from '#shared/api/foreign/core.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { childMetadata } from '#shared/api/object.ts';
import { type ExportedImage, exportFile, exportPath } from '#shared/populate/job/output.ts';
import type { PopulateSettings } from '#shared/populate/settings.ts';
import { fileVolumeBytesFor } from '#shared/populate/population.ts';
import { buildTransferJob } from '#shared/populate/job/transfer-job.ts';
import { buildFromSnapshot } from '#shared/populate/storage/snapshot.ts';
import { buildVolume, volumeModeOf } from '#shared/populate/population.ts';
import type { ExportDestination, ExportState, VolumeExport } from './rules.ts';
import type { ReadyOrigin } from '#shared/populate/clone/origin.ts';

/** Name of the snapshot, of the copy restored from it, and of the Job. */
export const exportName = ({ ref }: Pick<VolumeExport, 'ref'>): string => `export-${ref.uid}`;

/** The disk at the time of the snapshot. */
export const buildCopy = (
  resource: VolumeExport,
  origin: ReadyOrigin,
  snapshot: VolumeSnapshot,
): PersistentVolumeClaim => {
  return buildFromSnapshot(snapshot, {
    owner: resource.ref,
    role: 'disk',
    name: exportName(resource),
    storageClassName: origin.className,
    volumeMode: origin.clone.volumeMode,
    accessModes: origin.accessModes ?? ['ReadWriteOnce'],
    bytes: origin.clone.bytes,
  });
};

type Local = Extract<ExportDestination, { is: 'local' }>;

/** A qcow2 may need tables of a 4000th of the disk in addition to its data. */
const fileBytes = (diskBytes: number): number => Math.ceil(diskBytes * 1.001) + 2 ** 20;

/** Name, mode and annotation as clients of the original expect them. */
export const buildFileClaim = (
  { ref }: VolumeExport,
  { claimName }: Local,
  origin: ReadyOrigin,
  settings: PopulateSettings,
): PersistentVolumeClaim =>
  buildVolume({
    owner: ref,
    role: 'disk',
    name: claimName,
    storageClassName: origin.className,
    volumeMode: 'Filesystem',
    accessModes: ['ReadWriteOnce'],
    bytes: fileVolumeBytesFor(fileBytes(origin.clone.bytes), settings.filesystemOverhead),
    annotations: { completed: 'no' },
  });

/** The only format of the original; of an image, its data may be compressed. */
const formOf = (destination: ExportDestination) =>
  ({ format: 'qcow2', compression: destination.is === 'registry' ? destination.compression : 'none' }) as const;

const toJobExport = (destination: ExportDestination) => ({
  form: formOf(destination),
  ...(destination.is === 'local'
    ? { object: { type: 'claim', claimName: destination.claimName } as const }
    : { object: destination.object, guestDigest: destination.is === 'store' }),
});

interface Reading {
  readonly destination: ExportDestination;
  readonly claim: PersistentVolumeClaim;
  /** The claim that the export names; `claim` may be a copy of it. */
  readonly of: PersistentVolumeClaim;
}

/** The URL that a DataVolume was imported from. */
const endpointAnnotation = 'cdi.kubevirt.io/storage.import.endpoint';

/** What an image says of its disk, which is the same in each attempt. */
const toImage = ({ createdAt }: VolumeExport, { destination, of }: Reading): ExportedImage => {
  const {
    name,
    labels,
    annotations: { [endpointAnnotation]: endpoint, [annotations.ownerName]: owner } = {},
  } = of.metadata;
  return {
    annotations: {
      'org.opencontainers.image.title': owner ?? name,
      ...(endpoint === undefined ? {} : { 'org.opencontainers.image.source': redactUrl(endpoint) }),
    },
    environment: [...environmentOfLabels(travellingLabels(labels))],
    ...(createdAt === undefined ? {} : { created: createdAt }),
    signingSecretName: destination.is === 'registry' ? destination.signingSecretName : undefined,
  };
};

export const buildExportJob = (resource: VolumeExport, reading: Reading, settings: PopulateSettings): Job => {
  const { destination, claim } = reading;
  const image = destination.is === 'registry' ? { image: toImage(resource, reading) } : {};
  return buildTransferJob(
    {
      mode: 'export',
      owner: resource.ref,
      source: { type: 'claim', claimName: claim.metadata.name, volumeMode: volumeModeOf(claim) },
      export: { ...toJobExport(destination), ...image },
      retries: resource.retries,
    },
    settings,
  );
};

/** The source of a Job, read from the Job itself, since it may run before the state is recorded. */
export const readBy = (resource: VolumeExport, { spec }: Job): NonNullable<ExportState['from']> => {
  const claims = spec.template.spec.volumes?.map(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName) ?? [];
  return claims.includes(exportName(resource)) ? 'snapshot' : 'claim';
};

/** `abort` removes unfinished uploads, `discard` also removes the object. */
export type Clearing = 'abort' | 'discard';

export const buildClearJob = (
  { ref, retries }: VolumeExport,
  destination: ExportDestination,
  mode: Clearing,
  settings: PopulateSettings,
): Job =>
  buildTransferJob(
    { mode, owner: ref, source: { type: 'blank' }, export: toJobExport(destination), retries },
    settings,
  );

/** QEMU's group, which owns the file. */
const fileUser = 107;

/** Node is the only program that the image is guaranteed to have: no shell, no `sleep`, no `tar`, which `kubectl cp` would need. */
const idle = ['node', '-e', "process.on('SIGTERM', () => process.exit(0)); setInterval(() => undefined, 2 ** 30)"];
const send = `require('fs').createReadStream('${exportPath}/${exportFile}').pipe(process.stdout)`;

/** Provides the file for `kubectl exec`; otherwise idle. */
export const buildFilePod = (
  { ref }: VolumeExport,
  { claimName, podName }: Local,
  settings: PopulateSettings,
): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: childMetadata(ref, 'exporter', podName),
  spec: {
    restartPolicy: 'Always',
    automountServiceAccountToken: false,
    enableServiceLinks: false,
    terminationGracePeriodSeconds: 1,
    securityContext: {
      runAsNonRoot: true,
      runAsUser: fileUser,
      runAsGroup: fileUser,
      fsGroup: fileUser,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    containers: [
      {
        name: 'exporter',
        image: settings.transferImage,
        imagePullPolicy: 'IfNotPresent',
        command: idle,
        volumeMounts: [{ name: 'export', mountPath: exportPath, readOnly: true }],
        resources: { requests: { cpu: '1m', memory: '48Mi' }, limits: { cpu: '500m', memory: '128Mi' } },
        securityContext: {
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        },
      },
    ],
    volumes: [{ name: 'export', persistentVolumeClaim: { claimName, readOnly: true } }],
  },
});

/** The command to fetch the file. */
export const fetchHint = ({ podName }: Local): string => `kubectl exec ${podName} -- node -e "${send}" > disk.qcow2`;
