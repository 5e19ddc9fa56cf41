// The templates that HyperConverged and SSP objects ask for: common ones, changed ones, custom ones. Pure; called by resources/templates.
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import type { CronTemplateEntry, HyperConverged, Ssp } from '#shared/api/foreign/boot-sources.ts';
import {
  type Problem,
  type Template,
  architecturesOf,
  templateAnnotations,
  withoutArchitectures,
} from '#shared/golden/templates/template.ts';
import { knownArchitectures } from '#shared/golden/templates/common-images.ts';

export interface TemplateList {
  readonly templates: readonly Template[];
  readonly problems: readonly Problem[];
  readonly isMultiArch: boolean;
}

interface Scheduled extends Pick<HyperConverged, 'metadata'> {
  readonly status?: { readonly dataImportSchedule?: string };
}

/**
 * `<minute> <hour>/12 * * *`: what the status says, or else a time drawn from the object's UID, which is as random as any: two who draw at once
 * draw the same. Twelve hours apart, so that an hour above 11 would be the same again.
 */
export const scheduleOf = ({ metadata, status }: Scheduled): string => {
  const kept = status?.dataImportSchedule ?? '';
  if (kept !== '') return kept;
  const draw = createHash('sha256')
    .update(metadata.uid ?? '')
    .digest();
  return `${draw.readUInt16BE(0) % 60} ${draw.readUInt16BE(2) % 12}/12 * * *`;
};

/** The field wins when it is set, else the older gate of the same name. */
const isOn = ({ spec = {} }: HyperConverged, name: SwitchName, fallback: boolean): boolean => {
  const gate = spec.featureGates?.[name];
  return spec.workloadSources?.[name] ?? spec[name] ?? (typeof gate === 'boolean' ? gate : fallback);
};

type SwitchName = 'enableCommonBootImageImport' | 'enableMultiArchBootImageImport';

const settingsOf = (hco: HyperConverged) => {
  const { spec = {} } = hco;
  const { workloadSources: sources = {} } = spec;
  return {
    hasCommon: isOn(hco, 'enableCommonBootImageImport', true),
    entries: listsIn(sources)[0] ?? listsIn(spec)[0] ?? [],
    namespace: sources.commonBootImageNamespace ?? spec.commonBootImageNamespace,
    isMultiArch: isOn(hco, 'enableMultiArchBootImageImport', false),
  };
};

const listField = 'dataImportCronTemplates';

/** In whatever case: the design of SSP writes it with a capital. */
const isListField = (name: string): boolean => name.toLowerCase() === listField.toLowerCase();

const listsIn = (place: object = {}): readonly (readonly CronTemplateEntry[])[] =>
  Object.entries(place).flatMap(([name, value]) =>
    isListField(name) && Array.isArray(value) ? [value as readonly CronTemplateEntry[]] : [],
  );

/** No other field of these objects has that word: whoever wrote it wants templates, and would wait for them for ever. */
const misspelt = (places: Readonly<Record<string, object | undefined>>): Problem | undefined => {
  const [wrong] = Object.entries(places).flatMap(([path, place = {}]) =>
    Object.keys(place).flatMap((name) => (/cron/i.test(name) && !isListField(name) ? [`${path}.${name}`] : [])),
  );
  const message = `${wrong} is not a known field: write ${listField}`;
  return wrong === undefined ? undefined : { reason: 'InvalidTemplate', message };
};

const switches = ['true', 'false'];

const switchOf = ({ metadata }: CronTemplateEntry): string =>
  (metadata?.annotations?.[templateAnnotations.enable] ?? 'true').toLowerCase();

const isEnabled = (entry: CronTemplateEntry): boolean => switchOf(entry) === 'true';

const defaulted = (spec: Partial<DataImportCronSpec>, schedule: string): DataImportCronSpec =>
  ({
    ...spec,
    schedule: spec.schedule ?? schedule,
    retentionPolicy: spec.retentionPolicy ?? 'None',
    importsToKeep: spec.importsToKeep ?? 1,
  }) as DataImportCronSpec;

const bound = (annotations: Template['annotations']): Template['annotations'] => ({
  [templateAnnotations.immediateBinding]: 'true',
  ...annotations,
});

const registryOf = ({ spec }: Pick<Template, 'spec'>): unknown => (spec.source ?? spec.template?.spec.source)?.registry;

/** Which architectures a changed image is there for is known to whoever changed it; of the same image the built-in list knows. */
const mergedAnnotations = (common: Template, own: Template['annotations'], spec: DataImportCronSpec) => {
  const merged = { ...common.annotations, ...own };
  const source = isDeepStrictEqual(registryOf({ spec }), registryOf(common)) ? common.annotations : own;
  const architectures = source[templateAnnotations.architectures];
  return {
    ...withoutArchitectures(merged),
    ...(architectures === undefined ? {} : { [templateAnnotations.architectures]: architectures }),
  };
};

