// The templates of an SSP object. Pure; called by resources/templates.
import type { DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import type { CronTemplateEntry, Ssp } from '#shared/api/foreign/boot-sources.ts';
import { type TemplateList, scheduleOf } from '#shared/golden/templates/hyperconverged.ts';
import { knownArchitectures } from '#shared/golden/templates/common-images.ts';
import { type Problem, templateAnnotations } from '#shared/golden/templates/template.ts';

/** Control plane first, each once: the first one is the default. */
export const clusterArchitectures = ({ spec = {} }: Ssp): readonly string[] => [
  ...new Set([...(spec.cluster?.controlPlaneArchitectures ?? []), ...(spec.cluster?.workloadArchitectures ?? [])]),
];

const problemOf = (ssp: Ssp, entries: readonly CronTemplateEntry[]): Problem | undefined => {
  if (entries.some(({ metadata }) => (metadata?.name ?? '') === ''))
    return { reason: 'InvalidTemplate', message: 'missing name in DataImportCronTemplate' };
  if (ssp.spec?.enableMultipleArchitectures !== true) return undefined;
  const architectures = clusterArchitectures(ssp);
  if (architectures.length === 0)
    return { reason: 'InvalidCluster', message: 'enableMultipleArchitectures needs architectures in spec.cluster' };
  const unknown = architectures.find((name) => !knownArchitectures.includes(name));
  return unknown === undefined
    ? undefined
    : { reason: 'InvalidCluster', message: `spec.cluster has the unknown architecture ${unknown}` };
};

export const sspTemplates = (ssp: Ssp): TemplateList | Problem => {
  const entries = ssp.spec?.commonTemplates?.dataImportCronTemplates ?? [];
  const problem = problemOf(ssp, entries);
  if (problem !== undefined) return problem;
  const schedule = scheduleOf({ metadata: ssp.metadata });
  const templates = entries.map(({ metadata = {}, spec = {} }) => ({
    name: metadata.name ?? '',
    namespace: metadata.namespace,
    labels: metadata.labels ?? {},
    annotations: { [templateAnnotations.immediateBinding]: 'true', ...metadata.annotations },
    // The operator's own shape always has a schedule; the design document's may leave it out.
    spec: { ...spec, schedule: spec.schedule ?? schedule } as DataImportCronSpec,
  }));
  return { templates, problems: [], isMultiArch: ssp.spec?.enableMultipleArchitectures === true };
};
