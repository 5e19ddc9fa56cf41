// Every kind we serve. The generator makes CRDs, RBAC and sources from this list; a kind is served by standing here.
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

export const servedKinds: readonly ServedKind[] = [
  hyperCloudImageKind,
  harvesterImageKind,
  downloaderKind,
  dataSourceKind,
  dataImportCronKind,
  virtualMachinePvcKind,
  virtualMachineVolumeKind,
  volumeExportKind,
  dataVolumeKind,
  storageProfileKind,
];

/** Kinds that only tell something: they have a CRD, and nothing is done for their objects. */
export const reportedKinds: readonly ServedKind[] = [cdiConfigKind];
