// Sends the events of Knative's PingSource: one at each time of its schedule, without catching up missed ones. Started by the local cluster.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { eventTypes } from '#events/catalogue.ts';
import { type CloudEvent, isJson, parseMediaType } from '#events/event.ts';
import { sleep as realSleep, type Send, type Sleep, wordsOf } from '#events/sender.ts';
import {
  cronDescriptors,
  type CronFields,
  isDay,
  openZone,
  parseFields,
  parseSeconds,
  type Zone,
} from '#shared/runtime/cron.ts';
import { InvalidInput } from '#shared/runtime/errors.ts';
import type { Logger } from '#shared/runtime/log.ts';

// Schedules of PingSource: five fields or six with seconds first, in UTC or a named time zone. As in Knative, a wall time that a clock change
// skips is not caught up, and one that occurs twice counts twice.

interface Schedule {
  /** The next matching time after `time`; undefined if there is none within five years. */
  next(time: Date): Date | undefined;
}

interface PingFields extends CronFields {
  readonly seconds: ReadonlySet<number>;
}

/** Throws InvalidInput with the invalid part. */
export const parseSchedule = (text: string, timeZone = 'UTC'): Schedule => {
  const parts = (cronDescriptors.get(text.trim()) ?? text).trim().split(/\s+/);
  if (parts.length === 5) parts.unshift('0');
  if (parts.length !== 6) throw invalid(text, 'must have five fields, or six with seconds first');
  const seconds = parseSeconds(parts[0] ?? '');
  if ('problem' in seconds) throw invalid(text, seconds.problem);
  const fields = parseFields(parts.slice(1).join(' '));
  if ('problem' in fields) throw invalid(text, fields.problem);
  const zone = openZone(timeZone);
  if (zone === undefined) throw invalid(text, `has an unknown time zone ${timeZone}`);
  return { next: (time) => next(time, { ...fields, seconds }, zone) };
};

const invalid = (schedule: string, problem: string): InvalidInput =>
  new InvalidInput(`schedule ${JSON.stringify(schedule)} ${problem}`, [{ field: 'spec.schedule', message: problem }]);

const horizonMs = 5 * 366 * 86_400_000;

const quarterMs = 900_000;
const hourMs = 3_600_000;

/** Skips times that cannot match, in units that align with every zone's wall clock. */
const next = (after: Date, fields: PingFields, zone: Zone): Date | undefined => {
  let time = Math.floor(after.getTime() / 1000) * 1000 + 1000;
  while (time - after.getTime() < horizonMs) {
    const step = stepFrom(new Date(zone.wallOf(time)), fields);
    if (step === 0) return new Date(time);
    const unit = Math.min(step, quarterMs);
    time = Math.floor(time / unit) * unit + step;
  }
  return undefined;
};

/**
 * Milliseconds to skip; 0 if everything matches. A wrong month or day is skipped by a jump that ends well before its end, since the wall clock
 * may shift by up to two hours meanwhile.
 */
const stepFrom = (wall: Date, fields: PingFields): number => {
  const [day, isMonth] = [wall.getUTCDate(), fields.months.has(wall.getUTCMonth() + 1)];
  if (!isMonth && day < 27) return (27 - day) * 24 * hourMs;
  if (!isMonth || !isDay(fields, day, wall.getUTCDay())) return Math.max(quarterMs, (21 - wall.getUTCHours()) * hourMs);
  if (!fields.hours.has(wall.getUTCHours())) return quarterMs;
  if (!fields.minutes.has(wall.getUTCMinutes())) return 60_000;
  return fields.seconds.has(wall.getUTCSeconds()) ? 0 : 1000;
};

const PingSource = z.looseObject({
  kind: z.literal('PingSource'),
  metadata: z.looseObject({ name: z.string(), namespace: z.string().default('default') }),
  spec: z.strictObject({
    schedule: z.string().default('* * * * *'),
    timezone: z.string().optional(),
    contentType: z.string().optional(),
    data: z.string().optional(),
    dataBase64: z.string().optional(),
    ceOverrides: z.object({ extensions: z.record(z.string(), z.string()).optional() }).optional(),
    sink: z.unknown(),
  }),
});
type PingSource = z.infer<typeof PingSource>;

