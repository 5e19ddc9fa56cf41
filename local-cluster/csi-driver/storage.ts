// Volumes and snapshots as sparse files: what survives a restart of the driver is in their names. Called by services.ts.
import { execFile } from 'node:child_process';
import { mkdir, open, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

export interface Snapshot {
  readonly id: string;
  readonly volume: string;
  readonly bytes: number;
  readonly createdAt: Date;
}

/** Sizes and paths; `undefined` for what does not exist. Every method can be repeated after a crash. */
export interface Storage {
  readonly pathOf: (volume: string) => string;
  readonly sizeOf: (volume: string) => Promise<number | undefined>;
  readonly create: (volume: string, bytes: number) => Promise<void>;
  /** With the content of another volume or a snapshot, followed by zeroes. */
  readonly copy: (volume: string, from: Origin, bytes: number) => Promise<void>;
  readonly grow: (volume: string, bytes: number) => Promise<void>;
  readonly remove: (volume: string) => Promise<void>;
  readonly snapshot: (id: string, volume: string) => Promise<Snapshot>;
  readonly findSnapshot: (id: string) => Promise<Snapshot | undefined>;
  readonly removeSnapshot: (id: string) => Promise<void>;
}

export interface Origin {
  readonly kind: 'volume' | 'snapshot';
  readonly id: string;
}

const sizeOfFile = async (path: string): Promise<number | undefined> => (await stat(path).catch(() => undefined))?.size;

/** Under its name once it is complete. */
const copyFile = async (from: string, to: string, bytes?: number): Promise<void> => {
  await exec('cp', ['--sparse=always', '--reflink=auto', from, `${to}.part`]);
  if (bytes !== undefined) await truncate(`${to}.part`, bytes);
  await rename(`${to}.part`, to);
};

export const openStorage = async (folder: string): Promise<Storage> => {
  const folders = { volume: join(folder, 'volumes'), snapshot: join(folder, 'snapshots') };
  for (const path of Object.values(folders)) await mkdir(path, { recursive: true });
  const imageOf = ({ kind, id }: Origin): string => join(folders[kind], `${id}.img`);
  const pathOf = (id: string): string => imageOf({ kind: 'volume', id });
  const snapshotPath = (id: string): string => imageOf({ kind: 'snapshot', id });
  const recordOf = (id: string): string => join(folders.snapshot, `${id}.json`);

  const findSnapshot: Storage['findSnapshot'] = async (id) => {
    const bytes = await sizeOfFile(snapshotPath(id));
    if (bytes === undefined) return undefined;
    const { volume, createdAt } = JSON.parse(await readFile(recordOf(id), 'utf8')) as Record<
      'volume' | 'createdAt',
      string
    >;
    return { id, volume, bytes, createdAt: new Date(createdAt) };
  };

  return {
    pathOf,
    sizeOf: (volume) => sizeOfFile(pathOf(volume)),
    create: async (volume, bytes) => {
      await using file = await open(`${pathOf(volume)}.part`, 'w');
      await file.truncate(bytes);
      await rename(`${pathOf(volume)}.part`, pathOf(volume));
    },
    copy: (volume, from, bytes) => copyFile(imageOf(from), pathOf(volume), bytes),
    grow: (volume, bytes) => truncate(pathOf(volume), bytes),
    remove: (volume) => rm(pathOf(volume), { force: true }),
    snapshot: async (id, volume) => {
      const createdAt = new Date();
      await writeFile(recordOf(id), JSON.stringify({ volume, createdAt }));
      await copyFile(pathOf(volume), snapshotPath(id));
      return { id, volume, createdAt, bytes: (await sizeOfFile(snapshotPath(id))) ?? 0 };
    },
    findSnapshot,
    removeSnapshot: async (id) => {
      await rm(snapshotPath(id), { force: true });
      await rm(recordOf(id), { force: true });
    },
  };
};
