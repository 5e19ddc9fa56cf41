// Plans the golden images of a cluster according to its templates. Pure.
import { isDeepStrictEqual } from 'node:util';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, type DataSourceSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import type { ObjectRef } from '#shared/api/object.ts';
import { type Action, create, patch, remove } from '#shared/populate/actions.ts';
import { type RefreshDecision, decide } from '#shared/golden/templates/template.ts';
import type { WantedCron, WantedSource } from '#shared/golden/templates/expand.ts';
import type { Problem } from '#shared/golden/templates/template.ts';
import { fingerprint, markOf, markedMetadata, readMark } from '#shared/resources/templates/marks.ts';
import { type TemplateRequest, type ObservedTemplates, cronKey } from '#shared/resources/templates/ask.ts';
import { removeUnwanted } from '#shared/resources/templates/marks.ts';
import type { Note } from '#shared/resources/transitions.ts';

export interface TemplatesPlan {
  readonly actions: readonly Action[];
  readonly notes: readonly { readonly about: ObjectRef; readonly note: Note }[];
  readonly problems: readonly { readonly about: ObjectRef; readonly problem: Problem }[];
}

const none: TemplatesPlan = { actions: [], notes: [], problems: [] };

const join = (plans: readonly TemplatesPlan[]): TemplatesPlan => ({
  actions: plans.flatMap(({ actions }) => actions),
  notes: plans.flatMap(({ notes }) => notes),
  problems: plans.flatMap(({ problems }) => problems),
});

export const planTemplates = (asks: readonly TemplateRequest[], observed: ObservedTemplates): TemplatesPlan => {
  const settled = withoutOverlaps(asks);
  const feeding = feedingOf(settled, observed);
  return join([
    ...settled.map(({ plan }) => plan),
    ...settled.map((ask) => planAsk(ask, feeding, observed)),
    { ...none, actions: removeUnwanted(settled, observed) },
  ]);
};

type SettledAsk = TemplateRequest & { readonly plan: TemplatesPlan };

/** A request that an earlier object already made is skipped. */
const withoutOverlaps = (asks: readonly TemplateRequest[]): readonly SettledAsk[] => {
  const taken = new Set<string>();
  const take = (key: string): boolean => {
    const isFree = !taken.has(key);
    taken.add(key);
    return isFree;
  };
  return asks.map(({ owner, wanted }) => {
    if (wanted === undefined) return { owner, wanted, plan: none };
    const isFree = ({ namespace, spec }: WantedCron) => take(`cron ${namespace}/${spec.managedDataSource}`);
    const crons = Map.groupBy(wanted.crons, isFree);
    const problems = [
      ...wanted.problems,
      ...(crons.get(false) ?? []).map(({ name, spec }) => ({
        reason: 'DuplicateDataSource',
        message: `template ${name} is left out: another object has one for DataSource ${spec.managedDataSource}`,
      })),
    ].map((problem) => ({ about: owner, problem }));
    const sources = wanted.sources.filter(({ name }) => take(`source ${name}`));
    return { owner, wanted: { ...wanted, crons: crons.get(true) ?? [], sources }, plan: { ...none, problems } };
  });
};

interface Feeding {
  readonly feeder: (source: string) => WantedCron | undefined;
  /** By name of the source; references to other sources have none. */
  readonly decisions: ReadonlyMap<string, RefreshDecision>;
}

/** Which cron updates which source. The source and its cron may be requested by different objects, so all of them are considered together. */
const feedingOf = (asks: readonly TemplateRequest[], observed: ObservedTemplates): Feeding => {
  const crons = asks.flatMap(({ wanted }) => wanted?.crons ?? []);
  const feeder = (name: string): WantedCron | undefined =>
    crons.find((cron) => cron.namespace === observed.namespace && cron.spec.managedDataSource === name);
  const sources = asks.flatMap(({ wanted }) => wanted?.sources ?? []);
  const decisions = new Map(
    sources.flatMap((source) =>
      source.pointsTo === undefined ? [[source.name, judge(source, feeder(source.name), observed)] as const] : [],
    ),
  );
  return { feeder, decisions };
};

