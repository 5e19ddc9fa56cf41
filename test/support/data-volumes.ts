// Queries of volume flows: DataVolumes and their progress, and pods that use a claim like machines.
import { type DataVolume, type DataVolumeStatus, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type Pod, pods } from '#shared/api/foreign/core.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { namespace } from '#test/support/cluster.ts';
import { untilStatus } from '#test/support/until.ts';

export const aDataVolume = (
  name: string,
  spec: object,
  annotations: Record<string, string> = {},
  place: string = namespace,
): DataVolume => ({
  apiVersion: 'cdi.kubevirt.io/v1beta1',
  kind: 'DataVolume',
  metadata: { name, namespace: place, annotations },
  spec: spec as DataVolume['spec'],
});

/** Does nothing with it, and ends. */
export const aConsumer = (name: string, claimName: string, place = namespace): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: place },
  spec: {
    restartPolicy: 'Never',
    containers: [{ name: 'guest', image: defaultSettings.transferImage, command: ['/bin/true'] }],
    volumes: [{ name: 'disk', persistentVolumeClaim: { claimName } }],
  },
});

export interface DataVolumeFlow {
  /** The status once it matches. Fails with the last status after four minutes. */
  readonly until: (name: string, isSo: (status: DataVolumeStatus) => boolean) => Promise<DataVolumeStatus>;
  /** Creates it, and returns its status once it matches. Default: once it has ended. */
  readonly make: (object: DataVolume, isSo?: (status: DataVolumeStatus) => boolean) => Promise<DataVolumeStatus>;
  /** Simulates the first consumer of a claim: a pod, deleted once the volume exists. */
  readonly consume: (name: string) => Promise<void>;
}

export const isOver = ({ phase }: DataVolumeStatus): boolean => phase === 'Succeeded' || phase === 'Failed';
export const isIn =
  (wanted: string) =>
  ({ phase }: DataVolumeStatus): boolean =>
    phase === wanted;

/** `kube` is called on use: clusters are started by hooks. */
export const createDataVolumeFlow = (kube: () => KubeClient): DataVolumeFlow => {
  const { type } = dataVolumeKind;
  const until: DataVolumeFlow['until'] = (name, isSo) => untilStatus(kube(), type, { namespace, name }, isSo);
  return {
    until,
    make: async (object, isSo = isOver) => {
      await kube().create(type, object);
      return until(object.metadata.name, isSo);
    },
    consume: async (name) => {
      await kube().create(pods, aConsumer(`virt-launcher-${name}`, name));
      await until(name, isOver);
      await kube().delete(pods, { namespace, name: `virt-launcher-${name}` });
    },
  };
};
