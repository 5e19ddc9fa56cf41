// Plans one disk of a virtual machine, from the template that Harvester's clients write on the machine. Pure. Called by sync.ts.
import { type UsedSource, toGrantText } from '#shared/access/permissions.ts';
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { type PersistentVolumeClaim, type StorageClass, persistentVolumeClaims } from '#shared/api/foreign/core.ts';
import { type ClaimTemplate, imageIdOf } from '#shared/api/harvester/claim-templates.ts';
import { type HarvesterImage, harvesterAnnotations, harvesterImageKind } from '#shared/api/harvester/image.ts';
import { annotations } from '#shared/api/names.ts';
import { apiVersionOf, type KubeObject, ownerOf } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import { type Action, create, patch, remove } from '#shared/populate/actions.ts';
import { withoutOwnMarks } from '#shared/resources/protected/marks.ts';
import type { RootDisk } from '#shared/backends/backend.ts';

/** A requested disk in a namespace. */
export interface DiskWish {
  readonly namespace: string;
  readonly name: string;
  readonly template: ClaimTemplate;
}

/** Its observed state; only what a decision depends on is read. */
export interface ObservedDisk {
  readonly claim?: PersistentVolumeClaim | undefined;
  readonly dataVolume?: DataVolume | undefined;
  /** Class of the claim; read only if it is to grow. */
  readonly storageClass?: StorageClass | undefined;
  /** Sources that are not permitted for this namespace. */
  readonly denied?: string;
  readonly image?: HarvesterImage | undefined;
  /** Initial content of a disk of the image. Default: it is not ready, or never will be. */
  readonly rootDisk?: RootDisk | undefined;
}

export interface Obstacle {
  readonly reason: string;
  readonly message: string;
}

export interface DiskPlan {
  readonly actions: readonly Action[];
  /** Why nothing is created, for users; undefined if there is nothing to do or an action. */
  readonly obstacle?: Obstacle;
}

const nothing: DiskPlan = { actions: [] };
const obstacle = (reason: string, message: string): DiskPlan => ({ actions: [], obstacle: { reason, message } });

export const planDisk = (wish: DiskWish, observed: ObservedDisk): DiskPlan => {
  if (observed.claim !== undefined) return planGrowth(wish, observed.claim, observed.storageClass);
  if (observed.dataVolume !== undefined) return nothing;
  const disk = `disk ${wish.name}`;
  if (observed.denied !== undefined) {
    const who = `system:serviceaccounts:${wish.namespace}`;
    const message = `${disk} is to be made ${observed.denied} of another namespace: allow the group ${who} to get virtualmachineimages there`;
    return obstacle('ImageNotAllowed', message);
  }
  const id = imageIdOf(wish.template);
  if (id === '') return { actions: [create(persistentVolumeClaims, buildClaim(wish, undefined))] };
  if (observed.image === undefined)
    return obstacle('ImageNotFound', `${disk} waits for the image ${id}, which does not exist`);
  if (observed.rootDisk === undefined)
    return obstacle('ImageNotReady', `${disk} waits for the image ${id}, which is not ready`);
  const { rootDisk } = observed;
  return {
    actions: [
      rootDisk.is === 'class'
        ? create(persistentVolumeClaims, buildClaim(wish, rootDisk.className))
        : create(dataVolumeKind.type, buildCopy(wish, observed.image, rootDisk)),
    ],
  };
};

const requestOf = ({ template }: DiskWish): string | undefined => template.spec?.resources?.requests?.['storage'];

/** A claim that is not bound yet is still being created with its requested size. */
const planGrowth = (wish: DiskWish, claim: PersistentVolumeClaim, storageClass: StorageClass | undefined): DiskPlan => {
  if (!wantsGrowth(wish, claim)) return nothing;
  if (storageClass?.allowVolumeExpansion !== true) {
    const message = `disk ${wish.name} cannot grow to ${requestOf(wish)}: its storage class does not expand volumes`;
    return obstacle('DiskCannotGrow', message);
  }
  return {
    actions: [
      patch(persistentVolumeClaims, claim, { spec: { resources: { requests: { storage: requestOf(wish) } } } }),
    ],
  };
};

/** Whether an existing claim must grow. */
export const wantsGrowth = (wish: DiskWish, { spec, status, metadata }: PersistentVolumeClaim): boolean => {
  const asked = parseQuantity(requestOf(wish)) ?? 0;
  const isThere = status?.phase === 'Bound' && metadata.deletionTimestamp === undefined;
  return isThere && asked > (parseQuantity(spec.resources?.requests?.['storage']) ?? 0);
};

/** As written, except for the class of an image whose storage creates the disks itself. */
const buildClaim = ({ namespace, name, template }: DiskWish, className: string | undefined): PersistentVolumeClaim =>
  ({
    apiVersion: 'v1',
    kind: persistentVolumeClaims.kind,
    metadata: {
      namespace,
      name,
      labels: withoutOwnMarks(template.metadata?.labels),
      annotations: withoutOwnMarks(template.metadata?.annotations),
    },
    spec: { ...template.spec, ...(className === undefined ? {} : { storageClassName: className }) },
  }) as PersistentVolumeClaim;

/** The permission of its author was checked before; admission does not check it for our own account. */
const marksOf = ({ namespace, template }: DiskWish, source: UsedSource): Readonly<Record<string, string>> => ({
  ...withoutOwnMarks(template.metadata?.annotations),
  ...(source.namespace === namespace ? {} : { [annotations.granted]: toGrantText([source]) ?? '' }),
});

const sizeOf = (wish: DiskWish) => {
  const storage = requestOf(wish);
  return storage === undefined ? {} : { resources: { requests: { storage } } };
};

const classOf = ({ template }: DiskWish, { status, spec }: HarvesterImage) => {
  const storageClassName = template.spec?.storageClassName ?? status?.storageClassName ?? spec.targetStorageClassName;
  return storageClassName === undefined ? {} : { storageClassName };
};

/** Modes of the class: clients write those of Longhorn, whatever the class is. */
const buildCopy = (
  wish: DiskWish,
  image: HarvesterImage,
  { volume, snapshot }: Extract<RootDisk, { readonly is: 'copy' }>,
): DataVolume => {
  const at = { namespace: image.metadata.namespace ?? '', name: snapshot ?? volume };
  const source = snapshot === undefined ? { pvc: at } : { snapshot: at };
  const use = snapshot === undefined ? 'clone-claim' : 'clone-snapshot';
  return {
    apiVersion: apiVersionOf(dataVolumeKind.type),
    kind: dataVolumeKind.type.kind,
    metadata: { namespace: wish.namespace, name: wish.name, annotations: marksOf(wish, { use, ...at }) },
    spec: { source, storage: { ...classOf(wish, image), ...sizeOf(wish) } },
  };
};

/** A machine may have been started from an image itself. */
const isGolden = (object: KubeObject): boolean =>
  ownerOf(object)?.groupKind.startsWith(`${harvesterImageKind.type.kind}.`) === true ||
  object.metadata.annotations?.[harvesterAnnotations.goldenImage] === 'true';

/** A disk is deleted with its machine: the data volume first, since a CDI would create its claim again. */
export const planRemoval = ({ claim, dataVolume }: ObservedDisk): readonly Action[] => {
  if (dataVolume !== undefined) return isGolden(dataVolume) ? [] : remove(dataVolumeKind.type, dataVolume);
  return claim === undefined || isGolden(claim) ? [] : remove(persistentVolumeClaims, claim);
};
