// Golden images kept as snapshots: whether the class asks for it, and the snapshot of an imported volume. Pure.
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { chooseSnapshotClass } from '#shared/populate/snapshot.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { CronSeen, SeenVersion } from '#shared/resources/data-import-cron/seen.ts';
import type { CronSubject, SourceFormat } from '#shared/resources/data-import-cron/subject.ts';
import { managedMetadata } from '#shared/resources/data-import-cron/template.ts';

/** What the storage profile of the class says; volumes where it says nothing. */
export const formatOf = ({ profile }: CronSeen): SourceFormat =>
  (profile?.status?.dataImportCronSourceFormat ?? profile?.spec?.dataImportCronSourceFormat) === 'snapshot'
    ? 'snapshot'
    : 'pvc';

const classFor = ({ profile, snapshotClasses, storageClass }: CronSeen): string | undefined => {
  const asked = profile?.metadata.annotations?.[cdiAnnotations.snapshotClass] ?? profile?.status?.snapshotClass;
  const choice = chooseSnapshotClass(snapshotClasses, storageClass?.provisioner, asked);
  return choice.is === 'found' ? choice.name : undefined;
};

/** The larger of what was asked for and what the volume has. */
const restoreSize = (volume: SeenVersion['volume']): string | undefined => {
  const sizes = [volume?.spec.resources?.requests?.['storage'], volume?.status?.capacity?.['storage']].filter(
    (size) => size !== undefined,
  );
  return sizes.sort((a, b) => (parseQuantity(b) ?? 0) - (parseQuantity(a) ?? 0))[0];
};

/** `undefined` where the driver makes no snapshots. */
export const buildVersionSnapshot = (
  cron: CronSubject,
  seen: CronSeen,
  { volume }: SeenVersion,
): VolumeSnapshot | undefined => {
  const className = classFor(seen);
  if (className === undefined || volume === undefined) return undefined;
  const metadata = managedMetadata(cron, 'version', volume.metadata.name);
  const size = restoreSize(volume);
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, app: 'containerized-data-importer', 'cdi.kubevirt.io': '' },
      annotations: {
        ...metadata.annotations,
        [cdiAnnotations.sourceVolumeMode]: volume.spec.volumeMode ?? 'Filesystem',
        ...(size === undefined ? {} : { [cdiAnnotations.advisedRestoreSize]: size }),
      },
    },
    spec: { volumeSnapshotClassName: className, source: { persistentVolumeClaimName: volume.metadata.name } },
  };
};
