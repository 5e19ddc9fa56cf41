// `npm run bench -- admission [--rounds 9] [--requests 1500] [--clients 8] [--starts 11]`: validate and mutate beside a bare handler that parses
// and echoes the same review, then their cold starts beside bare Node. In turns, medians of rounds.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { measureColdStarts } from '#test/bench/admission/cold-start.ts';
import { closeConnections, type Measured, measureLoad, quantile } from '#test/bench/admission/load.ts';
import { median, toTable } from '#test/bench/table.ts';
import { aHyperCloudImage, aReview } from '#test/support/admission.ts';

/** Most that may be paid for validation and defaults, and for the first answer: the project's own promise. */
const limits = { ratio: 1.6, coldStart: 3 } as const;

const paths = ['/echo', '/validate', '/mutate'] as const;
type Path = (typeof paths)[number];

/** As kubectl sends it: with managed fields and what was applied last. Nothing in it is looked up. */
const aRealReview = (): string => {
  const object = aHyperCloudImage(
    { storageClassName: 'fast', checksum: `sha256:${'a1'.repeat(32)}` },
    { labels: { app: 'images', team: 'platform' }, annotations: { 'example.dev/note': 'x'.repeat(400) } },
  );
  const managedFields = [{ manager: 'kubectl', operation: 'Apply', fieldsV1: { 'f:spec': { 'f:source': {} } } }];
  return JSON.stringify(aReview({ object: { ...object, metadata: { ...object.metadata, managedFields } } }));
};

interface Options {
  readonly rounds: number;
  readonly requests: number;
  readonly clients: number;
}

const startServer = async (): Promise<{
  readonly portOf: (path: Path) => number;
  readonly stop: () => Promise<unknown>;
}> => {
  const child = fork(new URL('server.ts', import.meta.url), { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the server ended before it listened');
  });
  const [ports] = (await Promise.race([once(child, 'message'), ended])) as [readonly number[]];
  ended.catch(() => undefined);
  return {
    portOf: (path) => ports[paths.indexOf(path)] ?? 0,
    stop: () => {
      const ended = once(child, 'exit');
      child.disconnect();
      return ended;
    },
  };
};

/** One round of each path after the other, again and again: whatever else the machine does falls on all of them alike. */
const measureRounds = async ({
  rounds,
  requests,
  clients,
}: Options): Promise<ReadonlyMap<Path, readonly Measured[]>> => {
  const server = await startServer();
  const measured = new Map<Path, Measured[]>(paths.map((path) => [path, []]));
  const body = aRealReview();
  try {
    for (const path of paths)
      await measureLoad({ port: server.portOf(path), path, body, clients, requests: requests * 2 });
    for (let round = 0; round < rounds; round++) {
      for (const path of paths) {
        measured.get(path)?.push(await measureLoad({ port: server.portOf(path), path, body, clients, requests }));
      }
    }
  } finally {
    closeConnections();
    await server.stop();
  }
  return measured;
};

const measures = {
  'requests/s': ({ perSecond }: Measured) => perSecond,
  'p50 ms': ({ times }: Measured) => quantile(times, 0.5),
  'p99 ms': ({ times }: Measured) => quantile(times, 0.99),
} as const;

/** Of each round, then the median: rounds are compared with themselves. */
const ratiosOf = (all: ReadonlyMap<Path, readonly Measured[]>, path: Path, of: (round: Measured) => number): number =>
  median((all.get(path) ?? []).map((round, index) => of(round) / of((all.get('/echo') ?? [])[index] ?? round)));

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: 'string', default: '9' },
      requests: { type: 'string', default: '1500' },
      clients: { type: 'string', default: '8' },
      starts: { type: 'string', default: '11' },
    },
  });
  const all = await measureRounds({
    rounds: Number(values.rounds),
    requests: Number(values.requests),
    clients: Number(values.clients),
  });
  const names = Object.keys(measures) as (keyof typeof measures)[];
  const rows = paths.map((path) => [
    path,
    ...names.flatMap((name) => {
      const value = median((all.get(path) ?? []).map(measures[name]));
      const ratio = ratiosOf(all, path, measures[name]);
      return [
        value.toFixed(name === 'requests/s' ? 0 : 2),
        name === 'requests/s' ? (1 / ratio).toFixed(2) : ratio.toFixed(2),
      ];
    }),
  ]);
  console.log(toTable([['path', ...names.flatMap((name) => [name, '÷ echo'])], ...rows]));
  console.log(`\nat most ${limits.ratio} times the bare handler\n`);
  const starts = await measureColdStarts(aRealReview(), Number(values.starts));
  closeConnections();
  const startRows = starts.map(({ name, ms, bareMs, ratio }) => [
    name,
    ms.toFixed(0),
    bareMs.toFixed(0),
    ratio.toFixed(2),
  ]);
  console.log(toTable([['cold start of', 'ms to first answer', 'ms of node -e 0', 'ratio'], ...startRows]));
  console.log(`\nat most ${limits.coldStart} times bare Node\n`);
};
