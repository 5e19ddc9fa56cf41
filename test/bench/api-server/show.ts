// The table of the API server benchmark. Called by run.ts.
import type { History } from '#test/bench/api-server/history.ts';
import { type Load, percentile } from '#test/bench/api-server/load.ts';
import type { Paging } from '#test/bench/api-server/paging.ts';
import type { Kind } from '#test/bench/api-server/servers.ts';
import type { Watchers } from '#test/bench/api-server/watchers.ts';
import { toTable } from '#test/bench/table.ts';

export interface Results {
  requests?: ReadonlyMap<string, Readonly<Partial<Record<Kind, Load>>>>;
  readonly pages: Map<Kind, Paging>;
  readonly watches: Map<Kind, Watchers>;
  readonly history: Map<Kind, History>;
}

/** One line: what is measured, and the number of each server that has one. */
interface Line {
  readonly name: string;
  readonly of: (kind: Kind) => number | undefined;
}

const perSecond = ({ requests, seconds }: Load): number => requests / seconds;
const cpuPerRequest = ({ requests, cpu }: Load): number => (cpu * 1000) / requests;

const requestLines = (requests: Results['requests']): Line[] =>
  [...(requests ?? [])].flatMap(([name, loads]) => {
    const line = (what: string, measure: (load: Load) => number): Line => ({
      name: `${name}: ${what}`,
      of: (kind) => (loads[kind] === undefined ? undefined : measure(loads[kind])),
    });
    return [
      line('per second', perSecond),
      line('p99 ms', ({ latencies }) => percentile(latencies, 99)),
      line('server cpu ms', cpuPerRequest),
    ];
  });

const linesOf = <Measured>(
  results: ReadonlyMap<Kind, Measured>,
  measures: Readonly<Record<string, (measured: Measured) => number>>,
): Line[] =>
  results.size === 0
    ? []
    : Object.entries(measures).map(([name, measure]) => ({
        name,
        of: (kind) => {
          const measured = results.get(kind);
          return measured === undefined ? undefined : measure(measured);
        },
      }));

const pageMeasures: Readonly<Record<string, (paging: Paging) => number>> = {
  'objects of 4 KiB': ({ read }) => read,
  'their creation: per second': ({ writes }) => perSecond(writes),
  'their creation: server cpu ms': ({ writes }) => cpuPerRequest(writes),
  'page of 500: p50 ms': ({ p50 }) => p50,
  'page of 500: p99 ms': ({ p99 }) => p99,
  'all pages: seconds': ({ seconds }) => seconds,
  'before the pages: MiB resident': ({ before }) => before,
  'during the pages: MiB at most': ({ most }) => most,
  'after the pages: MiB resident': ({ after }) => after,
  'all in one answer: seconds': ({ wholeSeconds }) => wholeSeconds,
  'all in one answer: MiB at most': ({ wholeMost }) => wholeMost,
};

const watchMeasures: Readonly<Record<string, (watchers: Watchers) => number>> = {
  watchers: ({ watchers }) => watchers,
  'to open them: seconds': ({ openSeconds }) => openSeconds,
  'events delivered': ({ delivered }) => delivered,
  'events lost or out of order': ({ lost }) => lost,
  'delivery: p50 ms': ({ p50 }) => p50,
  'delivery: p99 ms': ({ p99 }) => p99,
  'delivery: server cpu µs': ({ cpuPerDelivery }) => cpuPerDelivery,
  'without watchers: MiB resident': ({ before }) => before,
  'with watchers: MiB resident': ({ open }) => open,
  'after the events: MiB resident': ({ after }) => after,
};

const historyMeasures: Readonly<Record<string, (history: History) => number>> = {
  'changes of 4 KiB, 10 watches not reading': ({ changes }) => changes,
  'halfway: MiB on disk': ({ diskHalfway }) => diskHalfway,
  'at the end: MiB on disk': ({ diskAfter }) => diskAfter,
  'halfway: MiB resident': ({ residentHalfway }) => residentHalfway,
  'at the end: MiB resident': ({ residentAfter }) => residentAfter,
  'a watch from the first version: code': ({ oldest }) => oldest,
};

const toNumber = (value: number | undefined): string => {
  if (value === undefined) return '';
  return value.toFixed(Number.isInteger(value) || value >= 100 ? 0 : value >= 10 ? 1 : 2);
};

const toRow = ({ name, of }: Line): string[] => {
  const [embedded, real] = [of('embedded'), of('real')];
  const ratio = embedded === undefined || real === undefined || real === 0 ? undefined : embedded / real;
  return [name, toNumber(embedded), toNumber(real), ratio === undefined ? '' : ratio.toFixed(2)];
};

export const showResults = (results: Results, kinds: readonly Kind[]): string => {
  const lines = [
    ...requestLines(results.requests),
    ...linesOf(results.pages, pageMeasures),
    ...linesOf(results.watches, watchMeasures),
    ...linesOf(results.history, historyMeasures),
  ];
  const columns = kinds.length === 1 ? 2 : 4;
  return toTable([['', 'embedded', 'real', 'ratio'], ...lines.map(toRow)].map((row) => row.slice(0, columns)));
};
