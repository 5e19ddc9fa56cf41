// An NFS export as backup target, mounted into the function that reads it. Called by kustomize.ts for the component `nfs-backups`.
import { type Manifest, partOf } from '#infra/generate/manifest.ts';
import { systemNamespace } from '#shared/api/names.ts';
import { qemuUser } from '#shared/populate/transfer-job.ts';

const name = 'bullion-backups';
const folder = '/backups';
/** Stand for the export of whoever takes the component: an overlay names it in the volume, and in the path it is mounted at. */
const server = 'nas.example';
const path = '/export';

/** Knative takes claims, and no NFS volumes; so does the namespace, which is restricted. Nothing provisions it, and nobody empties it. */
export const buildExportVolume = (): readonly Manifest[] => [
  {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, labels: partOf('backup-metadata') },
    spec: {
      // Not looked at for NFS.
      capacity: { storage: '1Ti' },
      accessModes: ['ReadWriteMany'],
      persistentVolumeReclaimPolicy: 'Retain',
      storageClassName: '',
      mountOptions: ['hard'],
      nfs: { server, path },
    },
  },
  {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: systemNamespace, labels: partOf('backup-metadata') },
    spec: {
      accessModes: ['ReadWriteMany'],
      storageClassName: '',
      volumeName: name,
      resources: { requests: { storage: '1Ti' } },
    },
  },
];

const container = '/spec/template/spec/containers/0';

/** As the user that Jobs write with: one must be able to go on in the folders that the other made. */
export const exportMountPatch: readonly object[] = [
  { op: 'add', path: `${container}/env/-`, value: { name: 'BACKUP_NFS_FOLDER', value: folder } },
  {
    op: 'add',
    path: `${container}/volumeMounts`,
    value: [{ name: 'backups', mountPath: `${folder}/${server}${path}` }],
  },
  { op: 'add', path: `${container}/securityContext/runAsUser`, value: qemuUser },
  { op: 'add', path: `${container}/securityContext/runAsGroup`, value: qemuUser },
  {
    op: 'add',
    path: '/spec/template/spec/volumes',
    value: [{ name: 'backups', persistentVolumeClaim: { claimName: name, readOnly: false } }],
  },
];
