// Reads of the backingimage backend. Names are resolved once and recorded in status.
import {
  type PersistentVolumeClaim,
  type StorageClass,
  storageClasses,
  persistentVolumeClaims,
} from '#shared/api/foreign/core.ts';
import { type BackingImage, backingImages, longhornNamespace } from '#shared/api/foreign/longhorn.ts';
import { labels } from '#shared/api/names.ts';
import type { KubeObject } from '#shared/api/object.ts';
import { foldCopies } from '#shared/backends/backingimage/copies.ts';
import {
  backingImageNames,
  backingImageOf,
  imageIdAnnotation,
  imageIdOf,
  type Names,
  storageClassNames,
} from './manifests.ts';
import { type ObservedOrigin, readOrigin } from '#shared/backends/backingimage/origin.ts';
import { readExported } from '#shared/backends/source-claim.ts';
import { isRetryDue } from '#shared/populate/filled.ts';
import { readClass } from '#shared/populate/reading.ts';
import type { KubeClient } from '#shared/clients/kube/client.ts';
import { eachIfServed } from '#shared/clients/kube/tolerant.ts';
import { type Image, isInstalled, type Need } from '#shared/backends/backend.ts';
import { virtualMachineBackups } from '#shared/api/foreign/backup.ts';
import type { LookAtFile } from '#shared/transfer/file-look.ts';

export interface ObservedBackingImage {
  readonly backingImage?: BackingImage | undefined;
  /** Read if it is to be created, or if the image is usable. */
  readonly storageClass?: StorageClass | undefined;
  /** Whether Longhorn is installed; read only if a backing image is to be created. */
  readonly isInstalled: boolean;
  /** The class to copy parameters from if none were decided at admission. */
  readonly template?: StorageClass | undefined;
  /** Read only if a backing image is to be created. */
  readonly origin?: ObservedOrigin | undefined;
  /** The claim it is exported from; read only if a backing image is to be created. */
  readonly exported?: PersistentVolumeClaim | undefined;
  /** Objects that depend on the image; read only if it is to be removed. */
  readonly users: readonly string[];
  /** An object with our own name and another owner. It is never changed. */
  readonly foreign?: KubeObject | undefined;
}

const nothing: ObservedBackingImage = { isInstalled: true, users: [] };

export const check = async (kube: KubeClient, image: Image, look?: LookAtFile): Promise<ObservedBackingImage> => {
  if (image.state.phase === 'Failed' && !isRetryDue(image) && !image.deleting) return nothing;
  const found = await readBackingImage(kube, image);
  if (image.deleting) return readForRemoval(kube, image, found);
  if (found.own === undefined) return readForStart(kube, image, { foreign: found.foreign, look });
  const isUsable = foldCopies(found.own).is === 'ready';
  const classes = isUsable ? await readForClass(kube, image, found.own) : {};
  return { ...nothing, backingImage: found.own, ...classes };
};

interface Found<T> {
  readonly own?: T | undefined;
  /** An object of another owner with our name. */
  readonly foreign?: T | undefined;
}

const isOurs = ({ metadata }: KubeObject, image: Image): boolean => {
  const uid = metadata.labels?.[labels.ownerUid];
  return uid === undefined ? metadata.annotations?.[imageIdAnnotation] === imageIdOf(image) : uid === image.ref.uid;
};

/** A conflict of the own name is found when it is created; one under an older name must be looked for. */
const candidatesFor = ({ trustsStatus }: Image, { own, candidates }: Names): readonly string[] =>
  trustsStatus === true ? candidates.filter((name) => name !== own) : candidates;

const readBackingImage = async (kube: KubeClient, image: Image): Promise<Found<BackingImage>> => {
  const known = image.state.children?.backingImage;
  const { own } = backingImageNames(image);
  const names = known === undefined ? candidatesFor(image, backingImageNames(image)) : [known];
  const objects = await Promise.all(
    names.map((name) => kube.get(backingImages, { namespace: longhornNamespace, name })),
  );
  const present = objects.filter((object) => object !== undefined);
  const ours = present.find((object) => isOurs(object, image));
  return ours === undefined ? { foreign: present.find(({ metadata }) => metadata.name === own) } : { own: ours };
};

