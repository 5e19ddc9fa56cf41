// What a flow costs the cluster: requests to its API server, events that functions handled, those that had to be delivered again, and pods. Read from outside of Bullion.
import { globSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { kubeEvents, pods } from '#shared/api/foreign/core.ts';
import { kube, kubectl, paths } from '#test/cluster/support.ts';

interface Figures {
  /** Requests of everybody, the node's own programs included. */
  readonly requests: number;
  readonly reads: number;
  /** By function. */
  readonly handled: Readonly<Record<string, number>>;
  /** Answered so that they are delivered again. */
  readonly retried: number;
  readonly deadLetters: number;
  /** Of Bullion: those that were there, and those that came. */
  readonly pods: number;
}

const requestsSoFar = async (): Promise<{ readonly all: number; readonly reads: number }> => {
  const lines = (await kubectl('get', '--raw', '/metrics')).split('\n');
  const sum = (pattern: RegExp): number =>
    lines.reduce((total, line) => (pattern.test(line) ? total + Number(line.split(' ').at(-1)) : total), 0);
  return { all: sum(/^apiserver_request_total{/), reads: sum(/^apiserver_request_total{.*verb="(GET|LIST)"/) };
};

interface Line {
  /** RFC 3339. */
  readonly time: string;
  readonly message: string;
  readonly function: string;
  readonly status: number;
}

/** Lines of functions about events, in the log of one container. */
const eventsIn = (text: string): readonly Line[] =>
  text
    .split('\n')
    .filter((line) => line.includes('"event handled"') && line.endsWith('}'))
    .map((line) => JSON.parse(line.slice(line.indexOf('{'))) as Line);

/** The log of a pod goes with it, so that logs are read while the flow runs. */
const createLogs = () => {
  const linesOf = new Map<string, readonly Line[]>();
  return {
    read: async (): Promise<void> => {
      for (const file of globSync(join(paths.dataDir, 'pod-logs/bullion-system_*/!(queue-proxy)/*.log')))
        linesOf.set(file, eventsIn(await readFile(file, 'utf8').catch(() => '')));
    },
    all: (): readonly Line[] => [...linesOf.values()].flat(),
  };
};

/** Figures of the time that `work` takes; `look` is called every few seconds meanwhile. */
export const figuresOf = async (work: () => Promise<unknown>, look: () => Promise<void>): Promise<Figures> => {
  const logs = createLogs();
  const ours = new Set<string>();
  const ended = new AbortController();
  const observe = async (): Promise<void> => {
    await logs.read();
    for (const { metadata } of (await kube.list(pods, { namespace: 'bullion-system' })).items)
      ours.add(metadata.uid ?? '');
    await look();
  };
  const before = await requestsSoFar();
  const started = Date.now();
  const watching = (async () => {
    while (!ended.signal.aborted) {
      await observe().catch(() => undefined);
      await sleep(3_000, undefined, { signal: ended.signal }).catch(() => undefined);
    }
  })();
  await work().finally(() => ended.abort());
  await watching;
  await observe();
  const after = await requestsSoFar();
  const lines = logs.all().filter(({ time }) => Date.parse(time) >= started);
  const letters = await kube.list(kubeEvents, { fieldSelector: 'reason=EventNotHandled' });
  const byFunction = Object.groupBy(lines, (line) => line.function);
  return {
    requests: after.all - before.all,
    reads: after.reads - before.reads,
    handled: Object.fromEntries(Object.entries(byFunction).map(([name, some]) => [name, some?.length ?? 0])),
    retried: lines.filter(({ status }) => status >= 300).length,
    deadLetters: letters.items.length,
    pods: ours.size,
  };
};
