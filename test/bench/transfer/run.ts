// `npm run bench -- transfer [--images a,b] [--runs 5] [--rate 50m] [--directory D]`: ours beside the references, in turns, medians.
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { median, toTable } from '#test/bench/table.ts';
import { type BenchImage, benchImages, makeImages } from '#test/bench/transfer/images.ts';
import { type Cost, type Setting, measure } from '#test/bench/transfer/measure.ts';
import { startNginx } from '#test/bench/transfer/nginx.ts';
import { type Way, ways } from '#test/bench/transfer/ways.ts';

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

/** Every way once, then again: whatever else the machine does falls on all of them alike. */
const compare = (image: BenchImage, setting: Setting, runs: number): ReadonlyMap<Way, readonly Cost[]> => {
  const own = ways.filter((way) => way.isFor(image));
  const costs = new Map<Way, Cost[]>(own.map((way) => [way, []]));
  for (let run = 0; run < runs; run++) for (const way of own) costs.get(way)?.push(measure(way, image, setting));
  return costs;
};

const show = (image: BenchImage, costs: ReadonlyMap<Way, readonly Cost[]>): void => {
  const ours = median(
    [...costs].filter(([way]) => way.name === 'ours').flatMap(([, list]) => list.map(({ wall }) => wall)),
  );
  const rows = [...costs].map(([way, list]) => {
    const wall = median(list.map((cost) => cost.wall));
    return [
      way.name,
      wall.toFixed(2),
      median(list.map(({ cpu }) => cpu)).toFixed(1),
      median(list.map(({ residentMiB }) => residentMiB)).toFixed(0),
      (wall / ours).toFixed(2),
    ];
  });
  console.log(`\n${toTable([[image.name, 'seconds', 'cpu s', 'MiB', '÷ ours'], ...rows])}`);
};

/** Those named, all without names. Throws on a name that is none, so that nothing is left out in silence. */
const chooseImages = (names: readonly string[] | undefined): typeof benchImages => {
  const known = benchImages.map(({ name }) => name);
  const unknown = (names ?? []).filter((name) => !known.includes(name));
  if (unknown.length > 0) throw new Error(`no image is called ${unknown.join(', ')}; there are: ${known.join(', ')}`);
  return benchImages.filter(({ name }) => names === undefined || names.includes(name));
};

export const run = async (args: readonly string[]): Promise<void> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      images: { type: 'string' },
      runs: { type: 'string', default: '5' },
      rate: { type: 'string' },
      directory: { type: 'string', default: join(tmpdir(), 'bullion-bench') },
    },
  });
  const missing = missingPackages();
  if (missing.length > 0) throw new Error(`needs programs: apt-get install -y ${missing.join(' ')}`);
  const images = chooseImages(values.images?.split(','));
  const raw = makeImages(values.directory, images);
  const nginx = await startNginx(values.directory, values.rate);
  try {
    const setting = { url: nginx.url, directory: values.directory, raw };
    for (const image of images) show(image, compare(image, setting, Number(values.runs)));
  } finally {
    await nginx.stop();
  }
};
