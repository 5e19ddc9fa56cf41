// How many data volumes are tried again and again, under the names of the original: it counts restarts of its pods, we failed attempts of our Jobs.
import { type DataVolume, dataVolumeKind } from '#shared/api/cdi/data-volume.ts';
import type { Counter } from '#shared/metrics/counter.ts';
import { gauge } from '#shared/metrics/metric.ts';

/** More than these are unusual, as in the original. */
const usualRestarts = 3;

const helpOf = (what: string): string => `DataVolumes whose ${what} failed more than ${usualRestarts} times.`;
const gauges = {
  import: gauge('kubevirt_cdi_import_pods_high_restart', helpOf('import')),
  upload: gauge('kubevirt_cdi_upload_pods_high_restart', helpOf('upload')),
  clone: gauge('kubevirt_cdi_clone_pods_high_restart', helpOf('clone')),
} as const;
type Way = keyof typeof gauges;

const wayOf = ({ source = {}, sourceRef }: DataVolume['spec']): Way => {
  if (source.upload !== undefined) return 'upload';
  const isClone = sourceRef !== undefined || source.pvc !== undefined || source.snapshot !== undefined;
  return isClone ? 'clone' : 'import';
};

export const createRestartCounter = (): Counter => {
  const counts: Record<Way, number> = { import: 0, upload: 0, clone: 0 };
  return {
    visit: (object) => {
      if (object.kind !== dataVolumeKind.type.kind) return;
      const { spec, status } = object as DataVolume;
      const isOver = status?.phase === 'Succeeded';
      if (!isOver && (status?.restartCount ?? 0) > usualRestarts) counts[wayOf(spec)] += 1;
    },
    // Zeroes too: what asks for one of them by `or` sees all of them.
    metrics: () => Object.entries(counts).map(([way, count]) => gauges[way as Way](count)),
  };
};
