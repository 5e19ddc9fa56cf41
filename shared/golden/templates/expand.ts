// Templates → the crons and DataSources a cluster of these architectures shall have. Pure; called by resources/templates.
import type { DataImportCronSpec } from '#shared/api/cdi/data-import-cron.ts';
import { commonDataSources, knownArchitectures } from '#shared/golden/templates/common-images.ts';
import {
  type Problem,
  type Template,
  architecturesOf,
  templateLabels,
  withoutArchitectures,
} from '#shared/golden/templates/template.ts';

export interface WantedCron {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Template['labels'];
  readonly annotations: Template['annotations'];
  readonly spec: DataImportCronSpec;
}

/** In the namespace of golden images. */
export interface WantedSource {
  readonly name: string;
  readonly labels: Template['labels'];
  /** The DataSource it points to; left out: it stands for a volume. */
  readonly pointsTo?: string | undefined;
  /** Volume of the time before there were architectures, which goes on being used where somebody made it. */
  readonly formerVolume?: string | undefined;
}

export interface BootSources {
  readonly crons: readonly WantedCron[];
  readonly sources: readonly WantedSource[];
  readonly problems: readonly Problem[];
}

export interface TemplateCluster {
  /** Where golden images live. */
  readonly namespace: string;
  /** In order: the first is the default. */
  readonly architectures: readonly string[];
  readonly isMultiArch: boolean;
}

interface Names {
  readonly name: string;
  readonly architectures: readonly string[];
}

const archLabel = (name: string) => ({ [templateLabels.architecture]: name });

/** Boot sources that common VM templates refer to, with the architectures of this cluster that have one. */
const commonNames = ({ architectures }: TemplateCluster): readonly Names[] => {
  const names = [...new Set(architectures.flatMap((name) => commonDataSources[name] ?? []))].sort();
  return names.map((name) => ({
    name,
    architectures: architectures.filter((arch) => commonDataSources[arch]?.includes(name) === true),
  }));
};

/** One for each architecture, and one that stands for the default of them. */
const fanOut = ({ name, architectures }: Names): readonly WantedSource[] => {
  const [first] = architectures;
  if (first === undefined) return [];
  const each = architectures.map((arch) => ({
    name: `${name}-${arch}`,
    labels: archLabel(arch),
    ...(arch === first ? { formerVolume: name } : {}),
  }));
  return [...each, { name, labels: {}, pointsTo: `${name}-${first}` }];
};

const plainSources = (names: readonly Names[]): readonly WantedSource[] =>
  names.map(({ name }) => ({ name, labels: {} }));

const cronOf = (template: Template, { namespace }: TemplateCluster): WantedCron => ({
  namespace: template.namespace ?? namespace,
  name: template.name,
  labels: template.labels,
  annotations: withoutArchitectures(template.annotations),
  spec: template.spec,
});

/** The spec of one architecture: its own DataSource, and the image for it. */
const specFor = (spec: DataImportCronSpec, arch: string): DataImportCronSpec => {
  const managed = { ...spec, managedDataSource: `${spec.managedDataSource}-${arch}` };
  const platform = { architecture: arch };
  if (spec.source?.registry !== undefined) {
    return { ...managed, source: { ...spec.source, registry: { ...spec.source.registry, platform } } };
  }
  const source = spec.template?.spec.source;
  if (spec.template === undefined || source?.registry === undefined) return managed;
  const template = {
    ...spec.template,
    spec: { ...spec.template.spec, source: { ...source, registry: { ...source.registry, platform } } },
  };
  return { ...managed, template };
};

const cronFor = (template: Template, cluster: TemplateCluster, arch: string): WantedCron => {
  const cron = cronOf(template, cluster);
  const { managedDataSource } = template.spec;
  const labels = { ...cron.labels, ...archLabel(arch), [templateLabels.dataSource]: managedDataSource };
  return { ...cron, name: `${cron.name}-${arch}`, labels, spec: specFor(cron.spec, arch) };
};

const expandMulti = (
  templates: readonly Template[],
  cluster: TemplateCluster,
): Pick<BootSources, 'crons' | 'sources'> => {
  const common = commonNames(cluster);
  const perTemplate = templates.map((template) => {
    const known = common.find(({ name }) => name === template.spec.managedDataSource);
    const asked = architecturesOf(template)?.filter((name) => knownArchitectures.includes(name));
    // Without a word on architectures the image is taken for the default one.
    if (asked === undefined) {
      const [first] = known?.architectures ?? [];
      const cron = cronOf(template, cluster);
      if (first === undefined) return { crons: [cron], custom: [] };
      return {
        crons: [{ ...cron, spec: { ...cron.spec, managedDataSource: `${known?.name ?? ''}-${first}` } }],
        custom: [],
      };
    }
    const usable = cluster.architectures.filter((name) => asked.includes(name));
    const isCustom = known === undefined && (template.namespace ?? cluster.namespace) === cluster.namespace;
    return {
      crons: usable.map((arch) => cronFor(template, cluster, arch)),
      custom: isCustom ? [{ name: template.spec.managedDataSource, architectures: usable }] : [],
    };
  });
  const names = [...common, ...perTemplate.flatMap(({ custom }) => custom)];
  return { crons: perTemplate.flatMap(({ crons }) => crons), sources: names.flatMap(fanOut) };
};

const expandPlain = (
  templates: readonly Template[],
  cluster: TemplateCluster,
): Pick<BootSources, 'crons' | 'sources'> => {
  const common = commonNames({ ...cluster, architectures: cluster.architectures.slice(0, 1) });
  const crons = templates.map((template) => cronOf(template, cluster));
  const own = crons
    .filter(({ namespace }) => namespace === cluster.namespace)
    .map(({ spec }) => ({ name: spec.managedDataSource, architectures: [] }))
    .filter(({ name }) => !common.some((one) => one.name === name));
  return { crons, sources: plainSources([...common, ...own]) };
};

/** The first of several that would manage one DataSource is the one that does. */
const withoutRivals = (crons: readonly WantedCron[]): Pick<BootSources, 'crons' | 'problems'> => {
  const first = new Map<string, WantedCron>();
  const problems: Problem[] = [];
  for (const cron of crons) {
    const key = `${cron.namespace}/${cron.spec.managedDataSource}`;
    const rival = first.get(key);
    if (rival === undefined) first.set(key, cron);
    else {
      const message = `template ${cron.name} is left out: DataSource ${key} is managed by template ${rival.name} already`;
      problems.push({ reason: 'DuplicateDataSource', message });
    }
  }
  return { crons: [...first.values()], problems };
};

const uniqueSources = (sources: readonly WantedSource[]): readonly WantedSource[] => [
  ...new Map(sources.map((source) => [source.name, source])).values(),
];

export const expand = (templates: readonly Template[], cluster: TemplateCluster): BootSources => {
  const { crons, sources } = cluster.isMultiArch ? expandMulti(templates, cluster) : expandPlain(templates, cluster);
  return { ...withoutRivals(crons), sources: uniqueSources(sources) };
};
