// `npm run bench -- transfer [--only zlib,export-plain] [--runs 5] [--fast] [--directory D]`: ours beside the references, in turns, medians.
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { buildBundles } from '#infra/bundle/build.ts';
import { median, toTable } from '#test/bench/table.ts';
import { makeDisk, makeImage } from '#test/bench/transfer/images.ts';
import { type Cost, type Setting, measure } from '#test/bench/transfer/measure.ts';
import { type Row, type Target, chooseRows, rows } from '#test/bench/transfer/rows.ts';
import { startServers } from '#test/bench/transfer/servers.ts';
import { type Way, type WayName, ways } from '#test/bench/transfer/ways.ts';

/** Program, and the Debian package that has it. */
const needed = {
  nginx: 'nginx-light',
  nbdkit: 'nbdkit',
  'qemu-img': 'qemu-utils',
  curl: 'curl',
  'mkfs.ext4': 'e2fsprogs',
  xz: 'xz-utils',
  zstd: 'zstd',
  '/usr/bin/time': 'time',
} as const;

const missingPackages = (): readonly string[] =>
  Object.entries(needed)
    .filter(([program]) => spawnSync('bash', ['-c', `command -v ${program}`]).status !== 0)
    .map(([, name]) => name);

/** Medians of the runs. */
type Costs = ReadonlyMap<WayName, Cost>;

/** Every way once, then again: whatever else the machine does falls on all of them alike. */
const compare = (row: Row, setting: Setting, runs: number): Costs => {
  const own = ways.filter((way) => way.isFor(row));
  const costs = new Map<Way, Cost[]>(own.map((way) => [way, []]));
  for (let run = 0; run < runs; run++) for (const way of own) costs.get(way)?.push(measure(way, row, setting));
  const medianOf = (list: readonly Cost[], field: keyof Cost): number => median(list.map((cost) => cost[field]));
  return new Map(
    [...costs].map(([way, list]) => [
      way.name,
      {
        wall: medianOf(list, 'wall'),
        cpu: medianOf(list, 'cpu'),
        residentMiB: medianOf(list, 'residentMiB'),
        objectBytes: medianOf(list, 'objectBytes'),
      },
    ]),
  );
};

/** `holds: 2.1 times as fast as scratch, then convert (at least 1.8)`. By processor time as well, which a busy machine hardly changes. */
const judge = (target: Target, costs: Costs): string => {
  const [ours, other] = [costs.get('ours'), costs.get(target.against)];
  if (ours === undefined || other === undefined) return `not measured: ${target.against}`;
  const { atLeast, atMost = Infinity } = target;
  const [factor, byCpu] =
    atLeast === undefined
      ? [ours.wall / other.wall, ours.cpu / other.cpu]
      : [other.wall / ours.wall, other.cpu / ours.cpu];
  const holds = atLeast === undefined ? factor <= atMost : factor >= atLeast;
  const words =
    atLeast === undefined
      ? `× "${target.against}" (at most ${atMost})`
      : `times as fast as "${target.against}" (at least ${atLeast})`;
  return `${holds ? 'holds ' : 'MISSES'}: ${factor.toFixed(2)} ${words}; by processor time ${byCpu.toFixed(2)}`;
};

const judgeSize = (row: Row, costs: Costs): readonly string[] => {
  const [ours, other] = [costs.get('ours')?.objectBytes, costs.get('convert, then upload')?.objectBytes];
  if (row.kind !== 'export' || ours === undefined || other === undefined) return [];
  const limit = row.atMostSize === undefined ? '' : ` (at most ${row.atMostSize})`;
  return [`size: ${(ours / other).toFixed(3)} × qemu-img's${limit}`];
};

const show = (row: Row, costs: Costs): void => {
  const ours = costs.get('ours')?.wall ?? Number.NaN;
  const lines = [...costs].map(([name, { wall, cpu, residentMiB }]) => [
    name,
    wall.toFixed(2),
    cpu.toFixed(1),
    residentMiB.toFixed(0),
    (wall / ours).toFixed(2),
  ]);
  console.log(`\n${toTable([[row.name, 'seconds', 'cpu s', 'MiB', '÷ ours'], ...lines])}`);
  for (const line of [...row.targets.map((target) => judge(target, costs)), ...judgeSize(row, costs)])
    console.log(line);
};

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: 'string' },
      runs: { type: 'string' },
      fast: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      directory: { type: 'string', default: join(tmpdir(), 'bullion-bench') },
    },
  });
  if (values.list) {
    for (const { name } of rows) console.log(name);
    return;
  }
  const missing = missingPackages();
  if (missing.length > 0) throw new Error(`needs programs: apt-get install -y ${missing.join(' ')}`);
  const chosen = chooseRows(values.only?.split(','));
  const directory = values.fast ? join(values.directory, 'fast') : values.directory;
  const raw = makeDisk(directory, values.fast ? 'fast' : 'whole');
  for (const row of chosen) if (row.kind === 'import') makeImage(directory, raw, row.image);
  const functions = join(directory, 'functions');
  await buildBundles(functions);
  const entry = join(functions, 'transfer-job.mjs');
  const servers = await startServers(directory);
  try {
    const runs = Number(values.runs ?? (values.fast ? 1 : 5));
    for (const row of chosen) show(row, compare(row, { servers, entry, directory, raw }, runs));
  } finally {
    await servers.stop();
  }
};
