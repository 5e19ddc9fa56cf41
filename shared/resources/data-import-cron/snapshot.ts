// Golden images kept as snapshots: whether the class asks for it, and the snapshot of an imported volume. Pure.
import { cdiAnnotations, travellingLabels } from '#shared/api/cdi/names.ts';
import type { VolumeSnapshot } from '#shared/api/foreign/snapshot.ts';
import { chooseSnapshotClass, contentMarkOf, describeContent } from '#shared/populate/storage/snapshot.ts';
import { populationOf } from '#shared/populate/population.ts';
import { parseQuantity } from '#shared/api/quantity.ts';
import type { SourceFormat } from '#shared/resources/data-source/point.ts';
import type { CronResource, ObservedCron, ObservedVersion } from '#shared/resources/data-import-cron/cron.ts';
import { managedMetadata, sizeOf } from '#shared/resources/data-import-cron/template.ts';

/** What the storage profile of the class says; volumes where it says nothing. */
export const formatOf = ({ profile }: Pick<ObservedCron, 'profile'>): SourceFormat =>
  (profile?.status?.dataImportCronSourceFormat ?? profile?.spec?.dataImportCronSourceFormat) === 'snapshot'
    ? 'snapshot'
    : 'pvc';

/** The snapshot class that versions are to have; `undefined` where they are no snapshots, or the driver makes none. */
export const snapshotClassFor = (observed: Placing): string | undefined =>
  formatOf(observed) === 'snapshot' ? classFor(observed) : undefined;

type Placing = Pick<ObservedCron, 'profile' | 'snapshotClasses' | 'storageClass'>;

const classFor = ({ profile, snapshotClasses, storageClass }: Placing): string | undefined => {
  const asked = profile?.metadata.annotations?.[cdiAnnotations.snapshotClass] ?? profile?.status?.snapshotClass;
  const choice = chooseSnapshotClass(snapshotClasses, storageClass?.provisioner, asked);
  return choice.is === 'found' ? choice.name : undefined;
};

interface KnownSizes {
  /** What the template asks for. */
  readonly asked?: string | undefined;
  /** What the volume asked for: stands in where the template leaves the size open. */
  readonly volume?: string | undefined;
  /** What the driver says a restored volume needs, once the snapshot is there. */
  readonly restore?: string | undefined;
}

/** Size of a volume that is restored from a version. */
export const advisedRestoreSize = ({ asked, volume, restore }: KnownSizes): string | undefined => {
  const wanted = asked ?? volume;
  const isLarger = (parseQuantity(restore ?? '') ?? 0) > (parseQuantity(wanted ?? '') ?? 0);
  return isLarger ? restore : wanted;
};

/** The driver tells what it needs when it is done; its word counts where it is larger. Annotations of the snapshot. */
export const restoreSizeMark = (
  cron: CronResource,
  { snapshot }: ObservedVersion,
): Readonly<Record<string, string>> => {
  const volume = snapshot?.metadata.annotations?.[cdiAnnotations.advisedRestoreSize];
  const size = advisedRestoreSize({ asked: sizeOf(cron), volume, restore: snapshot?.status?.restoreSize });
  return size === undefined ? {} : { [cdiAnnotations.advisedRestoreSize]: size };
};

/** `undefined` where the driver makes no snapshots. */
export const buildVersionSnapshot = (
  cron: CronResource,
  observed: ObservedCron,
  { volume }: ObservedVersion,
): VolumeSnapshot | undefined => {
  const className = classFor(observed);
  if (className === undefined || volume === undefined) return undefined;
  const metadata = managedMetadata(cron, 'version', volume.metadata.name);
  const size = advisedRestoreSize({
    asked: sizeOf(cron),
    volume: volume.spec.resources?.requests?.['storage'],
  });
  const snapshot: VolumeSnapshot = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: {
      ...metadata,
      labels: {
        ...travellingLabels(volume.metadata.labels),
        ...metadata.labels,
        app: 'containerized-data-importer',
        'cdi.kubevirt.io': '',
      },
      annotations: {
        ...metadata.annotations,
        [cdiAnnotations.sourceVolumeMode]: volume.spec.volumeMode ?? 'Filesystem',
        ...(size === undefined ? {} : { [cdiAnnotations.advisedRestoreSize]: size }),
      },
    },
    spec: { volumeSnapshotClassName: className, source: { persistentVolumeClaimName: volume.metadata.name } },
  };
  return describeContent(snapshot, contentMarkOf(volume), populationOf(volume));
};