const planAsk = (
  { owner, wanted }: TemplateRequest,
  { feeder, decisions }: Feeding,
  observed: ObservedTemplates,
): TemplatesPlan => {
  if (wanted === undefined) return none;
  const isFed = (cron: WantedCron): boolean =>
    cron.namespace !== observed.namespace || decisions.get(cron.spec.managedDataSource)?.isAutomatic !== false;
  return join([
    ...wanted.sources.map((source) =>
      planSource({ owner, source, decision: decisions.get(source.name), cron: feeder(source.name) }, observed),
    ),
    ...wanted.crons.map((cron) => (isFed(cron) ? planCron(owner, cron, observed) : planNoCron(owner, cron, observed))),
  ]);
};

const isReady = ({ status }: DataSource): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;

/** Whether it refers to that volume, or would at first; one that was not decided yet is unchanged. */
const pointsTo = (source: DataSource | undefined, volume: string): boolean => {
  if (source === undefined) return true;
  if (source.status?.conditions === undefined) return source.spec.source.pvc?.name === volume;
  return isReady(source) && source.status.source?.pvc?.name === volume;
};

const judge = (
  { name, formerVolume }: WantedSource,
  cron: WantedCron | undefined,
  observed: ObservedTemplates,
): RefreshDecision => {
  const source = observed.sources.get(name);
  const hasFormer = formerVolume !== undefined && observed.volumes.has(formerVolume);
  return decide({
    hasTemplate: cron !== undefined,
    exists: source !== undefined,
    hasLabel: source?.metadata.labels?.[cdiLabels.cron] !== undefined,
    hasVolume: observed.volumes.has(name),
    keepsFormerVolume: hasFormer && pointsTo(source, formerVolume),
  });
};

interface SourceWork {
  readonly owner: ObjectRef;
  readonly source: WantedSource;
  /** Default: it is a reference. */
  readonly decision: RefreshDecision | undefined;
  readonly cron: WantedCron | undefined;
}

/** Its target if no cron sets it. */
const plainSource = ({ source }: SourceWork, observed: ObservedTemplates): DataSourceSource => {
  if (source.pointsTo !== undefined) return { dataSource: { name: source.pointsTo } };
  const { formerVolume } = source;
  const isFormer =
    formerVolume !== undefined && observed.volumes.has(formerVolume) && !observed.volumes.has(source.name);
  return { pvc: { namespace: observed.namespace, name: isFormer ? formerVolume : source.name } };
};

const decisionText = (decision: RefreshDecision | undefined): string | null =>
  decision === undefined ? null : `${decision.isAutomatic ? 'on' : 'off'}: ${decision.why}`;

/** The cron in charge sets the target; but it cannot take over a reference. */
const isLeftToCron = ({ decision }: SourceWork, before: DataSource | undefined): boolean =>
  decision?.isAutomatic === true && before !== undefined && before.spec.source.dataSource === undefined;

const changeOf = (work: SourceWork, observed: ObservedTemplates, before: DataSource | undefined) => {
  const { owner, source, decision, cron } = work;
  const metadata = markedMetadata(owner, { namespace: observed.namespace, name: source.name }, before);
  const label = decision?.isAutomatic === true ? (cron?.name ?? '') : null;
  const wanted = { pvc: null, snapshot: null, dataSource: null, ...plainSource(work, observed) };
  return {
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...source.labels, [cdiLabels.cron]: label },
      annotations: { ...metadata.annotations, [annotations.autoUpdate]: decisionText(decision) },
    },
    ...(isLeftToCron(work, before) ? {} : { spec: { source: wanted } }),
  };
};

