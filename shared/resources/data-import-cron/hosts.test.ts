// Crons of a host that asks to be left alone: how many requests it gets meanwhile, and that every cron has its turn afterwards.
import { beforeEach, describe, expect, it } from 'vitest';
import { type DataImportCron, dataImportCronKind } from '#shared/api/cdi/data-import-cron.ts';
import { leases } from '#shared/api/foreign/kubernetes.ts';
import { cdiAnnotations } from '#shared/api/cdi/names.ts';
import type { Observation } from '#shared/golden/poll/observation.ts';
import { sourceName } from '#shared/golden/source.ts';
import { createDuePolls } from '#shared/resources/data-import-cron/due-polls.ts';
import { recordOf } from '#shared/resources/data-import-cron/due.ts';
import { pollIfDue } from '#shared/resources/data-import-cron/poll.ts';
import { tick } from '#shared/resources/sweep.ts';
import { aGoldenCron, settledStatus } from '#test/bench/golden/crons.ts';
import { digestOf, minute, namespace, useCronWorld } from '#test/support/cron-world.ts';

const world = useCronWorld();
/** Settled, and due at once. */
const aSettledCron = (index: number, host = 'quay.io'): DataImportCron => {
  const cron = aGoldenCron({ namespace, index, url: `docker://${host}/disks/${index}:1`, digest: digestOf('a') });
  const annotations = { ...cron.metadata.annotations, [cdiAnnotations.nextCronTime]: '2026-03-01T00:00:00Z' };
  const due = { ...cron, metadata: { ...cron.metadata, uid: String(index), annotations } };
  const often = { ...due, spec: { ...cron.spec, schedule: '* * * * *' } };
  return { ...often, status: settledStatus(often, digestOf('a')) };
};

const someCrons = (count: number, host?: string): DataImportCron[] =>
  Array.from({ length: count }, (_, index) => aSettledCron(index, host));

interface Limit {
  /** Polls that the host answers in a minute. */
  readonly perMinute: number;
  /** The delay in seconds that it asks for; unset: none. */
  readonly retryAfter?: number;
  /** A poll of this source needs more than there ever is. */
  readonly tooMuch?: (source: string) => boolean;
}

interface Observed {
  /** Minutes since the start, of each poll that was answered, by source. */
  readonly answered: Map<string, number[]>;
  /** Refused polls by minute. */
  readonly refused: number[];
  /** Polls during the delay that the host asked for. */
  tooEarly: number;
}

const run = async (
  turn: () => Promise<unknown>,
  minutes: number,
  { perMinute, retryAfter, tooMuch = () => false }: Limit,
): Promise<Observed> => {
  const observed: Observed = { answered: new Map(), refused: [], tooEarly: 0 };
  const start = world.time;
  let left = perMinute;
  let leftAlone = 0;
  world.answer = ({ source }) => {
    const at = (world.time - start) / minute;
    const name = sourceName(source);
    // Polls in progress at the first rejection were sent before it.
    if (world.time < leftAlone) observed.tooEarly += 1;
    if (left <= 0 || tooMuch(name)) {
      left = 0;
      observed.refused[at] = (observed.refused[at] ?? 0) + 1;
      leftAlone = Math.max(leftAlone, world.time + (retryAfter ?? 0) * 1000);
      return { is: 'failed', reason: 'RateLimited', message: 'answered 429', retryAfterSeconds: retryAfter };
    }
    left -= 1;
    observed.answered.set(name, [...(observed.answered.get(name) ?? []), at]);
    return { is: 'same', message: 'still' };
  };
  for (let at = 0; at < minutes; at += 1) {
    left = perMinute;
    await turn();
    world.time += minute;
  }
  return observed;
};

/** A tick, and the effect of the results on crons, without other changes of these. */
const polls = (crons: DataImportCron[]) => async (): Promise<void> => {
  const send = ({ data }: { readonly data?: unknown }) => {
    const { cron, observation } = data as {
      readonly cron: { readonly uid: string };
      readonly observation: Observation;
    };
    const before = crons[Number(cron.uid)]!;
    const { annotations, ...status } =
      observation.is === 'waiting'
        ? { annotations: { [cdiAnnotations.nextCronTime]: observation.until }, waiting: observation }
        : { ...recordOf(before, observation, world.time), waiting: undefined };
    const metadata = { ...before.metadata, annotations: { ...before.metadata.annotations, ...annotations } };
    crons[Number(cron.uid)] = { ...before, metadata, status: { ...before.status, ...status } as never };
    return Promise.resolve({ isDelivered: true } as never);
  };
  const due = await createDuePolls({ ...world.deps, send });
  for (const cron of crons) due.visit(cron);
  await due.run();
};

const gapsOf = ({ answered }: Observed, minutes: number): readonly number[] =>
  [...answered.values()].map((times) =>
    Math.max(...[...times, minutes].map((time, index) => time - (times[index - 1] ?? 0))),
  );