/** Throws InvalidInput with every fault; with a JSON content type the data must be an object, as in Knative's webhook. */
export const parsePingSource = (manifest: unknown): PingSource => {
  const result = PingSource.safeParse(manifest);
  if (!result.success) throw new InvalidInput(`PingSource: ${z.prettifyError(result.error)}`);
  const { data, dataBase64, contentType, schedule, timezone } = result.data.spec;
  if (data !== undefined && dataBase64 !== undefined) {
    throw new InvalidInput('PingSource: spec.data and spec.dataBase64 exclude each other');
  }
  if (data !== undefined && isJson(parseMediaType(contentType)) && !isJsonObject(data)) {
    throw new InvalidInput('PingSource: spec.data must be a JSON object');
  }
  parseSchedule(schedule, timezone);
  return result.data;
};

interface PingOptions {
  readonly source: PingSource;
  readonly send: Send;
  readonly log: Logger;
  /** Seconds between events, instead of the schedule. */
  readonly tickSeconds?: number | undefined;
  readonly now?: () => Date;
  readonly sleep?: Sleep;
  readonly newId?: () => string;
}

/** Runs until stopped. Events may overlap: a slow delivery does not delay the following ones. */
export const startPing = (options: PingOptions): { stop(): Promise<void> } => {
  const stop = new AbortController();
  const ended = run(options, stop.signal);
  return {
    stop: async () => {
      stop.abort();
      await ended;
    },
  };
};

const run = async (options: PingOptions, signal: AbortSignal): Promise<void> => {
  const { source, now = () => new Date(), sleep = realSleep, tickSeconds } = options;
  const schedule: Schedule =
    tickSeconds === undefined
      ? parseSchedule(source.spec.schedule, source.spec.timezone)
      : { next: (time) => new Date(time.getTime() + tickSeconds * 1000) };
  const sends = new Set<Promise<void>>();
  for (;;) {
    const next = schedule.next(now());
    if (next === undefined) break;
    await sleepUntil(next, { now, sleep }, signal);
    if (signal.aborted) break;
    const send = ping(options, signal).finally(() => sends.delete(send));
    sends.add(send);
  }
  await Promise.all(sends);
};

/** A timer is limited to about 24 days, and the clock may be changed meanwhile: check again each minute. */
const sleepUntil = async (
  time: Date,
  { now, sleep }: { readonly now: () => Date; readonly sleep: Sleep },
  signal: AbortSignal,
): Promise<void> => {
  for (
    let left = time.getTime() - now().getTime();
    left > 0 && !signal.aborted;
    left = time.getTime() - now().getTime()
  ) {
    await sleep(Math.min(left, 60_000), signal);
  }
};

const ping = async (options: PingOptions, signal: AbortSignal): Promise<void> => {
  const event = buildPing(options.source, (options.newId ?? randomUUID)(), (options.now ?? (() => new Date()))());
  const { isDelivered, attempts, last } = await options.send(event, signal);
  if (!isDelivered && !signal.aborted)
    options.log.error('ping lost', { eventId: event.id, attempts, fault: wordsOf(last) });
};

/** `v1` in the source is literal. Without a content type the data is sent as written. */
export const buildPing = ({ metadata, spec }: PingSource, id: string, now: Date): CloudEvent => ({
  id,
  source: `/apis/v1/namespaces/${metadata.namespace}/pingsources/${metadata.name}`,
  type: eventTypes.ping,
  time: now.toISOString(),
  ...(spec.contentType === undefined ? {} : { datacontenttype: spec.contentType }),
  extensions: spec.ceOverrides?.extensions ?? {},
  data: dataOf(spec),
});

/** Bytes, so that they are sent exactly as in the manifest. */
const dataOf = ({ data, dataBase64 }: PingSource['spec']): Uint8Array | undefined => {
  if (dataBase64 !== undefined) return Buffer.from(dataBase64, 'base64');
  return data === undefined ? undefined : Buffer.from(data);
};

const isJsonObject = (text: string): boolean => {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
};
