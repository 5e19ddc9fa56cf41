// `npm run bench -- api-server`: one table, the embedded API server beside a real one where its binaries are at hand.
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { measureHistory } from '#test/bench/api-server/history.ts';
import { measurePaging } from '#test/bench/api-server/paging.ts';
import { type Results, showResults } from '#test/bench/api-server/show.ts';
import { type Kind, type Server, hasReal, startServer } from '#test/bench/api-server/servers.ts';
import { measureThroughput } from '#test/bench/api-server/throughput.ts';
import { measureWatchers } from '#test/bench/api-server/watchers.ts';

const parts = ['requests', 'pages', 'watches', 'history'] as const;

/** Versions kept in the measurement of history, so that it need not last until the default is full. */
const historyLimit = 1_000;

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      clients: { type: 'string', default: '16' },
      seconds: { type: 'string', default: '4' },
      objects: { type: 'string', default: '50000' },
      watchers: { type: 'string', default: '1000' },
      events: { type: 'string', default: '100' },
      changes: { type: 'string', default: '8000' },
      /** Any of requests, pages, watches, history. */
      only: { type: 'string', multiple: true, default: [...parts] },
      /** etcd waits for the disk, which the embedded server does not. */
      fsync: { type: 'boolean', default: false },
      'no-real': { type: 'boolean', default: false },
    },
  });
  const wants = (part: (typeof parts)[number]): boolean => values.only.includes(part);
  const kinds: readonly Kind[] = !values['no-real'] && hasReal() ? ['embedded', 'real'] : ['embedded'];
  if (kinds.length === 1)
    console.error('no real API server: set KUBEBUILDER_ASSETS or run `npm run envtest` to compare');
  const clients = Number(values.clients);
  const results: Results = { pages: new Map(), watches: new Map(), history: new Map() };
  const eachAlone = async (use: (server: Server) => Promise<unknown>, limit?: number): Promise<void> => {
    for (const kind of kinds) {
      const server = await startServer(kind, {
        fsync: values.fsync,
        ...(limit === undefined ? {} : { historyLimit: limit }),
      });
      try {
        await use(server);
      } finally {
        await server.close();
      }
    }
  };

  if (wants('requests')) {
    const servers = await Promise.all(kinds.map((kind) => startServer(kind, { fsync: values.fsync })));
    try {
      results.requests = await measureThroughput(servers, { clients, seconds: Number(values.seconds) });
    } finally {
      for (const server of servers) await server.close();
    }
  }
  if (wants('pages')) {
    const options = { objects: Number(values.objects), clients };
    await eachAlone(async (server) => results.pages.set(server.kind, await measurePaging(server, options)));
  }
  if (wants('watches')) {
    const options = { watchers: Number(values.watchers), events: Number(values.events), perSecond: 10 };
    await eachAlone(async (server) => results.watches.set(server.kind, await measureWatchers(server, options)));
  }
  if (wants('history')) {
    const options = { changes: Number(values.changes), stalled: 10, clients };
    await eachAlone(
      async (server) => results.history.set(server.kind, await measureHistory(server, options)),
      historyLimit,
    );
  }
  console.log(`\n${availableParallelism()} cores, ${clients} clients${values.fsync ? ', etcd with fsync' : ''}\n`);
  console.log(showResults(results, kinds));
};
