// Images that Harvester's controller imported as DataVolumes, before Bullion served them.
import { findCondition } from '#shared/api/conditions.ts';
import type { HarvesterImage } from '#shared/api/harvester/image.ts';

/** A backing image of the original is found by its name instead, and looked at again. */
export const isOriginal = ({ spec, status }: HarvesterImage): boolean =>
  spec.backend === 'cdi' &&
  status?.phase === undefined &&
  findCondition(status?.conditions, 'Imported')?.status === 'True';
