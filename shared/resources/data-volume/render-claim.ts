// Claims with the label `cdi.kubevirt.io/applyStorageProfile: "true"` (created by `virtctl image-upload`) request the size of a disk;
// everything else is completed from the profile of their class: modes, class, and additional space for the file system. Called by admission at
// creation.
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import type { PersistentVolumeClaim, StorageClass } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { overheadOf } from '#shared/populate/storage/class-annotations.ts';
import { claimSetsOf, completeClaim, leastBytesOf, noModesMessage } from '#shared/populate/storage/profile.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import { volumeBytesFor } from '#shared/populate/population.ts';
import { configuredSettings } from '#shared/resources/cdi-config/look.ts';
import { classOf } from '#shared/resources/data-volume/defaults.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

export const asksForProfile = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.labels?.[cdiLabels.applyProfile] === 'true';

/** Objects read for the claim. */
interface Around {
  /** `undefined`: it does not exist, or there is no default one. */
  readonly storageClass?: StorageClass | undefined;
  readonly profile?: StorageProfile | undefined;
  readonly config?: CdiConfig | undefined;
}

type Spec = PersistentVolumeClaim['spec'];

/** Value of clients for the volume mode that the class prefers. */
const openMode = 'FromStorageProfile';

const isForFiles = ({ metadata }: PersistentVolumeClaim): boolean =>
  metadata.annotations?.[cdiAnnotations.contentType] === 'archive';

const askedMode = (claim: PersistentVolumeClaim): Spec['volumeMode'] => {
  const written = claim.spec.volumeMode as string | undefined;
  if (isForFiles(claim)) return 'Filesystem';
  return written === openMode || written === '' ? undefined : claim.spec.volumeMode;
};

/** A completed claim, or why it cannot be completed, in CDI's words. */
type Rendered = { readonly spec: Spec } | { readonly field: string; readonly message: string };

const renderModes = (claim: PersistentVolumeClaim, { storageClass, profile }: Around): Rendered => {
  const { volumeMode: _, accessModes = [], ...rest } = claim.spec;
  const volumeMode = askedMode(claim);
  const written = {
    ...(volumeMode === undefined ? {} : { volumeMode }),
    ...(accessModes.length === 0 ? {} : { accessModes }),
  };
  if (storageClass === undefined) {
    const message = 'PVC spec is missing accessMode and no storageClass to choose profile: write one of them';
    return accessModes.length === 0 ? { field: 'spec.accessModes', message } : { spec: { ...rest, ...written } };
  }
  const made = completeClaim(claimSetsOf(storageClass, profile), written);
  return made === undefined
    ? { field: 'spec.accessModes', message: noModesMessage(storageClass, volumeMode) }
    : { spec: { ...rest, ...made, storageClassName: storageClass.metadata.name } };
};

const shareOf = ({ storageClass, config }: Around): number => {
  const { filesystemOverhead } = config?.status ?? config?.spec ?? {};
  return overheadOf(storageClass, configuredSettings(defaultSettings, { filesystemOverhead }));
};

/** The requested size of the disk, and the resulting size of the claim; drivers refuse to restore a snapshot into a larger claim. */
const renderSize = (spec: Spec, around: Around): Rendered => {
  const field = 'spec.resources.requests.storage';
  const { requests = {} } = spec.resources ?? {};
  const bytes = parseQuantity(requests['storage']);
  if (bytes === undefined) return { field, message: 'PVC Spec is not valid - missing storage size' };
  if (bytes < 2 ** 20) return { field, message: 'PVC Spec is not valid - storage size should be at least 1MiB' };
  if ((spec.dataSource ?? spec.dataSourceRef)?.kind === volumeSnapshots.kind) return { spec };
  const inflated = spec.volumeMode === 'Block' ? bytes : volumeBytesFor(bytes, 'Filesystem', shareOf(around));
  const storage = formatQuantity(Math.max(inflated, leastBytesOf(around.storageClass, around.profile)));
  return { spec: { ...spec, resources: { ...spec.resources, requests: { ...requests, storage } } } };
};

/** Pure. */
export const renderClaim = (claim: PersistentVolumeClaim, around: Around): Rendered => {
  if (isForFiles(claim) && claim.spec.volumeMode === 'Block')
    return { field: 'spec.volumeMode', message: 'ContentType Archive cannot have block volumeMode' };
  const modes = renderModes(claim, around);
  return 'spec' in modes ? renderSize(modes.spec, around) : modes;
};

const readAround = async (kube: KubeClient, claim: PersistentVolumeClaim): Promise<Around> => {
  const { storageClassName } = claim.spec;
  const config = await kube.get(cdiConfigs, { name: cdiConfigName });
  // An empty name requests a statically provisioned volume without a class.
  if (storageClassName === '') return { config };
  const storageClass = await classOf(kube, storageClassName, !isForFiles(claim));
  const profile =
    storageClass === undefined ? undefined : await kube.get(storageProfiles, { name: storageClass.metadata.name });
  return { storageClass, profile, config };
};

export const reviewClaim = async (claim: PersistentVolumeClaim, kube: KubeClient): Promise<AdmissionAnswer> => {
  if (!asksForProfile(claim)) return allowed;
  const rendered = renderClaim(claim, await readAround(kube, claim));
  if (!('spec' in rendered)) return refused('Invalid', [rendered]);
  const completed: PersistentVolumeClaim = { ...claim, spec: rendered.spec };
  return { kind: 'allowed', object: completed };
};
