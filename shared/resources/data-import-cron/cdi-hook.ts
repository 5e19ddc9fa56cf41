// Polling for a CDI that is installed: crons with an empty schedule import whatever digest stands in their annotation, and we write it there.
// Their status is CDI's, so what a poll remembers is an annotation of ours. Pure.
import { type DataImportCron, PollStatus } from '#shared/api/cdi/data-import-cron.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import { annotations } from '#shared/api/names.ts';
import type { Recorded } from '#shared/resources/data-import-cron/due.ts';

const Kept = PollStatus.extend({ next: PollStatus.shape.time.optional() });

const keptOf = ({ metadata }: DataImportCron) => {
  try {
    return Kept.safeParse(JSON.parse(metadata.annotations?.[annotations.poll] ?? '')).data;
  } catch {
    return undefined;
  }
};

/**
 * The cron as polls see it: our schedule in the place of the empty one, and what we remember in the place of a status. One with a schedule in
 * its spec is CDI's to poll, and has none here.
 */
export const asHooked = (cron: DataImportCron): DataImportCron => {
  const {
    [cdiAnnotations.nextCronTime]: _next,
    [cdiAnnotations.lastCronTime]: _last,
    ...rest
  } = cron.metadata.annotations ?? {};
  const schedule = cron.spec.schedule === '' ? (cron.metadata.annotations?.[annotations.schedule] ?? '') : '';
  const kept = keptOf(cron);
  if (kept === undefined)
    return { ...cron, metadata: { ...cron.metadata, annotations: rest }, spec: { ...cron.spec, schedule }, status: {} };
  const { next, ...lastPoll } = kept;
  const times = {
    [cdiAnnotations.lastCronTime]: lastPoll.time,
    ...(next === undefined ? {} : { [cdiAnnotations.nextCronTime]: next }),
  };
  return {
    ...cron,
    metadata: { ...cron.metadata, annotations: { ...rest, ...times } },
    spec: { ...cron.spec, schedule },
    status: { lastPoll },
  };
};

/** What is written: the digest, where it is a new one, and what is remembered. */
export const hookAnnotations = ({ annotations: recorded, lastPoll }: Recorded): Readonly<Record<string, string>> => {
  const { [cdiAnnotations.nextCronTime]: next, [cdiAnnotations.desiredDigest]: digest } = recorded;
  return {
    ...(digest === undefined ? {} : { [cdiAnnotations.desiredDigest]: digest }),
    [annotations.poll]: JSON.stringify({ ...lastPoll, next }),
  };
};
