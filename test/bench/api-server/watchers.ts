// A thousand watches of one collection, each of which must get every event, in order; and watches that stop reading.
import { setTimeout as sleep } from 'node:timers/promises';
import { expectStatus, percentile } from '#test/bench/api-server/load.ts';
import { cpuSeconds, residentMiB } from '#test/bench/processes.ts';
import type { Server } from '#test/bench/api-server/servers.ts';
import type { OpenWatch } from '#test/support/api-server/http.ts';

const collection = '/api/v1/namespaces/default/configmaps';

/** Opened at a time. */
const openingAtOnce = 20;
/** Milliseconds in which everything sent must have arrived. */
const patience = 60_000;

export interface Watchers {
  readonly watchers: number;
  readonly delivered: number;
  readonly lost: number;
  readonly openSeconds: number;
  /** Milliseconds from before the write to the arrival of the line. */
  readonly p50: number;
  readonly p99: number;
  /** MiB resident before the watches are open, with all open, and after all events. */
  readonly before: number;
  readonly open: number;
  readonly after: number;
  /** Microseconds of processor time per event and watcher. */
  readonly cpuPerDelivery: number;
}

export interface WatchersOptions {
  readonly watchers: number;
  readonly events: number;
  readonly perSecond: number;
}

export const measureWatchers = async (server: Server, options: WatchersOptions): Promise<Watchers> => {
  const { watchers, events, perSecond } = options;
  const name = 'watched';
  const body = (event: number) => ({ metadata: { name }, data: { event: `#${event}#`, text: 'x'.repeat(1000) } });
  const created = expectStatus(await server.http.call('POST', collection, body(-1)), 201);
  const { metadata } = JSON.parse(created) as { metadata: { resourceVersion: string } };
  const path = `${collection}?watch=1&resourceVersion=${metadata.resourceVersion}`;

  const before = residentMiB(server.pids);
  const sentAt: number[] = [];
  const latencies: number[] = [];
  let lost = 0;
  const follow = () => {
    let expected = 0;
    return (line: string): void => {
      const event = Number(/"event":"#(\d+)#"/.exec(line)?.[1]);
      if (event !== expected) lost += 1;
      expected = event + 1;
      latencies.push(performance.now() - (sentAt[event] ?? Number.NaN));
    };
  };
  const began = performance.now();
  const opened = await openAll(watchers, () => server.http.watch(path, follow()));
  const openSeconds = (performance.now() - began) / 1000;
  const open = residentMiB(server.pids);

  const cpuBefore = cpuSeconds(server.pids);
  for (let event = 0; event < events; event += 1) {
    const due = sleep(1000 / perSecond);
    sentAt.push(performance.now());
    expectStatus(await server.http.call('PUT', `${collection}/${name}`, body(event)), 200);
    await due;
  }
  const deadline = performance.now() + patience;
  while (latencies.length < watchers * events && performance.now() < deadline) await sleep(20);
  const cpu = cpuSeconds(server.pids) - cpuBefore;
  const after = residentMiB(server.pids);
  for (const watch of opened) watch.stop();
  await Promise.all(opened.map(({ ended }) => ended));
  return {
    watchers,
    openSeconds,
    before,
    open,
    after,
    delivered: latencies.length,
    lost: lost + watchers * events - latencies.length,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    cpuPerDelivery: (cpu * 1e6) / (watchers * events),
  };
};

const openAll = async (count: number, open: () => Promise<OpenWatch>): Promise<OpenWatch[]> => {
  const opened: OpenWatch[] = [];
  let left = count;
  const opener = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      opened.push(await open());
    }
  };
  await Promise.all(Array.from({ length: openingAtOnce }, opener));
  return opened;
};
