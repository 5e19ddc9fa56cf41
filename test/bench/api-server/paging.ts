// Many objects, written and then read page by page, while the memory of the server is watched.
import { type Load, expectStatus, percentile, runLoad } from '#test/bench/api-server/load.ts';
import { residentMiB } from '#test/bench/processes.ts';
import type { Server } from '#test/bench/api-server/servers.ts';

const collection = '/api/v1/namespaces/default/configmaps';
/** As kubectl asks. */
const pageSize = 500;
/** Bytes of an object as it is stored, more or less. */
const objectBytes = 4096;

export interface Paging {
  readonly writes: Load;
  readonly read: number;
  readonly seconds: number;
  readonly p50: number;
  readonly p99: number;
  /** MiB resident before the first page, at most while reading, and after the last. */
  readonly before: number;
  readonly most: number;
  readonly after: number;
  /** Seconds for everything in one answer, and MiB resident then. */
  readonly wholeSeconds: number;
  readonly wholeMost: number;
}

const buildObject = (index: number) => ({
  metadata: { name: `object-${String(index).padStart(6, '0')}`, labels: { shard: String(index % 10) } },
  data: { text: 'x'.repeat(objectBytes - 400) },
});

interface Page {
  readonly metadata: { readonly continue?: string };
  readonly items: readonly { readonly metadata: { readonly name: string } }[];
}

export const measurePaging = async (
  server: Server,
  { objects, clients }: { readonly objects: number; readonly clients: number },
): Promise<Paging> => {
  const writes = await runLoad(server, { clients, requests: objects }, async (_, index) =>
    expectStatus(await server.http.call('POST', collection, buildObject(index)), 201),
  );
  const before = residentMiB(server.pids);
  const latencies: number[] = [];
  const names = new Set<string>();
  const began = performance.now();
  let most = before;
  let token: string | undefined = '';
  while (token !== undefined) {
    const start = performance.now();
    const path: string = `${collection}?limit=${pageSize}&continue=${encodeURIComponent(token)}`;
    const page = JSON.parse(expectStatus(await server.http.call('GET', path), 200)) as Page;
    latencies.push(performance.now() - start);
    for (const { metadata } of page.items) if (metadata.name.startsWith('object-')) names.add(metadata.name);
    most = Math.max(most, residentMiB(server.pids));
    token = page.metadata.continue;
  }
  if (names.size !== objects) throw new Error(`${objects} objects were written, ${names.size} were listed`);
  const seconds = (performance.now() - began) / 1000;
  const after = residentMiB(server.pids);
  return {
    writes,
    read: names.size,
    seconds,
    before,
    most,
    after,
    p50: percentile(latencies, 50),
    p99: percentile(latencies, 99),
    ...(await measureWhole(server)),
  };
};

const measureWhole = async (server: Server): Promise<Pick<Paging, 'wholeSeconds' | 'wholeMost'>> => {
  const began = performance.now();
  let wholeMost = 0;
  const sampling = setInterval(() => (wholeMost = Math.max(wholeMost, residentMiB(server.pids))), 20);
  expectStatus(await server.http.call('GET', collection), 200);
  clearInterval(sampling);
  return { wholeSeconds: (performance.now() - began) / 1000, wholeMost };
};
