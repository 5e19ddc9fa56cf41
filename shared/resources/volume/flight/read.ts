// Who fetches the bytes that a volume is to hold, and how far that has come. Called by seen.ts.
import { type Lease, leases } from '#shared/api/foreign/coordination.ts';
import type { StorageClass } from '#shared/api/foreign/core.ts';
import { type DataVolume, dataVolumes } from '#shared/api/cdi/data-volume.ts';
import { annotations } from '#shared/api/names.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { contentOf, leaseNameOf } from '#shared/resources/volume/flight/content.ts';
import type { FlightSeen } from '#shared/resources/volume/flight/flight.ts';
import { readClaimOrigin } from '#shared/resources/volume/origin.ts';
import { isHeldBack } from '#shared/resources/volume/state.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

/** Name of the lease; `undefined` where nobody can share: the content is not known beforehand, or a consumer says where the volume lies. */
const sharedName = (volume: Volume, storageClass: StorageClass | undefined): string | undefined => {
  const content = contentOf(volume);
  if (content === undefined || storageClass === undefined || isHeldBack(volume, storageClass)) return undefined;
  return leaseNameOf(content, storageClass.metadata.name);
};

export const readFlight = async (
  kube: KubeClient,
  volume: Volume,
  storageClass: StorageClass | undefined,
): Promise<FlightSeen | undefined> => {
  const leaseName = sharedName(volume, storageClass);
  if (leaseName === undefined) return undefined;
  const { namespace = 'default' } = volume.ref;
  const lease = await kube.get(leases, { namespace, name: leaseName });
  if (lease === undefined || lease.spec.holderIdentity === volume.ref.uid) return { leaseName, lease };
  return { leaseName, lease, ...(await readHolder(kube, namespace, lease)) };
};

/** Of all kinds of volumes only DataVolumes are filled from bytes. */
const readHolder = async (
  kube: KubeClient,
  namespace: string,
  { metadata, spec }: Lease,
): Promise<Pick<FlightSeen, 'holder' | 'origin'>> => {
  const name = metadata.annotations?.[annotations.ownerName] ?? '';
  const holder: DataVolume | undefined = await kube.get(dataVolumes, { namespace, name });
  if (holder?.metadata.uid !== spec.holderIdentity) return {};
  const what = `PersistentVolumeClaim ${namespace}/${name}`;
  return { holder, origin: await readClaimOrigin(kube, { namespace, name }, { what, mayUse: () => true }) };
};
