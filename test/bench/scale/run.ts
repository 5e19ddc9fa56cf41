// `npm run bench -- scale`: what one sweep, one tick between two sweeps, one scrape and one admission cost at rest, with a tenth of the objects and with all of them. Everything has
// come to rest, so that each figure that grows is one that depends on what is there instead of on what changes.
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { connect } from '#test/bench/connect.ts';
import { type Counts, createNamespaces, fill } from '#test/bench/scale/objects.ts';
import { toTable } from '#test/bench/table.ts';
import { startServerProcess } from '#test/support/api-server/process.ts';

interface Taken {
  /** Requests, as method and path. */
  readonly asked: readonly string[];
  readonly bytes: number;
  readonly seconds: number;
  readonly mebibytes: number;
}

const ways = ['nothing', 'sweep', 'tick', 'scrape', 'admission'] as const;
const script = fileURLToPath(new URL('once.ts', import.meta.url));
const runFile = promisify(execFile);

const measure = async (kubeconfig: string): Promise<readonly Taken[]> => {
  const taken: Taken[] = [];
  for (const way of ways) {
    const { stdout } = await runFile(process.execPath, [script, kubeconfig, way], { maxBuffer: 2 ** 26 });
    taken.push(JSON.parse(stdout) as Taken);
  }
  return taken;
};

/** `GET /apis/…/datavolumes`, without what differs between pages. */
const withoutPage = (asked: string): string =>
  decodeURIComponent(asked.replace(/[?&](?:limit|continue)=[^&]*/g, '')).replace(/\?$/, '');

const showRequests = ({ asked }: Taken): string =>
  toTable(
    [...Map.groupBy(asked, withoutPage)]
      .toSorted(([, a], [, b]) => b.length - a.length)
      .map(([path, pages]) => [path, String(pages.length)]),
  );

const showRow = (way: string, few: Taken, many: Taken): readonly string[] => {
  const cell = (of: (taken: Taken) => number, digits: number): string => {
    const [a, b] = [of(few), of(many)];
    return `${a.toFixed(digits)} → ${b.toFixed(digits)}${a > 0 ? ` (× ${(b / a).toFixed(1)})` : ''}`;
  };
  return [
    way,
    cell(({ asked }) => asked.length, 0),
    cell(({ bytes }) => bytes / 2 ** 20, 2),
    cell(({ seconds }) => seconds, 2),
    cell(({ mebibytes }) => mebibytes, 0),
  ];
};

const tenthOf = ({ images, volumes, crons }: Counts): Counts => ({
  images: Math.ceil(images / 10),
  volumes: Math.ceil(volumes / 10),
  crons: Math.ceil(crons / 10),
});

const say = ({ images, volumes, crons }: Counts): string => `${images} images, ${volumes} volumes, ${crons} crons`;

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      images: { type: 'string', default: '5000' },
      volumes: { type: 'string', default: '20000' },
      crons: { type: 'string', default: '1000' },
      requests: { type: 'boolean', default: false },
    },
  });
  const all = { images: Number(values.images), volumes: Number(values.volumes), crons: Number(values.crons) };
  const tenth = tenthOf(all);
  const dataDir = await mkdtemp(join(tmpdir(), 'bullion-bench-scale-'));
  const server = startServerProcess({ dataDir });
  try {
    const { kube, kubeconfig } = await connect(dataDir, await server.ready);
    await createNamespaces(kube);
    await fill(kube, { images: 0, volumes: 0, crons: 0 }, tenth);
    const few = await measure(kubeconfig);
    await fill(kube, tenth, all);
    const many = await measure(kubeconfig);
    const rows = ways.map((way, index) => showRow(way, few[index]!, many[index]!));
    console.log(`${say(tenth)} → ${say(all)}`);
    console.log(toTable([['', 'requests', 'MiB received', 'processor seconds', 'MiB resident at most'], ...rows]));
    if (values.requests) console.log(showRequests(many[ways.indexOf('sweep')]!));
  } finally {
    await server.kill();
    await rm(dataDir, { recursive: true, force: true });
  }
};
