// The source of a backing image that is another object: a Longhorn volume, or another image. Reads it, and determines obstacles.
import { mayUseOf, readGrants } from '#shared/access/permissions.ts';
import {
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  persistentVolumeClaims,
  persistentVolumes,
  storageClasses,
} from '#shared/api/foreign/core.ts';
import { backingImages, longhornDriver, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { isTrue } from '#shared/api/conditions.ts';
import { type HarvesterImage, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { labels } from '#shared/api/names.ts';
import { groupKindOf, refOf, sourceLabel } from '#shared/api/object.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import { backingImageNames, type BackingImageSource, secretOf } from './manifests.ts';
import { foreignSecretProblem, isEncrypted } from '#shared/backends/rules/encryption.ts';
import type { Image, ImageCloneSource } from '#shared/backends/backend.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { type Source, type SourceType, isOneOf } from '#shared/populate/source.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';
import type { Inspection } from '#shared/transfer/report.ts';

export type ObservedOrigin =
  | { readonly is: 'ready'; readonly origin: BackingImageSource }
  /** Does not exist yet. */
  | { readonly is: 'waiting'; readonly reason: string; readonly message: string }
  /** In use by another image, which has its own deadline: any number of images may wait. */
  | { readonly is: 'busy'; readonly reason: string; readonly message: string }
  /** Never usable. */
  | { readonly is: 'refused'; readonly reason: string; readonly message: string };

const ready = (
  sourceType: BackingImageSource['sourceType'],
  parameters: BackingImageSource['parameters'],
): ObservedOrigin => ({
  is: 'ready',
  origin: { sourceType, parameters },
});
const waiting = (reason: string, message: string): ObservedOrigin => ({ is: 'waiting', reason, message });
const refused = (reason: string, message: string): ObservedOrigin => ({ is: 'refused', reason, message });

/** Supported types of sources. */
export const longhornSources = [
  'http',
  'upload',
  'export-from-volume',
  'clone',
  'restore',
] as const satisfies readonly SourceType[];
type LonghornSource = (typeof longhornSources)[number];

const readers: {
  readonly [T in LonghornSource]: (
    source: Source<T>,
    image: Image,
    kube: KubeClient,
    look: LookAtFile | undefined,
  ) => ObservedOrigin | Promise<ObservedOrigin>;
} = {
  http: ({ url }, _image, _kube, look) => readFile(url, look),
  upload: () => ready('upload', {}),
  'export-from-volume': ({ namespace, claimName }, _image, kube) => readVolume(kube, namespace, claimName),
  clone: (source, image, kube) => readImage(kube, image, source),
  restore: ({ url }) => ready('restore', { 'backup-url': url }),
};

const isTaken = isOneOf(longhornSources);

const readTaken = <T extends LonghornSource>(
  source: Source<T>,
  image: Image,
  kube: KubeClient,
  look: LookAtFile | undefined,
) => readers[source.type](source, image, kube, look);

export const readOrigin = async (kube: KubeClient, image: Image, look?: LookAtFile): Promise<ObservedOrigin> => {
  const { source } = image;
  return isTaken(source)
    ? readTaken(source, image, kube, look)
    : refused('InvalidSpec', `a ${source?.type ?? 'missing'} source cannot become a backing image`);
};

const kept: readonly string[] = ['raw', 'iso', 'qcow2'];

/** Why Longhorn, which stores files unchanged, would present another disk than the file contains. */
export const unkeptFormat = ({ format, compression }: Inspection): string | undefined => {
  if (compression === 'none' && kept.includes(format)) return undefined;
  const what = compression === 'none' ? format : `${format} in ${compression}`;
  return `Longhorn stores files unchanged, and volumes of this one would not be disks (${what}): unpack or convert it to raw or qcow2, or create the image with backend: csi`;
};

const sectorBytes = 512;

/** Volumes of such a file never attach: Longhorn bypasses the page cache, which requires whole sectors. */
export const halfSector = (size: number): string | undefined =>
  size % sectorBytes === 0
    ? undefined
    : `the file has ${size} bytes, and Longhorn requires a multiple of ${sectorBytes}: pad it (truncate -s %${sectorBytes} <file>)`;

/** The header of a qcow2 contains the size of its disk; a file of unknown length is checked after Longhorn has received it. */
const unfitFile = (inspection: Inspection): string | undefined =>
  unkeptFormat(inspection) ?? (inspection.format === 'qcow2' ? undefined : halfSector(inspection.size ?? 0));

/** Longhorn inspects a file only after the download, follows no reference in it, and accepts many files that no machine can boot. */
const readFile = async (url: string, look: LookAtFile | undefined): Promise<ObservedOrigin> => {
  if (look === undefined) return waiting('SourceNotReady', 'waiting for cron-tick to inspect the file');
  const looked = await look(url);
  if (looked.is !== 'found') return looked;
  const problem = unfitFile(looked.inspection);
  return problem === undefined ? ready('download', { url }) : refused('UnsupportedFormat', problem);
};

const readVolume = async (kube: KubeClient, namespace: string, name: string): Promise<ObservedOrigin> => {
  const what = `PersistentVolumeClaim ${namespace}/${name}`;
  const claim = await kube.get(persistentVolumeClaims, { namespace, name });
  if (claim === undefined) return waiting('SourceNotFound', `${what} does not exist`);
  if (claim.metadata.deletionTimestamp !== undefined) return waiting('SourceDeleted', `${what} is being deleted`);
  if (claim.status?.phase !== 'Bound') return waiting('SourceNotReady', `${what} is not bound yet`);
  return judgeVolume(kube, claim, what);
};

const judgeVolume = async (
  kube: KubeClient,
  { spec }: PersistentVolumeClaim,
  what: string,
): Promise<ObservedOrigin> => {
  const [volume, storageClass] = await Promise.all([
    kube.get(persistentVolumes, { name: spec.volumeName ?? '' }),
    kube.get(storageClasses, { name: spec.storageClassName ?? '' }),
  ]);
  const obstacle = obstacleOf(volume, storageClass);
  if (obstacle !== undefined) return refused(obstacle.reason, `${what} ${obstacle.message}`);
  const name = volume?.spec.csi?.volumeHandle ?? spec.volumeName ?? '';
  return ready('export-from-volume', { 'volume-name': name, 'export-type': 'raw' });
};

/** Volumes that Longhorn would reject, or export unreadably. */
const obstacleOf = (
  volume: PersistentVolume | undefined,
  storageClass: StorageClass | undefined,
): { readonly reason: string; readonly message: string } | undefined => {
  const driver = volume?.spec.csi?.driver ?? storageClass?.provisioner ?? 'no known driver';
  if (driver !== longhornDriver) {
    const advice = 'export it to an image whose backend takes any volume';
    return { reason: 'SourceElsewhere', message: `is provisioned by ${driver}, not by Longhorn: ${advice}` };
  }
  const reason = 'SourceUnsupported';
  if (storageClass?.parameters?.['dataEngine'] === 'v2') {
    return { reason, message: "is of Longhorn's data engine v2, which cannot be exported" };
  }
  return isEncrypted(storageClass?.parameters)
    ? { reason, message: 'is encrypted, and the exported image would not be readable' }
    : undefined;
};

const readImage = async (kube: KubeClient, image: Image, source: ImageCloneSource): Promise<ObservedOrigin> => {
  const what = `image ${source.namespace}/${source.imageName}`;
  const object = await kube.get(harvesterImageKind.type, { namespace: source.namespace, name: source.imageName });
  if (object === undefined) return waiting('SourceNotFound', `${what} does not exist`);
  if (object.metadata.deletionTimestamp !== undefined) return waiting('SourceDeleted', `${what} is being deleted`);
  if (!isImported(object)) return waiting('SourceNotReady', `${what} is not ready`);
  const key = { namespace: longhornNamespace, name: nameOfBackingImage(object) };
  const backingImage = await kube.get(backingImages, key);
  if (backingImage === undefined) return refused('SourceElsewhere', `${what} is not stored in Longhorn`);
  if (backingImage.spec.dataEngine === 'v2') {
    return refused('SourceUnsupported', `${what} is of Longhorn's data engine v2, which cannot be cloned`);
  }
  const other = await findOtherClone(kube, image, source);
  if (other !== undefined)
    return { is: 'busy', reason: 'SourceBusy', message: `${what} is being cloned to ${other}: one at a time` };
  return cloneOf(image, object, { what, backingImage: key.name, operation: source.operation });
};

const isImported = ({ status }: HarvesterImage): boolean => isTrue(status?.conditions, 'Imported');

const nameOfBackingImage = (object: HarvesterImage): string =>
  object.status?.children?.backingImage ?? backingImageNames({ ref: refOf(object), source: undefined }).own;

/** On each clone, to find the clones of one source. */
export const cloneLabels = ({ ref, source }: Image): Readonly<Record<string, string>> =>
  source?.type === 'clone' ? { [labels.source]: labelOf(ref, source) } : {};

const labelOf = (ref: Image['ref'], { namespace, imageName }: ImageCloneSource): string =>
  sourceLabel({ groupKind: groupKindOf(ref), namespace, name: imageName });

/** Concurrent clones of one source fail in Longhorn (longhorn#11262). */
const findOtherClone = async (
  kube: KubeClient,
  { ref }: Image,
  source: ImageCloneSource,
): Promise<string | undefined> => {
  const labelSelector = `${labels.source}=${labelOf(ref, source)}`;
  const { items } = await kube.list(backingImages, { namespace: longhornNamespace, labelSelector });
  const other = items.find(
    (item) => item.metadata.labels?.[labels.ownerUid] !== ref.uid && foldCopies(item).is === 'running',
  );
  return other?.metadata.annotations?.['harvesterhci.io/imageId'] ?? other?.metadata.name;
};

/** The clone uses the key of the source image; the author of that must have had access to the key. */
const foreignKeyOf = (source: HarvesterImage): string | undefined =>
  foreignSecretProblem(source.spec.storageClassParameters, {
    namespace: source.metadata.namespace,
    mayUse: mayUseOf(source.metadata.namespace, readGrants(source)),
  });

/** Encryption uses the Secret of the new image, decryption that of the old one. */
const cloneOf = (
  image: Image,
  source: HarvesterImage,
  { what, backingImage, operation }: { what: string; backingImage: string; operation: ImageCloneSource['operation'] },
): ObservedOrigin => {
  if (operation === undefined) return ready('clone', { 'backing-image': backingImage, encryption: 'ignore' });
  const parameters = operation === 'encrypt' ? image.storage.classParameters : source.spec.storageClassParameters;
  const secret = secretOf(parameters);
  const whose = operation === 'encrypt' ? 'the storage class of this image' : what;
  if (secret === undefined) return refused('SecretMissing', `${whose} has no Secret to ${operation} with`);
  const problem = operation === 'decrypt' ? foreignKeyOf(source) : undefined;
  if (problem !== undefined) return refused('NotAuthorized', `${what}: ${problem}`);
  return ready('clone', {
    'backing-image': backingImage,
    encryption: operation,
    secret: secret.name,
    'secret-namespace': secret.namespace,
  });
};
