// A golden HyperCloud image as the source of a volume: its claim, and its snapshot where it has one. Called by the plans of volumes.
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import type { MayUse } from '#shared/access/grant.ts';
import { type Origin, readClaimOrigin, waitFor } from '#shared/backends/origin.ts';

export const readImageOrigin = async (
  kube: KubeClient,
  key: { readonly namespace: string; readonly name: string },
  mayUse: MayUse,
): Promise<Origin> => {
  const what = `image ${key.name}`;
  const object = await kube.get(hyperCloudImageKind.type, key);
  if (object === undefined) return waitFor('SourceNotFound', `${what} does not exist in namespace ${key.namespace}`);
  const { deleting, state } = hyperCloudImages.toImage(object);
  if (deleting) return waitFor('SourceDeleted', `${what} is being deleted`);
  if (state.phase !== 'Available') return waitFor('SourceNotReady', `${what} is not ready: ${state.message}`);
  const snapshot = await readySnapshot(kube, { ...key, name: state.children?.snapshot });
  return readClaimOrigin(kube, { ...key, name: state.children?.volume ?? '' }, { what, snapshot, mayUse });
};

const readySnapshot = async (
  kube: KubeClient,
  { namespace, name }: { readonly namespace: string; readonly name: string | undefined },
): Promise<string | undefined> => {
  const snapshot = name === undefined ? undefined : await kube.get(volumeSnapshots, { namespace, name });
  const isUsable = snapshot?.status?.readyToUse === true && snapshot.metadata.deletionTimestamp === undefined;
  return isUsable ? name : undefined;
};
