// What an object asks for, as far as limits are about it: one row for each kind that they count. Pure.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { apiVersionOf, type KubeObject, ownerOf, type ResourceType } from '#shared/api/object.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { Image } from '#shared/backends/backend.ts';
import { formatReference } from '#shared/clients/registry/reference.ts';
import type { CronSource } from '#shared/golden/source.ts';
import type { Filled } from '#shared/populate/filled.ts';
import { type Volume, bytesOf } from '#shared/populate/volume/volume.ts';
import { readCron } from '#shared/resources/data-import-cron/cron.ts';
import { classNameOf, sizeOf } from '#shared/resources/data-import-cron/template.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import { virtualMachinePvcs, virtualMachineVolumes } from '#shared/resources/hypercloud-volume/dialect.ts';
import { type Signable, signableOf } from './signed.ts';
import { type WrittenSource, writtenSources } from './places.ts';

export type Counted = 'images' | 'volumes';

export interface Demand {
  /** `undefined`: it is not counted itself, only what is made for it. */
  readonly counts: Counted | undefined;
  /** Default: the default class of the cluster, or that of its source. */
  readonly className?: string | undefined;
  /** Default: known once its source was inspected. */
  readonly bytes?: number | undefined;
  readonly sources: readonly WrittenSource[];
  readonly isUpload: boolean;
  /** What may have to be signed. */
  readonly signable?: Signable | undefined;
  /** Whether something was made for it, which nothing takes away again. */
  readonly isBegun: boolean;
  /** Whether its claim was made: what is made later, beside it, is temporary. */
  readonly hasClaim: boolean;
}

/** Reasons for which an object waits, without a deadline: somebody has to do something. */
export const limitReasons = {
  quota: 'QuotaReached',
  source: 'SourceNotAllowed',
  storageClass: 'StorageClassNotAllowed',
  signature: 'SignatureRequired',
} as const;

/** One that is brought back has its bytes before limits are asked, so that they are not lost while it waits. */
const isBegun = ({ state: { children, phase, reason } }: Pick<Filled, 'state'>): boolean =>
  phase === 'Available' || (children !== undefined && !Object.values<string>(limitReasons).includes(reason));

const hasClaim = ({ state }: Pick<Filled, 'state'>): boolean => state.children?.volume !== undefined;

const ofImage = (image: Image): Demand => ({
  counts: 'images',
  className: image.storage.className ?? image.state.storageClassName,
  bytes: image.storage.capacityBytes,
  sources: writtenSources(image.source),
  isUpload: image.source?.type === 'upload',
  signable: signableOf(image.source, image.checksum),
  isBegun: isBegun(image),
  hasClaim: hasClaim(image),
});

const ofVolume = (volume: Volume): Demand => {
  const from = bytesOf(volume);
  return {
    counts: 'volumes',
    className: volume.claim.className ?? volume.state.storageClassName,
    bytes: volume.claim.bytes ?? volume.claim.diskBytes,
    sources: writtenSources(from),
    isUpload: from?.type === 'upload',
    signable: signableOf(from, volume.checksum),
    isBegun: isBegun(volume),
    hasClaim: hasClaim(volume),
  };
};

/** Of a cron's source, as it was written. */
export const writtenByCron = (source: CronSource | undefined): readonly WrittenSource[] => {
  switch (source?.type) {
    case 'registry':
      return writtenSources({ type: 'registry', url: `docker://${formatReference(source.image)}` });
    case 'http':
      return [source.url, source.checksumUrl].flatMap((url) =>
        url === undefined ? [] : writtenSources({ type: 'http', url }),
      );
    case 's3':
      return writtenSources({ type: 'http', url: source.url });
    default:
      return [];
  }
};

const ofCron = (object: DataImportCron): Demand => {
  const cron = readCron(object);
  return {
    counts: undefined,
    className: classNameOf(cron),
    bytes: parseQuantity(sizeOf(cron)),
    sources: writtenByCron(cron.source),
    isUpload: false,
    isBegun: true,
    hasClaim: true,
  };
};

interface LimitedKind {
  readonly type: ResourceType;
  readonly read: (object: KubeObject) => Demand;
}

const row = <T extends KubeObject>(type: ResourceType<T>, read: (object: T) => Demand): LimitedKind => ({
  type: type as ResourceType,
  read: (object) => read(object as T),
});

export const limitedKinds: readonly LimitedKind[] = [
  row(hyperCloudImages.kind.type, (object) => ofImage(hyperCloudImages.toImage(object))),
  row(harvesterImages.kind.type, (object) => ofImage(harvesterImages.toImage(object))),
  row(dataVolumes.kind.type, (object) => ofVolume(dataVolumes.toVolume(object))),
  row(virtualMachinePvcs.kind.type, (object) => ofVolume(virtualMachinePvcs.toVolume(object))),
  row(virtualMachineVolumes.kind.type, (object) => ofVolume(virtualMachineVolumes.toVolume(object))),
  row(dataImportCronKind.type, ofCron),
];

/** Kinds whose objects are counted. */
export const countedKinds: readonly LimitedKind[] = limitedKinds.filter(
  ({ type }) => type.plural !== dataImportCronKind.type.plural,
);

const imageKinds = [hyperCloudImages, harvesterImages].map(({ kind: { type } }) => `${type.kind}.${type.group}`);

/**
 * The golden volume of an image, which counts itself. Only of DataVolumes: admission removes these marks from what users create of that kind, and not
 * from images.
 */
export const isPartOfAnother = (object: KubeObject): boolean =>
  object.kind === dataVolumes.kind.type.kind && imageKinds.includes(ownerOf(object)?.groupKind ?? '');

/** `undefined`: limits are not about it. */
export const wantedBy = (object: KubeObject): Demand | undefined => {
  const kind = limitedKinds.find(({ type }) => type.kind === object.kind && apiVersionOf(type) === object.apiVersion);
  return kind === undefined || isPartOfAnother(object) ? undefined : kind.read(object);
};
