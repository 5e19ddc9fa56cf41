// Volumes and snapshots as files under one directory. Independent of Kubernetes. Everything appears complete or not at all: it is created under
// `work/` and renamed, so that a crash leaves nothing incomplete behind.
import { randomUUID } from 'node:crypto';
import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, appendFile, lstat, mkdir, open, readdir, rename, rm, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { VolumeMode } from '#shared/api/foreign/core.ts';

/** A volume, a snapshot, or the disk of a backing image to copy from. */
export interface Origin {
  readonly what: 'volume' | 'snapshot' | 'image';
  readonly handle: string;
}

export interface VolumeDirectory {
  /** Creates an empty volume, or a copy of `from`. A block volume has exactly `bytes`. Does nothing when the volume exists. */
  create(handle: string, shape: { readonly mode: VolumeMode; readonly bytes: number }, from?: Origin): Promise<void>;
  /** Expands a block volume; a file system volume has no size of its own. */
  expand(handle: string, mode: VolumeMode, bytes: number): Promise<void>;
  /** Copies a volume in its current state. Does nothing when the snapshot exists. */
  snapshot(handle: string, volume: string): Promise<void>;
  /** Stores a disk that volumes are copied from; `fill` creates it in the given directory. Does nothing when it exists. */
  putImage(handle: string, fill: (draft: string) => Promise<void>): Promise<void>;
  remove(origin: Origin): Promise<void>;
  /** Releases a volume without losing its data (`reclaimPolicy: Retain`). */
  retain(handle: string): Promise<void>;
  exists(origin: Origin): Promise<boolean>;
  /** Host path of what a pod sees: the mounted directory, or the file that represents the device. */
  pathOf(handle: string, mode: VolumeMode): string;
  /** Bytes that a volume uses on the host. */
  usedBytes(handle: string): Promise<number>;
  /** Handles of all existing volumes and snapshots. */
  handles(): Promise<readonly Origin[]>;
}

const run = promisify(execFile);
const retainedSuffix = '.retained';

/** Opens the directory and deletes what an earlier process left incomplete. */
export const openVolumeDirectory = async (root: string): Promise<VolumeDirectory> => {
  const work = join(root, 'work');
  await rm(work, { recursive: true, force: true });
  for (const name of ['volumes', 'snapshots', 'images', 'work']) await mkdir(join(root, name), { recursive: true });

  const placeOf = ({ what, handle }: Origin): string => join(root, `${what}s`, handle);
  const exists = (origin: Origin): Promise<boolean> => isThere(placeOf(origin));
  const exclusively = createLocks();

  /** Fills a directory under `work/` and renames it to its final path. */
  const make = async (target: Origin, fill: (path: string) => Promise<void>): Promise<void> => {
    if (await exists(target)) return;
    const draft = join(work, randomUUID());
    try {
      await mkdir(draft);
      await fill(draft);
      await flushTree(draft);
      await rename(draft, placeOf(target));
      await flush(join(root, `${target.what}s`));
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  };

  const copy = (from: Origin, target: Origin, finish: (path: string) => Promise<void>): Promise<void> =>
    exclusively(placeOf(from), () =>
      make(target, async (draft) => {
        await copyTree(placeOf(from), draft);
        await finish(draft);
      }),
    );

  return {
    create: (handle, { mode, bytes }, from) => {
      const target: Origin = { what: 'volume', handle };
      const shape = (path: string): Promise<void> => shapeVolume(path, mode, bytes);
      return from === undefined ? make(target, shape) : copy(from, target, shape);
    },
    expand: async (handle, mode, bytes) => {
      if (mode === 'Block') await truncate(join(placeOf({ what: 'volume', handle }), 'block'), bytes);
    },
    snapshot: (handle, volume) =>
      copy({ what: 'volume', handle: volume }, { what: 'snapshot', handle }, () => Promise.resolve()),
    putImage: (handle, fill) => {
      const target: Origin = { what: 'image', handle };
      return exclusively(placeOf(target), () => make(target, fill));
    },
    remove: (origin) =>
      exclusively(placeOf(origin), async () => {
        const trash = join(work, randomUUID());
        if (await isThere(placeOf(origin))) await rename(placeOf(origin), trash);
        await rm(trash, { recursive: true, force: true });
      }),
    retain: async (handle) => {
      const place = placeOf({ what: 'volume', handle });
      if (await isThere(place)) await rename(place, place + retainedSuffix);
    },
    exists,
    pathOf: (handle, mode) => join(placeOf({ what: 'volume', handle }), mode === 'Block' ? 'block' : 'fs'),
    usedBytes: (handle) => allocatedBytes(placeOf({ what: 'volume', handle })),
    handles: async () => {
      const volumes = await readdir(join(root, 'volumes'));
      const snapshots = await readdir(join(root, 'snapshots'));
      return [
        ...volumes
          .filter((name) => !name.endsWith(retainedSuffix))
          .map((handle) => ({ what: 'volume' as const, handle })),
        ...snapshots.map((handle) => ({ what: 'snapshot' as const, handle })),
      ];
    },
  };
};

const isThere = (path: string): Promise<boolean> =>
  access(path, constants.F_OK).then(
    () => true,
    () => false,
  );

const shapeVolume = async (path: string, mode: VolumeMode, bytes: number): Promise<void> => {
  if (mode === 'Filesystem') {
    await mkdir(join(path, 'fs'), { recursive: true, mode: 0o777 });
    return;
  }
  const file = join(path, 'block');
  await appendFile(file, '');
  await truncate(file, bytes);
};

const copyTree = async (from: string, to: string): Promise<void> => {
  const flags = process.platform === 'darwin' ? ['-Rpc'] : ['-a', '--reflink=auto', '--sparse=always'];
  await run('cp', [...flags, `${from}/.`, to]);
};

const flush = async (path: string): Promise<void> => {
  await using handle = await open(path, 'r');
  await handle.sync();
};

const flushTree = async (path: string): Promise<void> => {
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    if (entry.isFile() || entry.isDirectory()) await flush(join(entry.parentPath, entry.name));
  }
  await flush(path);
};

const allocatedBytes = async (path: string): Promise<number> => {
  let total = 0;
  for (const entry of await readdir(path, { withFileTypes: true, recursive: true })) {
    // A file may disappear meanwhile: a pod is using the directory.
    const facts = await lstat(join(entry.parentPath, entry.name)).catch(() => undefined);
    if (entry.isFile() && facts !== undefined) total += facts.blocks * 512;
  }
  return total;
};

/** One operation at a time for each name: a volume is not deleted while it is being copied. */
const createLocks = (): (<T>(name: string, work: () => Promise<T>) => Promise<T>) => {
  const last = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const turn = (last.get(name) ?? Promise.resolve()).then(work, work);
    last.set(name, turn);
    const leave = (): void => {
      if (last.get(name) === turn) last.delete(name);
    };
    turn.then(leave, leave);
    return turn;
  };
};