const planSource = (work: SourceWork, observed: ObservedTemplates): TemplatesPlan => {
  const before = observed.sources.get(work.source.name);
  const change = changeOf(work, observed, before);
  const decided = decisionText(work.decision);
  const isNews = decided !== (before?.metadata.annotations?.[annotations.autoUpdate] ?? null);
  const notes = isNews ? noteOf(work, decided, before) : [];
  if (before === undefined) {
    const { apiVersion, kind } = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'DataSource' };
    const made = {
      apiVersion,
      kind,
      metadata: withoutNulls(change.metadata),
      spec: { source: plainSource(work, observed) },
    };
    return { ...none, actions: [create(dataSourceKind.type, made)], notes };
  }
  return isAlready(before, change) ? none : { ...none, actions: [patch(dataSourceKind.type, before, change)], notes };
};

const noteOf = ({ owner, source }: SourceWork, decided: string | null, before: DataSource | undefined) => [
  {
    about: owner,
    note: {
      type: 'Normal' as const,
      reason: 'AutoUpdateDecided',
      message: `DataSource ${source.name}: automatic update is ${decided ?? 'left to the one it points to'}`,
      occurrence: `${source.name}/${before?.metadata.resourceVersion ?? 'new'}`,
    },
  },
];

const withoutNulls = <T extends object>(value: T): never =>
  JSON.parse(JSON.stringify(value, (_key, field: unknown) => (field === null ? undefined : field))) as never;

/** Whether a merge patch would change nothing. */
const isAlready = (object: object, change: object): boolean =>
  Object.entries(change).every(([key, wanted]: [string, unknown]) => {
    const found = (object as Record<string, unknown>)[key];
    if (wanted === null || wanted === undefined) return found === undefined;
    if (typeof wanted !== 'object' || Array.isArray(wanted)) return isDeepStrictEqual(found, wanted);
    return typeof found === 'object' && found !== null ? isAlready(found, wanted) : false;
  });

const ownsCron = (owner: ObjectRef, cron: DataImportCron): boolean => readMark(cron)?.owner === markOf(owner);

const planCron = (owner: ObjectRef, wanted: WantedCron, observed: ObservedTemplates): TemplatesPlan => {
  const before = observed.crons.get(cronKey(wanted));
  const mark = fingerprint(wanted.spec);
  const base = markedMetadata(owner, wanted);
  const metadata = {
    ...base,
    namespace: wanted.namespace,
    name: wanted.name,
    labels: { ...wanted.labels, ...base.labels },
    annotations: { ...wanted.annotations, ...base.annotations, [annotations.templateSpec]: mark },
  };
  if (before === undefined) {
    const apiVersion = 'cdi.kubevirt.io/v1beta1';
    return {
      ...none,
      actions: [create(dataImportCronKind.type, { apiVersion, kind: 'DataImportCron', metadata, spec: wanted.spec })],
    };
  }
  if (!ownsCron(owner, before)) {
    const message = `DataImportCron ${cronKey(wanted)} was not made from a template: it is not changed`;
    return { ...none, problems: [{ about: owner, problem: { reason: 'CronNotOwned', message } }] };
  }
  // The spec is immutable: the cron is deleted, and created again in the next pass.
  if (before.metadata.annotations?.[annotations.templateSpec] !== mark)
    return { ...none, actions: remove(dataImportCronKind.type, before) };
  const { labels, annotations: texts } = metadata;
  const change = { metadata: { labels, annotations: texts } };
  return isAlready(before, change) ? none : { ...none, actions: [patch(dataImportCronKind.type, before, change)] };
};

const planNoCron = (owner: ObjectRef, wanted: WantedCron, observed: ObservedTemplates): TemplatesPlan => {
  const before = observed.crons.get(cronKey(wanted));
  return before !== undefined && ownsCron(owner, before)
    ? { ...none, actions: remove(dataImportCronKind.type, before) }
    : none;
};
