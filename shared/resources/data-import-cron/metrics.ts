// Metrics of a cron, computed from the object alone: a deleted cron has none. Pure.
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { Counter } from '#shared/metrics/metric.ts';
import { gauge, type Metric } from '#shared/metrics/metric.ts';
import { type CronResource, isUpToDate, readCron } from '#shared/resources/data-import-cron/cron.ts';
import { upToDate } from '#shared/resources/data-import-cron/verdict.ts';
import { classNameOf } from '#shared/resources/data-import-cron/template.ts';

/** Seconds since the epoch; 0: never. */
const secondsOf = (text: string | undefined): number => {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? 0 : time / 1000;
};

const outdated = gauge(
  'kubevirt_cdi_dataimportcron_outdated',
  'Whether the newest version of a golden image is not in use and is not being imported.',
);
const polled = gauge(
  'bullion_golden_image_last_poll_seconds',
  'When the source was polled last, in seconds since the epoch.',
);
const due = gauge(
  'bullion_golden_image_next_poll_seconds',
  'When the source is to be polled next, in seconds since the epoch.',
);
const pollFailures = gauge('bullion_golden_image_poll_failures', 'Consecutive polls that failed.');
const imported = gauge(
  'bullion_golden_image_last_import_seconds',
  'When the version in use was imported, in seconds since the epoch.',
);

const happened = gauge(
  'bullion_golden_image_events',
  'What happened over the life of a cron, by event; it only grows while the cron is there.',
);
const events = ['polled', 'pollsFailed', 'imported', 'superseded', 'failed', 'collected'] as const;

/** Waiting for a default storage class is no fault of the source, and its alert leaves it out. */
const isPending = (cron: CronResource): boolean =>
  cron.object.metadata.annotations?.[cdiAnnotations.storageClass] === undefined && classNameOf(cron) === undefined;

/** An import that was begun and has not failed. */
const isUnderWay = ({ state }: CronResource): boolean =>
  state.conditions.some(({ type, reason }) => type === 'UpToDate' && reason === upToDate.importing.reason);

/**
 * The first has the name and labels of the original, under both names it gave to the namespace. The original counts a golden image as outdated
 * while its import runs, and warns of every large one; an import that gets nowhere ends by its own deadlines, and counts from then on.
 */
export const cronMetricsOf = (object: DataImportCron): readonly Metric[] => {
  const { metadata, status = {} } = object;
  const cron = readCron(object);
  const isFresh = isUpToDate(object);
  const labels = { ns: metadata.namespace ?? '', cron_name: metadata.name };
  return [
    outdated(isFresh || isUnderWay(cron) ? 0 : 1, {
      ...labels,
      namespace: labels.ns,
      pending: String(!isFresh && isPending(cron)),
    }),
    polled(secondsOf(status.lastPoll?.time), labels),
    ...(status.nextExecutionTimestamp === undefined ? [] : [due(secondsOf(status.nextExecutionTimestamp), labels)]),
    pollFailures(status.lastPoll?.failures ?? 0, labels),
    imported(secondsOf(status.lastImportTimestamp), labels),
    ...events.map((event) => happened(status.counts?.[event] ?? 0, { ...labels, event })),
  ];
};

export const createCronCounter = (): Counter => {
  const observed: Metric[] = [];
  return {
    visit: (object) => {
      if (object.kind === dataImportCronKind.type.kind) observed.push(...cronMetricsOf(object as DataImportCron));
    },
    metrics: () => observed,
  };
};
