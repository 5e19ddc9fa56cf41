// `npm run test:conformance [-- --apiserver=embedded|real|both] [--only=<text>] [--record]`: runs the suite and prints a table.
import { parseArgs } from 'node:util';
import type { ConformanceServer, Topic } from '#local-cluster/conformance/suite/case.ts';
import { type CaseResult, caseNames, createRunner, runAll } from '#local-cluster/conformance/suite/run.ts';
import { isAvailable, type ServerKind, startServer } from '#local-cluster/conformance/suite/servers.ts';
import { topics } from '#local-cluster/conformance/topics/index.ts';

/** Cases at a time; they mostly wait. */
const width = 6;

const { values } = parseArgs({
  options: {
    apiserver: { type: 'string', default: process.env['CONFORMANCE_APISERVER'] ?? 'embedded' },
    only: { type: 'string', default: '' },
    record: { type: 'boolean', default: false },
  },
});

const kinds: Readonly<Record<string, readonly ServerKind[]>> = {
  embedded: ['embedded'],
  real: ['real'],
  both: ['real', 'embedded'],
};

const selected = (only: string): (readonly [Topic, string])[] =>
  topics
    .flatMap((topic) => caseNames(topic).map((name) => [topic, name] as const))
    .filter(([{ topic }, name]) => `${topic}: ${name}`.includes(only));

const report = ({ topic, name, error, ms }: CaseResult): void => {
  console.log(`${error === undefined ? 'ok  ' : 'FAIL'} ${topic}: ${name} (${ms} ms)`);
  if (error !== undefined) console.log(`     ${(error.stack ?? error.message).replaceAll('\n', '\n     ')}`);
};

const runOn = async (kind: ServerKind): Promise<readonly CaseResult[]> => {
  const server: ConformanceServer = await startServer(kind);
  const runner = await createRunner(server, values.record && kind === 'real');
  try {
    return await runAll(runner, selected(values.only), width, report);
  } finally {
    await runner.close();
    await server.close();
  }
};

/** The table at the end of a run: passed cases and all cases, by topic and server. */
const summaryTable = (results: ReadonlyMap<string, readonly CaseResult[]>): string => {
  const kinds = [...results.keys()];
  const topics = [...new Set([...results.values()].flat().map(({ topic }) => topic))].toSorted();
  const rows = [...topics, 'all'].map((topic) => [
    topic,
    ...kinds.map((kind) => score(results.get(kind) ?? [], topic)),
  ]);
  return [['topic', ...kinds], ...rows]
    .map((row) => row.map((cell, i) => cell.padEnd(i === 0 ? 24 : 12)).join(''))
    .join('\n');
};

const score = (results: readonly CaseResult[], topic: string): string => {
  const mine = results.filter((result) => topic === 'all' || result.topic === topic);
  const passed = mine.filter(({ error }) => error === undefined).length;
  return `${passed}/${mine.length}`;
};

const wanted = kinds[values.apiserver];
if (wanted === undefined) throw new Error(`--apiserver=${values.apiserver}: use embedded, real or both`);
const results = new Map<ServerKind, readonly CaseResult[]>();
for (const kind of wanted) {
  if (isAvailable(kind)) results.set(kind, await runOn(kind));
  else console.log(`no ${kind} API server here${kind === 'real' ? ': run `npm run envtest` first' : ''}`);
}
console.log(summaryTable(results));
process.exitCode = [...results.values()].flat().some(({ error }) => error !== undefined) ? 1 : 0;
