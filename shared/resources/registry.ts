// The reconcilers of all kinds, and the look-up of the owner that a child or an event names.
import { type KubeObject, apiVersionOf, groupKindOf } from '#shared/api/object.ts';
import type { KindName } from '#shared/api/kinds.ts';
import type { Image } from '#shared/backends/backend.ts';
import type { Filled } from '#shared/populate/filled.ts';
import { dataImportCronReconciler } from '#shared/resources/data-import-cron/index.ts';
import { dataSourceReconciler } from '#shared/resources/data-source/index.ts';
import { dataVolumes } from '#shared/resources/data-volume/dialect.ts';
import { dataSourceGroupKind } from '#shared/resources/data-volume/source.ts';
import { readDataSourceOrigin } from '#shared/resources/data-volume/source.ts';
import { downloaderReconciler } from '#shared/resources/downloader/index.ts';
import type { Reconciler, Resource } from '#shared/resources/reconciler.ts';
import { goldenImagePolicyReconciler } from '#shared/resources/golden-image-policy/index.ts';
import { harvesterImages } from '#shared/resources/harvester-image/dialect.ts';
import { hyperCloudImages } from '#shared/resources/hypercloud-image/dialect.ts';
import {
  imageGroupKind,
  virtualMachinePvcs,
  virtualMachineVolumes,
} from '#shared/resources/hypercloud-volume/dialect.ts';
import { readImageOrigin } from '#shared/resources/hypercloud-image/dialect.ts';
import { readCopyRight } from '#shared/resources/golden-copies/right.ts';
import { tenantLimitReconciler } from '#shared/resources/tenant-limit/index.ts';
import { imageReconciler } from '#shared/resources/image.ts';
import { storageProfileReconciler } from '#shared/resources/storage-profile/index.ts';
import { volumeReconciler } from '#shared/resources/volume-reconciler.ts';
import { volumeExportReconciler } from '#shared/resources/volume-export/index.ts';

const readers = {
  origins: { [imageGroupKind]: readImageOrigin, [dataSourceGroupKind]: readDataSourceOrigin },
  copyRight: readCopyRight,
};

const virtualMachinePvc = volumeReconciler(virtualMachinePvcs, readers);
const virtualMachineVolume = volumeReconciler(virtualMachineVolumes, readers);

const byKind = {
  // First, so that the tick knows them before it comes to what they count.
  tenantLimit: tenantLimitReconciler,
  hyperCloudImage: imageReconciler(hyperCloudImages, [virtualMachinePvc, virtualMachineVolume]),
  harvesterImage: imageReconciler(harvesterImages),
  dataSource: dataSourceReconciler,
  dataImportCron: dataImportCronReconciler,
  goldenImagePolicy: goldenImagePolicyReconciler,
  virtualMachinePvc,
  virtualMachineVolume,
  dataVolume: volumeReconciler(dataVolumes, readers),
  storageProfile: storageProfileReconciler,
  volumeExport: volumeExportReconciler,
  downloader: downloaderReconciler,
} as const satisfies Readonly<Record<KindName, Reconciler>>;

export const reconcilers: readonly Reconciler[] = Object.values(byKind);

const { tenantLimit, dataVolume, ...others } = byKind;

/** DataVolumes before what waits for them: after an outage, a wait may be over though the DataVolume has what is waited for. */
export const tickOrder: readonly Reconciler[] = [tenantLimit, dataVolume, ...Object.values(others)];

type KindRef = Pick<KubeObject, 'apiVersion' | 'kind'>;

const find = <S extends Resource>(all: readonly Reconciler<KubeObject, S>[], ref: KindRef) =>
  all.find(({ kind: { type } }) => apiVersionOf(type) === ref.apiVersion && type.kind === ref.kind);

/** `undefined` for kinds that are not reconciled. */
export const reconcilerOf = (ref: KindRef): Reconciler | undefined => find(reconcilers, ref);

/** `undefined` for kinds other than images. */
export const imageReconcilerOf = (ref: KindRef): Reconciler<KubeObject, Image> | undefined =>
  find([byKind.hyperCloudImage, byKind.harvesterImage], ref);

/** `undefined` for kinds that are not made by an import: what versions of golden images can be. */
export const importReconcilerOf = (ref: KindRef): Reconciler<KubeObject, Filled> | undefined =>
  imageReconcilerOf(ref) ?? find([byKind.dataVolume], ref);

/** By `<kind>.<group>`, as in the marks of children. */
export const reconcilerOfGroupKind = (groupKind: string): Reconciler | undefined =>
  reconcilers.find(
    ({ kind: { type } }) => groupKindOf({ apiVersion: apiVersionOf(type), kind: type.kind }) === groupKind,
  );
