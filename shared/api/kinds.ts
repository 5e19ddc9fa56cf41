// All served kinds. The generator creates CRDs, RBAC and sources from this list.
import { goldenImagePolicyKind } from '#shared/api/bullion/golden-image-policy.ts';
import { tenantLimitKind } from '#shared/api/bullion/tenant-limit.ts';
import { cdiConfigKind } from '#shared/api/cdi/cdi-config.ts';
import { dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import { storageProfileKind } from '#shared/api/cdi/storage-profile.ts';
import { downloaderKind } from '#shared/api/harvester/downloader.ts';
import { harvesterImageKind } from '#shared/api/harvester/image.ts';
import { hyperCloudImageKind } from '#shared/api/hypercloud/image.ts';
import { virtualMachinePvcKind, virtualMachineVolumeKind } from '#shared/api/hypercloud/volume.ts';
import { volumeExportKind } from '#shared/api/hypercloud/volume-export.ts';
import type { ServedKind } from '#shared/api/kind.ts';

/** The only list: `resources/registry.ts` (reconciliation) and `resources/admitted-kinds.ts` (admission) have a row for each kind, or do not compile. */
export const kinds = {
  hyperCloudImage: hyperCloudImageKind,
  harvesterImage: harvesterImageKind,
  downloader: downloaderKind,
  dataSource: dataSourceKind,
  dataImportCron: dataImportCronKind,
  goldenImagePolicy: goldenImagePolicyKind,
  virtualMachinePvc: virtualMachinePvcKind,
  virtualMachineVolume: virtualMachineVolumeKind,
  volumeExport: volumeExportKind,
  dataVolume: dataVolumeKind,
  storageProfile: storageProfileKind,
  tenantLimit: tenantLimitKind,
} as const;
export type KindName = keyof typeof kinds;

export const servedKinds: readonly ServedKind[] = Object.values(kinds);

/** Kinds that only report state: they have a CRD, but their objects are not reconciled. */
export const reportedKinds: readonly ServedKind[] = [cdiConfigKind];