const readStorageClass = async (kube: KubeClient, image: Image, backingImage: string): Promise<Found<StorageClass>> => {
  const known = image.state.children?.storageClass;
  const { own } = storageClassNames(image);
  const names = known === undefined ? candidatesFor(image, storageClassNames(image)) : [known];
  const objects = await Promise.all(names.map((name) => kube.get(storageClasses, { name })));
  const present = objects.filter((object) => object !== undefined);
  const ours = present.find((object) => backingImageOf(object) === backingImage);
  return ours === undefined ? { foreign: present.find(({ metadata }) => metadata.name === own) } : { own: ours };
};

/** Parameters were decided at admission, unless the image bypassed it. */
const readTemplate = async (kube: KubeClient, { storage }: Image): Promise<StorageClass | undefined> =>
  storage.classParameters === undefined ? readClass(kube, storage.className) : undefined;

const readForClass = async (
  kube: KubeClient,
  image: Image,
  { metadata }: BackingImage,
): Promise<Partial<ObservedBackingImage>> => {
  const { own, foreign } = await readStorageClass(kube, image, metadata.name);
  return own === undefined ? { foreign, template: await readTemplate(kube, image) } : { storageClass: own };
};

const readForRemoval = async (
  kube: KubeClient,
  image: Image,
  found: Found<BackingImage>,
): Promise<ObservedBackingImage> => {
  const name = found.own?.metadata.name ?? image.state.children?.backingImage ?? backingImageNames(image).own;
  const { own: storageClass } = await readStorageClass(kube, image, name);
  return { ...nothing, backingImage: found.own, storageClass, users: await findUsers(kube, image, storageClass) };
};

const readForStart = async (
  kube: KubeClient,
  image: Image,
  { foreign, look }: { readonly foreign: BackingImage | undefined; readonly look: LookAtFile | undefined },
): Promise<ObservedBackingImage> => {
  if (foreign !== undefined) return { ...nothing, foreign };
  if (image.state.phase === 'Available') return nothing;
  if (!(await isInstalled(kube, need))) return { ...nothing, isInstalled: false };
  const [storageClass, template, origin, exported] = await Promise.all([
    readStorageClass(kube, image, backingImageNames(image).own),
    readTemplate(kube, image),
    readOrigin(kube, image, look),
    readExported(kube, image),
  ]);
  return { ...nothing, storageClass: storageClass.own, foreign: storageClass.foreign, template, origin, exported };
};

// Requirements of the backingimage backend.

export const longhornMissing =
  'Longhorn is not installed in this cluster: install it, or write `backend: csi`, which uses any CSI storage class';

export const need: Need = {
  type: backingImages,
  namespace: longhornNamespace,
  because: longhornMissing,
};

// Objects that depend on a backing image: volumes of its class and backups of these, which are useless without it. Called when it is to be
// removed.

/** Enough for a message. */
const most = 3;

/** The first few, as `PersistentVolumeClaim default/root`. All namespaces are listed page by page. */
const findUsers = async (
  kube: KubeClient,
  { state }: Pick<Image, 'state'>,
  storageClass: StorageClass | undefined,
): Promise<readonly string[]> => {
  const className = storageClass?.metadata.name ?? state.storageClassName;
  if (className === undefined) return [];
  const volumes = await firstFew(
    kube.listAll(persistentVolumeClaims),
    ({ spec: { storageClassName } }) => storageClassName === className,
  );
  return volumes.length >= most ? volumes : [...volumes, ...(await findBackups(kube, className))].slice(0, most);
};

/** Their volumes are restored in their former class, which needs the image (harvester/backups-of-image). Empty if Harvester is not installed. */
const findBackups = (kube: KubeClient, className: string): Promise<readonly string[]> =>
  firstFew(eachIfServed(kube, virtualMachineBackups), ({ status }) =>
    (status?.volumeBackups ?? []).some((volume) => volume.persistentVolumeClaim?.spec?.storageClassName === className),
  );

const firstFew = async <T extends KubeObject>(
  objects: AsyncIterable<T>,
  isOne: (object: T) => boolean,
): Promise<readonly string[]> => {
  const found: string[] = [];
  for await (const object of objects) {
    if (isOne(object)) found.push(`${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`);
    if (found.length >= most) break;
  }
  return found;
};
