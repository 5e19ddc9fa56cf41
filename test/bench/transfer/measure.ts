// Runs one way once and says what it cost: wall and processor seconds, and the largest resident set of any of its processes.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type ImportRow, type ExportRow, type Row } from '#test/bench/transfer/rows.ts';
import { layerPath } from '#test/bench/transfer/images.ts';
import type { Servers } from '#test/bench/transfer/servers.ts';
import type { Way } from '#test/bench/transfer/ways.ts';

export interface Cost {
  readonly wall: number;
  readonly cpu: number;
  readonly residentMiB: number;
  /** Bytes of the object an export made; 0 for imports. */
  readonly objectBytes: number;
}

export interface Setting {
  readonly servers: Servers;
  /** The Job's program: its bundle, as in images. */
  readonly entry: string;
  /** Where the images are. */
  readonly directory: string;
  readonly raw: string;
}

const pathOf = (script: string): string => new URL(script, import.meta.url).pathname;

const jobEnvironment = (spec: object, work: string): Record<string, string> => ({
  BULLION_TRANSFER: JSON.stringify({ scratchDir: work, allowedAddresses: ['127.0.0.0/8'], ...spec }),
  BULLION_OWNER: JSON.stringify({ apiVersion: 'v1', kind: 'Bench', namespace: 'bench', name: 'bench', uid: 'bench' }),
  POD_NAME: 'bench',
  BULLION_TERMINATION_LOG: join(work, 'report'),
  // As the local cluster starts its Jobs.
  NODE_COMPILE_CACHE: join(work, '..', 'code'),
});

const importEnvironment = ({ image, link }: ImportRow, { servers, directory }: Setting, work: string) => {
  const base = servers.urlOf(link);
  const url = `${base}/${image.isLayer === true ? layerPath(directory) : image.file}`;
  const host = new URL(base).host;
  const source =
    image.isLayer === true
      ? { type: 'registry', url: `docker://${host}/bench/disk:latest`, architecture: 'amd64', plainHttp: true }
      : { type: 'http', url };
  const target = join(work, 'target');
  const spec = { mode: 'import', source, target: { path: target, volumeMode: 'Filesystem', capacityBytes: 2 ** 36 } };
  const { format, unpack = '', file } = image;
  return { ...jobEnvironment(spec, work), url, target, format, unpack, file: join(directory, file) };
};

const exportEnvironment = ({ compression, level }: ExportRow, { servers, raw }: Setting, work: string) => {
  const object = { endpoint: servers.store, region: 'us-east-1', pathStyle: true, bucket: 'bench', key: 'object' };
  const form = { format: 'qcow2', compression, ...(level === 0 ? {} : { level }) };
  const spec = { mode: 'export', source: { type: 'volume', path: raw }, export: { form, object, guestDigest: false } };
  const packed = compression === 'none' ? '-m 16' : `-c -m 16 -W -o compression_type=${compression}`;
  return {
    ...jobEnvironment(spec, work),
    raw,
    store: servers.store,
    options: packed,
    uploader: pathOf('./uploader.ts'),
  };
};

const isSameDisk = (raw: string, path: string, format: string): boolean =>
  spawnSync('qemu-img', ['compare', '-f', 'raw', '-F', format, raw, path]).status === 0;

/** Puts the parts together, as the store was told to. */
const fetchObject = (storeDirectory: string, target: string): void => {
  const parts = readFileSync(join(storeDirectory, 'object'), 'utf8').split('\n');
  const { status } = spawnSync('bash', ['-c', 'cat "$@" >"$0"', target, ...parts], { cwd: storeDirectory });
  if (status !== 0) throw new Error('the object cannot be put together');
};

/** Gives the object's bytes. Throws when what was made differs from the reference. */
const prove = (way: Way, { servers, raw }: Setting, work: string): number => {
  if (way.leaves === 'nothing') return 0;
  const target = join(work, 'target');
  if (way.leaves === 'object') fetchObject(servers.storeDirectory, target);
  if (!isSameDisk(raw, target, way.leaves === 'object' ? 'qcow2' : 'raw')) throw new Error('it made another disk');
  return way.leaves === 'object' ? statSync(target).size : 0;
};

/** Throws when the way fails or its disk differs from the reference. */
export const measure = (way: Way, row: Row, setting: Setting): Cost => {
  const { directory, servers } = setting;
  const work = join(directory, 'work');
  for (const path of [work, servers.storeDirectory]) {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
  }
  const result = join(work, 'time');
  const own = row.kind === 'import' ? importEnvironment(row, setting, work) : exportEnvironment(row, setting, work);
  const ended = spawnSync('/usr/bin/time', ['-o', result, '-f', '%e %U %S %M', 'bash', '-c', way.script], {
    encoding: 'utf8',
    env: { ...process.env, ...own, node: process.execPath, entry: setting.entry, work },
  });
  if (ended.status !== 0) throw new Error(`${row.name}: ${way.name} failed: ${ended.stderr}`);
  const [wall = 0, user = 0, system = 0, kib = 0] =
    readFileSync(result, 'utf8').trim().split('\n').at(-1)?.split(' ').map(Number) ?? [];
  const objectBytes = prove(way, setting, work);
  rmSync(work, { recursive: true, force: true });
  return { wall, cpu: user + system, residentMiB: kib / 1024, objectBytes };
};
