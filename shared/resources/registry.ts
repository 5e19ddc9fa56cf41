// The kinds that are driven, one line each, and how an owner named by a child or an event is found among them.
import { groupKindOf } from '#shared/api/owner.ts';
import { type KubeObject, apiVersionOf } from '#shared/api/object.ts';
import { drivenDataImportCron } from '#shared/resources/data-import-cron/index.ts';
import { drivenDataSource } from '#shared/resources/data-source/index.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { dataSourceGroupKind } from '#shared/resources/data-volume/source.ts';
import { readDataSourceOrigin } from '#shared/resources/data-volume/data-source-origin.ts';
import { drivenDownloader } from '#shared/resources/downloader/index.ts';
import type { Driven, Subject } from '#shared/resources/driven.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import {
  imageGroupKind,
  virtualMachinePvcs,
  virtualMachineVolumes,
} from '#shared/resources/hypercloud-volume/dialect.ts';
import { readImageOrigin } from '#shared/resources/hypercloud-volume/image-origin.ts';
import { drivenImage } from '#shared/resources/image.ts';
import { drivenStorageProfile } from '#shared/resources/storage-profile/index.ts';
import { drivenVolume } from '#shared/resources/volume/driven.ts';
import { drivenVolumeExport } from '#shared/resources/volume-export/index.ts';
import type { Volume } from '#shared/resources/volume/volume.ts';

const erased = <T extends KubeObject, S extends Subject>(driven: Driven<T, S>): Driven => driven as unknown as Driven;
const volume = <T extends KubeObject>(driven: Driven<T, Volume>): Driven<KubeObject, Volume> =>
  driven as unknown as Driven<KubeObject, Volume>;

const originReaders = { [imageGroupKind]: readImageOrigin, [dataSourceGroupKind]: readDataSourceOrigin };

const hyperCloudVolumeKinds = [
  volume(drivenVolume(virtualMachinePvcs, originReaders)),
  volume(drivenVolume(virtualMachineVolumes, originReaders)),
];

export const drivenKinds: readonly Driven[] = [
  erased(drivenImage(hyperCloudImages, hyperCloudVolumeKinds)),
  erased(drivenImage(harvesterImages)),
  erased(drivenDataSource),
  erased(drivenDataImportCron),
  ...hyperCloudVolumeKinds.map(erased),
  erased(drivenVolume(dataVolumes, originReaders)),
  erased(drivenStorageProfile),
  erased(drivenVolumeExport),
  erased(drivenDownloader),
];

/** `undefined` for kinds that are not driven. */
export const drivenOf = (ref: { readonly apiVersion: string; readonly kind: string }): Driven | undefined =>
  drivenKinds.find(({ kind: { type } }) => apiVersionOf(type) === ref.apiVersion && type.kind === ref.kind);

/** By `<kind>.<group>`, as children name their owner. */
export const drivenOfGroupKind = (groupKind: string): Driven | undefined =>
  drivenKinds.find(
    ({ kind: { type } }) => groupKindOf({ apiVersion: apiVersionOf(type), kind: type.kind }) === groupKind,
  );
