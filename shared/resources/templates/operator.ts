// Whether an operator works on an object with templates: then they are its own to carry out. Pure.
import type { HyperConverged, Ssp } from '#shared/api/foreign/boot-sources.ts';
import type { TemplateSettings } from '#shared/resources/templates/sync.ts';

/** What only its operator writes. */
const hasOperator = (object: HyperConverged | Ssp): boolean =>
  (object.metadata.finalizers ?? []).some((name) => name.includes('kubevirt.io')) ||
  Object.keys(object.status ?? {}).some((field) => field !== 'dataImportSchedule' && field !== 'nodeInfo');

export const isLeft = ({ mode }: Pick<TemplateSettings, 'mode'>, object: HyperConverged | Ssp): boolean =>
  mode === 'auto' && hasOperator(object);

/** People set it while they work on what the object made. */
export const isPaused = ({ metadata }: HyperConverged | Ssp): boolean =>
  metadata.annotations?.['kubevirt.io/operator.paused'] === 'true';
