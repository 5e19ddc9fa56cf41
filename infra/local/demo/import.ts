// Imports one image into a local cluster and watches it until the end. Called by the demo and flow tests.
import type { CommonImageStatus } from '#shared/api/image-status.ts';
import { type HyperCloudImage, hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { persistentVolumeClaims, persistentVolumes } from '#shared/api/foreign/core.ts';
import type { ObjectKey } from '#shared/api/object.ts';
import type { Cluster } from '#infra/local/cluster.ts';
import { driverOf, handleOf, volumeModeOf } from '#local-cluster/controllers/volumes/facts.ts';
import { isOurDriver } from '#local-cluster/controllers/volumes/classes.ts';
import { Unavailable } from '#shared/runtime/errors.ts';
import { setTimeout as sleep } from 'node:timers/promises';

export const buildDemoImage = (url: string): HyperCloudImage => ({
  apiVersion: 'hypercloud.tmaxanc.com/v1alpha1',
  kind: 'VirtualMachineImage',
  metadata: { name: 'demo', namespace: 'default' },
  spec: { storageClassName: 'local', source: { http: url } },
});

export const readyOf = (status: CommonImageStatus | undefined) =>
  status?.conditions?.find(({ type }) => type === 'Ready');

/** Calls `onStatus` with every observed status; resolves when the image is usable or failed. Throws Unavailable if it is deleted. */
export const followImage = async (
  { kube }: Pick<Cluster, 'kube'>,
  key: ObjectKey,
  onStatus: (status: NonNullable<HyperCloudImage['status']>) => void,
): Promise<NonNullable<HyperCloudImage['status']>> => {
  for (;;) {
    const image = await kube.get(hyperCloudImageKind.type, key);
    if (image === undefined) throw new Unavailable(`image ${key.name} is gone`);
    if (image.status !== undefined) onStatus(image.status);
    const { state } = image.status ?? {};
    if (image.status !== undefined && (state === 'Available' || state === 'Error')) return image.status;
    await sleep(200);
  }
};

/** Path of the disk in a claim's volume on the host. */
export const diskOf = async ({ kube, controllers }: Cluster, claim: ObjectKey): Promise<string> => {
  const { spec } = (await kube.get(persistentVolumeClaims, claim)) ?? {};
  const volume = await kube.get(persistentVolumes, { name: spec?.volumeName ?? 'none' });
  if (volume === undefined || !isOurDriver(driverOf(volume)))
    throw new Unavailable(`claim ${claim.name} has no local volume`);
  const path = controllers.directory.pathOf(handleOf(volume), volumeModeOf(volume.spec));
  return volumeModeOf(volume.spec) === 'Block' ? path : `${path}/disk.img`;
};
