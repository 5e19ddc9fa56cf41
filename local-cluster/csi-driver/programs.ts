// The driver on a node: its processes, and the objects that tell Kubernetes of it. Called by ../node/start.ts.
import { join } from 'node:path';
import type { NodePaths } from '#local-cluster/node/layout.ts';
import type { KubeObject } from '#shared/api/object.ts';

export const driverName = 'files.csi.bullion.dev';

/** With fields of any kind. */
export type AnyObject = KubeObject & Readonly<Record<string, unknown>>;

interface Program {
  readonly name: string;
  readonly args: readonly string[];
}

const socketOf = ({ kubelet }: NodePaths): string => join(kubelet, 'plugins', driverName, 'csi.sock');

export const storagePrograms = (
  paths: NodePaths,
  { protocols }: { readonly protocols: string },
): readonly Program[] => [
  {
    name: 'csi-driver',
    args: [
      `--protocols=${protocols}`,
      `--data=${paths.volumes}`,
      `--socket=${socketOf(paths)}`,
      `--registration=${join(paths.kubelet, 'plugins_registry', `${driverName}-reg.sock`)}`,
    ],
  },
];

/** Kubernetes' own controllers beside a driver; they need its socket. */
export const snapshotterPrograms = (paths: NodePaths): readonly Program[] => {
  const access = [`--kubeconfig=${paths.kubeconfig}`];
  const beside = [...access, `--csi-address=${socketOf(paths)}`];
  return [
    { name: 'snapshot-controller', args: access },
    { name: 'csi-provisioner', args: [...beside, '--default-fstype=ext4', '--extra-create-metadata'] },
    { name: 'csi-snapshotter', args: beside },
    { name: 'csi-resizer', args: beside },
  ];
};

const storageClass = (name: string, mode: 'Immediate' | 'WaitForFirstConsumer', isDefault: boolean): AnyObject => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: {
    name,
    ...(isDefault ? { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } : {}),
  },
  provisioner: driverName,
  volumeBindingMode: mode,
  allowVolumeExpansion: true,
  reclaimPolicy: 'Delete',
});

/** Classes have the names that they have in the embedded cluster. */
export const storageObjects: readonly AnyObject[] = [
  {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSIDriver',
    metadata: { name: driverName },
    spec: {
      attachRequired: false,
      podInfoOnMount: false,
      fsGroupPolicy: 'File',
      volumeLifecycleModes: ['Persistent'],
    },
  },
  storageClass('local', 'Immediate', true),
  storageClass('local-wffc', 'WaitForFirstConsumer', false),
  {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { name: 'local', annotations: { 'snapshot.storage.kubernetes.io/is-default-class': 'true' } },
    driver: driverName,
    deletionPolicy: 'Delete',
  },
];