/** The spec is the user's as a whole, and so is the namespace, even where it is left out; labels are not taken. */
const modified = (common: Template, { metadata, spec = {} }: CronTemplateEntry, schedule: string): Template => {
  const own = defaulted(spec.schedule === '' ? { ...spec, schedule } : spec, schedule);
  const annotations = bound(mergedAnnotations(common, metadata?.annotations ?? {}, own));
  return { name: common.name, namespace: metadata?.namespace, labels: {}, annotations, spec: own };
};

const custom = ({ metadata = {}, spec = {} }: CronTemplateEntry, schedule: string): Template => ({
  name: metadata.name ?? '',
  namespace: metadata.namespace,
  labels: metadata.labels ?? {},
  annotations: bound(metadata.annotations ?? {}),
  spec: defaulted(spec, schedule),
});

const entryProblem = (entries: readonly CronTemplateEntry[]): Problem | undefined => {
  const names = entries.map(({ metadata }) => metadata?.name ?? '');
  const repeated = names.find((name, index) => names.indexOf(name) !== index);
  if (repeated !== undefined)
    return { reason: 'DuplicateTemplate', message: `${repeated} DataImportCronTable is already defined` };
  const unclear = entries.find((entry) => !switches.includes(switchOf(entry)));
  if (unclear !== undefined) {
    const rule = `the ${templateAnnotations.enable} annotation of a dataImportCronTemplate must be either "true" or "false"`;
    return { reason: 'InvalidTemplate', message: `${rule}: ${nameOf(unclear)}` };
  }
  const empty = entries.find((entry) => isEnabled(entry) && entry.spec === undefined);
  if (empty === undefined) return undefined;
  const what = 'dataImportCronTemplate spec is empty for an enabled DataImportCronTemplate';
  return { reason: 'InvalidTemplate', message: `${what}: ${nameOf(empty)}` };
};

const nameOf = ({ metadata }: CronTemplateEntry): string => metadata?.name ?? '(no name)';

const byName = (a: Template, b: Template): number => (a.name < b.name ? -1 : 1);

/** Only the architectures that machines run on are left; without any, the template stays out. */
const forCluster = (templates: readonly Template[], architectures: readonly string[]) => {
  const problems: Problem[] = [];
  const kept = templates.flatMap((template): readonly Template[] => {
    const wanted = architecturesOf(template);
    if (wanted === undefined) return [template];
    const usable = wanted.filter((name) => architectures.includes(name));
    if (usable.length === 0) {
      const message = 'DataImportCronTemplate has no supported architectures for the current cluster';
      problems.push({ reason: 'UnsupportedArchitectures', message: `${template.name}: ${message}` });
      return [];
    }
    const annotations = { ...template.annotations, [templateAnnotations.architectures]: usable.join(',') };
    return [{ ...template, annotations }];
  });
  return { templates: kept, problems };
};

/** `undefined` templates: the list contradicts itself, and what is there stays as it is. `architectures` are those of the workers. */
export const effectiveTemplates = (
  hco: HyperConverged,
  builtIn: readonly Template[],
  architectures: readonly string[],
): TemplateList | Problem => {
  const { hasCommon, entries, namespace, isMultiArch } = settingsOf(hco);
  const places = { spec: hco.spec, 'spec.workloadSources': hco.spec?.workloadSources };
  const problem = misspelt(places) ?? entryProblem(entries);
  if (problem !== undefined) return problem;
  const schedule = scheduleOf(hco);
  const entryOf = (name: string) => entries.find(({ metadata }) => metadata?.name === name);
  const common = builtIn.flatMap((template): readonly Template[] => {
    const entry = entryOf(template.name);
    if (entry === undefined) return [{ ...template, namespace, spec: { ...template.spec, schedule } }];
    return isEnabled(entry) ? [modified(template, entry, schedule)] : [];
  });
  const builtInNames = new Set(builtIn.map(({ name }) => name));
  const own = entries
    .filter((entry) => isEnabled(entry) && !builtInNames.has(entry.metadata?.name ?? ''))
    .map((entry) => custom(entry, schedule));
  const all = [...(hasCommon ? common : []), ...own].sort(byName);
  if (isMultiArch) return { ...forCluster(all, architectures), isMultiArch };
  const plain = all.map((template) => ({ ...template, annotations: withoutArchitectures(template.annotations) }));
  return { templates: plain, problems: [], isMultiArch };
};

// The templates of an SSP object.

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
  const { spec = {} } = ssp;
  const entries = [...listsIn(spec.commonTemplates), ...listsIn(spec)].flat();
  const places = { spec, 'spec.commonTemplates': spec.commonTemplates };
  const problem = misspelt(places) ?? problemOf(ssp, entries);
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
