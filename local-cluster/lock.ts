// One cluster per data directory. Called by cluster.ts.
import { mkdir, open, readFile, rm, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { identityOf } from '#local-cluster/controllers/jobs/process.ts';
import { Conflict, InvalidInput } from '#shared/runtime/errors.ts';

/** Creates and locks the directory; returns how to unlock it. Throws Conflict while another cluster uses it, InvalidInput if it is not writable. */
export const lockDataDir = async (dataDir: string): Promise<() => Promise<void>> => {
  const dir = resolve(dataDir);
  await makeFolders(dir);
  const file = join(dir, 'cluster.pid');
  // A killed cluster leaves its file behind; of two that find it, one wins the second round.
  for (let round = 0; round < 2; round += 1) {
    if (await writeOwn(file)) return () => rm(file, { force: true });
    const owner = await readOwner(file);
    if (owner !== undefined) {
      throw new Conflict(
        `a local cluster (process ${owner}) already runs on ${dataDir}: use it, stop it, or choose another --data-dir`,
      );
    }
    await rm(file, { force: true });
  }
  throw new Conflict(`another local cluster is just starting on ${dataDir}`);
};

/** One by one from the nearest existing folder: a recursive mkdir of Node never returns where no folder can be created, such as below /proc. */
const makeFolders = async (dir: string): Promise<void> => {
  const missing: string[] = [];
  let parent = dir;
  while (!(await exists(parent))) {
    missing.push(parent);
    parent = dirname(parent);
  }
  for (const folder of missing.toReversed()) await makeFolder(folder, dir);
};

const exists = (path: string): Promise<boolean> =>
  stat(path).then(
    () => true,
    () => false,
  );

const makeFolder = async (folder: string, dir: string): Promise<void> => {
  try {
    await mkdir(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    // Another process may have created it just now.
    if (code === 'EEXIST') return;
    throw unusable(dir, `no folder can be made in ${dirname(folder)} (${code})`, error);
  }
};

const unusable = (dir: string, why: string, cause: unknown): InvalidInput =>
  new InvalidInput(`nothing can be kept in ${dir}: ${why}; choose another --data-dir`, [], { cause });

/** Process ID, and an identity that distinguishes it from a later process with the same ID. */
const writeOwn = async (file: string): Promise<boolean> => {
  try {
    await using handle = await open(file, 'wx');
    await handle.writeFile(`${process.pid}\n${(await identityOf(process.pid)) ?? ''}\n`);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return false;
    throw unusable(dirname(file), `no file can be written there (${code})`, error);
  }
};

const readOwner = async (file: string): Promise<number | undefined> => {
  const [number = '', identity = ''] = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  const pid = Number.parseInt(number, 10);
  return Number.isInteger(pid) && (await identityOf(pid)) === identity ? pid : undefined;
};
