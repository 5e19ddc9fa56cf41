// The table at the end of a run: cases passed of cases run, by topic and server.
import type { CaseResult } from '#local-cluster/conformance/suite/run.ts';

export const summaryTable = (results: ReadonlyMap<string, readonly CaseResult[]>): string => {
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
