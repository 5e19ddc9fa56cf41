// What was made from templates that are no more. Pure; part of the plan of templates.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { type DataSource, dataSourceKind } from '#shared/api/cdi/data-source.ts';
import { cdiLabels } from '#shared/api/cdi/names.ts';
import { type Action, patch, remove } from '#shared/backends/actions.ts';
import type { BootSources } from '#shared/golden/templates/expand.ts';
import { type Ask, type ObservedTemplates, cronKey } from '#shared/resources/templates/ask.ts';
import { markOf, readMark, unmarkingPatch } from '#shared/resources/templates/marks.ts';

/** Crons first: they take along what is theirs. */
export const removeUnwanted = (asks: readonly Ask[], observed: ObservedTemplates): readonly Action[] => {
  const kept = new Set(asks.filter(({ wanted }) => wanted === undefined).map(({ owner }) => markOf(owner)));
  const names = (pick: (wanted: BootSources) => readonly string[]) =>
    new Set(asks.flatMap(({ wanted }) => (wanted === undefined ? [] : pick(wanted))));
  const crons = names((wanted) => wanted.crons.map(cronKey));
  const sources = names((wanted) => wanted.sources.map(({ name }) => name));
  const isOurs = (object: DataImportCron | DataSource): boolean => {
    const mark = readMark(object);
    return mark !== undefined && !kept.has(mark.owner);
  };
  const goingCrons = [...observed.crons].flatMap(([key, cron]) => (!crons.has(key) && isOurs(cron) ? [cron] : []));
  const goingSources = [...observed.sources].flatMap(([name, source]) =>
    !sources.has(name) && isOurs(source) ? [source] : [],
  );
  const isFed = ({ metadata }: DataSource): boolean =>
    [...observed.crons.values()].some((cron) => cron.metadata.name === metadata.labels?.[cdiLabels.cron]);
  return [
    ...goingCrons.flatMap((cron) => remove(dataImportCronKind.type, cron)),
    ...goingSources.filter((source) => !isFed(source)).flatMap(release),
  ];
};

/** Nobody's DataSource is deleted that somebody else made. */
const release = (source: DataSource): readonly Action[] =>
  readMark(source)?.isAdopted === true
    ? [patch(dataSourceKind.type, source, unmarkingPatch())]
    : remove(dataSourceKind.type, source);
