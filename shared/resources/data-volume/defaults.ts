// Completes the `storage` of a DataVolume from class and StorageProfile at its creation, so that its author sees the values. A clone is not
// completed: its class and modes depend on its source.
import { type CdiConfig, cdiConfigName, cdiConfigs } from '#shared/api/cdi/cdi-config.ts';
import type { DataVolume } from '#shared/api/cdi/data-volume.ts';
import { cdiAnnotations, cdiLabels } from '#shared/api/cdi/names.ts';
import { type StorageProfile, storageProfiles } from '#shared/api/cdi/storage-profile.ts';
import { type PersistentVolumeClaim, type StorageClass, storageClasses } from '#shared/api/foreign/core.ts';
import { volumeSnapshots } from '#shared/api/foreign/snapshot.ts';
import { formatQuantity, parseQuantity } from '#shared/api/quantity.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { volumeBytesFor } from '#shared/populate/population.ts';
import { defaultSettings } from '#shared/populate/settings.ts';
import {
  claimSetsOf,
  completeClaim,
  defaultClassOf,
  leastBytesOf,
  noModesMessage,
  overheadOf,
} from '#shared/populate/storage/profile.ts';
import { configuredSettings } from '#shared/resources/cdi-config/look.ts';
import type { DefaultRule } from '#shared/resources/rule.ts';
import { type AdmissionAnswer, allowed, refused } from '#shared/runtime/admission-function.ts';

type Storage = NonNullable<DataVolume['spec']['storage']>;
type Fill = DefaultRule<DataVolume>['fill'];

/** More classes than any cluster has. */
const pageSize = 200;

const isMadeFromVolume = ({ spec: { source, sourceRef } }: DataVolume): boolean =>
  sourceRef !== undefined || source?.pvc !== undefined || source?.snapshot !== undefined;

/** The named class, or the default one. */
const classOf = async (
  kube: KubeClient,
  storageClassName: string | undefined = '',
  isDisk: boolean,
): Promise<StorageClass | undefined> =>
  storageClassName === ''
    ? defaultClassOf((await kube.list(storageClasses, { limit: pageSize })).items, isDisk)
    : kube.get(storageClasses, { name: storageClassName });

/** A class that does not exist yet, or offers nothing, completes nothing: the volume waits for it, and is completed then. */
const complete = async (kube: KubeClient, storage: Storage, isDisk: boolean): Promise<Storage> => {
  const storageClass = await classOf(kube, storage.storageClassName, isDisk);
  if (storageClass === undefined) return storage;
  const { name } = storageClass.metadata;
  const profile = await kube.get(storageProfiles, { name });
  const { volumeMode, accessModes = [] } = storage;
  const asked = {
    ...(volumeMode === undefined ? {} : { volumeMode }),
    ...(accessModes.length === 0 ? {} : { accessModes }),
  };
  const made = completeClaim(claimSetsOf(storageClass, profile), asked);
  return {
    ...storage,
    storageClassName: name,
    ...(made === undefined ? {} : { volumeMode: made.volumeMode, accessModes: [...made.accessModes] }),
  };
};

/** Values decided once are kept: a client that replaces the object with its own manifest does not know them. */
const keep = (storage: Storage, { storageClassName, volumeMode, accessModes }: Storage): Storage => ({
  ...(storageClassName === undefined ? {} : { storageClassName }),
  ...(volumeMode === undefined ? {} : { volumeMode }),
  ...(accessModes === undefined ? {} : { accessModes }),
  ...storage,
});

/** The files of an archive need a file system, whatever the class prefers. */
const forFiles = { volumeMode: 'Filesystem' } as const;

const fillStorage: Fill = async ({ object, before, kube }) => {
  const { storage } = object.spec;
  if (storage === undefined || isMadeFromVolume(object)) return object;
  if (before !== undefined) {
    const { storage: kept } = before.spec;
    return kept === undefined ? object : { ...object, spec: { ...object.spec, storage: keep(storage, kept) } };
  }
  const isDisk = object.spec.contentType !== 'archive';
  const asked = isDisk ? storage : { ...forFiles, ...storage };
  return { ...object, spec: { ...object.spec, storage: await complete(kube, asked, isDisk) } };
};

export const dataVolumeDefaults: readonly DefaultRule<DataVolume>[] = [{ id: 'storage', fill: fillStorage }];

// Claims with the label `cdi.kubevirt.io/applyStorageProfile: "true"` (created by `virtctl image-upload`) request the size of a disk;
// everything else is completed from the profile of their class: modes, class, and additional space for the file system. Called by admission at
// creation.

const asksForProfile = ({ metadata }: PersistentVolumeClaim): boolean =>
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
const renderClaim = (claim: PersistentVolumeClaim, around: Around): Rendered => {
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