describe('a host that answers only a few polls per minute', () => {
  it.each([
    { count: 2, perMinute: 1, retryAfter: 60, minutes: 60, most: 12 },
    { count: 2, perMinute: 1, minutes: 60, most: 12 },
    { count: 12, perMinute: 5, retryAfter: 60, minutes: 60, most: 15 },
    { count: 12, perMinute: 5, minutes: 60, most: 15 },
    { count: 12, perMinute: 5, retryAfter: 300, minutes: 90, most: 40 },
    { count: 100, perMinute: 20, retryAfter: 60, minutes: 60, most: 30 },
    { count: 1000, perMinute: 100, minutes: 60, most: 50 },
  ])(
    'is not overloaded, and answers every one of $count crons: %o',
    async ({ count, minutes, most, ...limit }) => {
      const observed = await run(polls(someCrons(count)), minutes, limit);
      // In the first minute the limit is unknown, and eight are polled at once.
      const [first = 0, ...later] = Array.from(observed.refused, (refused) => refused ?? 0);
      expect(first).toBeLessThanOrEqual(8);
      expect(Math.max(...later)).toBeLessThanOrEqual(1);
      expect(observed.tooEarly).toBeLessThan(8);
      expect(observed.answered.size).toBe(count);
      expect(Math.max(...gapsOf(observed, minutes))).toBeLessThanOrEqual(most);
    },
    120_000,
  );

  it('is polled for all crons, although one of them requests more than its share', async () => {
    const crons = someCrons(12);
    const observed = await run(polls(crons), 180, { perMinute: 5, tooMuch: (source) => source.includes('/3:') });
    expect(observed.answered.size).toBe(11);
    expect(Math.max(...gapsOf(observed, 180))).toBeLessThanOrEqual(45);
    expect(crons[3]?.status?.lastPoll?.failures).toBeGreaterThan(3);
  });
});

describe('a host that rejects all polls for hours', () => {
  it.each([60, undefined])(
    'is polled less and less often, whatever delay it asks for: %s seconds',
    async (retryAfter) => {
      const crons = someCrons(12);
      const observed = await run(polls(crons), 6 * 60, {
        perMinute: 0,
        ...(retryAfter === undefined ? {} : { retryAfter }),
      });
      expect(observed.refused.reduce((sum, one) => sum + (one ?? 0), 0)).toBeLessThanOrEqual(8 + 12);
      // One that waited has spent no attempt.
      const failures = crons.map(({ status }) => status?.lastPoll?.failures ?? 0);
      expect(failures.reduce((sum, one) => sum + one, 0)).toBe(world.asked.length);
      const back = await run(polls(crons), 60 + 5, { perMinute: 1000 });
      expect(back.answered.size).toBe(12);
      expect(world.kube.all(leases)).toEqual([]);
    },
  );

  it('does not delay polls of other hosts', async () => {
    const crons = [...someCrons(3), ...someCrons(6, 'other.example').slice(3)];
    const observed = await run(polls(crons), 30, {
      perMinute: 1000,
      tooMuch: (source) => source.startsWith('quay.io'),
    });
    expect([...observed.answered.keys()].every((source) => source.startsWith('other'))).toBe(true);
    expect(Math.max(...gapsOf(observed, 30))).toBeLessThanOrEqual(2);
  });

  const reconciler = () => tick(world.deps);
  const seed = (...crons: readonly DataImportCron[]): void => {
    for (const cron of crons) world.kube.seed(dataImportCronKind.type, cron);
  };
  const crons = (): readonly DataImportCron[] => world.kube.all(dataImportCronKind.type);
  const cronOf = (index: number): DataImportCron => crons().find(({ metadata }) => metadata.name === `cron-${index}`)!;
  beforeEach(() => {
    world.time += minute;
  });

  it('is reported on every cron of the host, without an attempt for those that wait', async () => {
    seed(...someCrons(12));
    await run(reconciler, 1, { perMinute: 0, retryAfter: 600 });
    const [refused, waiting] = [true, false].map((isRefused) =>
      crons().filter(({ status }) => (status?.lastPoll?.outcome === 'Failed') === isRefused),
    );
    expect([refused?.length, waiting?.length]).toEqual([8, 4]);
    const saidBy = ({ status }: DataImportCron) => status?.conditions?.find(({ type }) => type === 'Degraded');
    for (const cron of refused!)
      expect(saidBy(cron)).toMatchObject({
        reason: 'RateLimited',
        message: 'the source cannot be polled (attempt 1): answered 429; the next attempt is at 2026-03-01T00:11:00Z',
      });
    expect(waiting!.map((cron) => saidBy(cron)?.reason)).toEqual(Array.from({ length: 4 }, () => 'RateLimited'));
    expect(
      waiting!.map(({ status }) => status?.nextExecutionTimestamp ?? '').toSorted((a, b) => a.localeCompare(b)),
    ).toEqual([
      '2026-03-01T00:11:00.000Z',
      '2026-03-01T00:12:00.000Z',
      '2026-03-01T00:12:00.000Z',
      '2026-03-01T00:13:00.000Z',
    ]);
    expect(saidBy(waiting![0]!)?.message).toMatch(/^quay\.io asked for a pause until .*; the next attempt is at 2026-/);
    await run(reconciler, 15, { perMinute: 1000 });
    expect(crons().map(({ status }) => [status?.waiting, status?.lastPoll?.failures])).toEqual(
      Array.from({ length: 12 }, () => [undefined, 0]),
    );
  });

  it('is not polled for a new cron either', async () => {
    seed(aSettledCron(0));
    await run(reconciler, 1, { perMinute: 0, retryAfter: 600 });
    seed(aSettledCron(1));
    const before = world.asked.length;
    await pollIfDue(world.deps, cronOf(1));
    expect([world.asked.length, cronOf(1).status?.waiting?.until]).toEqual([before, '2026-03-01T00:11:00.000Z']);
    await run(reconciler, 15, { perMinute: 1000 });
    expect([cronOf(1).status?.waiting, cronOf(1).status?.lastPoll?.failures]).toEqual([undefined, 0]);
  });
});
