// What monitoring is told of a cron, recomputed from the object alone: a cron that is gone is told of no more. Pure.
import type { DataImportCron } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { isUpToDate, readCron } from '#shared/resources/data-import-cron/subject.ts';
import { classNameOf } from '#shared/resources/data-import-cron/template.ts';

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Seconds since the epoch; 0: never. */
const secondsOf = (text: string | undefined): number => {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? 0 : time / 1000;
};

/** Waiting for a default storage class is no fault of the source, and its alert leaves it out. */
const isPending = (cron: DataImportCron): boolean =>
  cron.metadata.annotations?.[cdiAnnotations.storageClass] === undefined && classNameOf(readCron(cron)) === undefined;

/** The first has the name and labels of the original, which its alerts are written for. */
export const metricsOf = (cron: DataImportCron): readonly Metric[] => {
  const { metadata, status = {} } = cron;
  const isFresh = isUpToDate(cron);
  const labels = { ns: metadata.namespace ?? '', cron_name: metadata.name };
  const gauge = (name: string, help: string, value: number): Metric => ({ name, help, labels, value });
  return [
    {
      name: 'kubevirt_cdi_dataimportcron_outdated',
      help: 'Whether the newest version of a golden image is not in use yet.',
      labels: { ...labels, pending: String(!isFresh && isPending(cron)) },
      value: isFresh ? 0 : 1,
    },
    gauge(
      'bullion_golden_image_last_poll_seconds',
      'When the source was asked last, in seconds since the epoch.',
      secondsOf(status.lastPoll?.time),
    ),
    gauge(
      'bullion_golden_image_poll_failures',
      'Polls that failed one after the other.',
      status.lastPoll?.failures ?? 0,
    ),
    gauge(
      'bullion_golden_image_last_import_seconds',
      'When the version in use was imported, in seconds since the epoch.',
      secondsOf(status.lastImportTimestamp),
    ),
  ];
};
