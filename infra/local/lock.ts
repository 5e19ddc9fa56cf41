// One cluster per data directory. Called by cluster.ts.
import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { identityOf } from '#infra/local/controllers/jobs/process.ts';
import { Conflict } from '#shared/runtime/errors.ts';

/** Takes the directory, making it first; returns how to give it back. Throws Conflict while another cluster runs on it. */
export const lockDataDir = async (dataDir: string): Promise<() => Promise<void>> => {
  await mkdir(dataDir, { recursive: true });
  const file = join(dataDir, 'cluster.pid');
  // A cluster that was killed leaves its file behind; of two that find it so, one wins the second round.
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

/** Process number and the identity that tells it from a later process of the same number. */
const writeOwn = async (file: string): Promise<boolean> => {
  try {
    await using handle = await open(file, 'wx');
    await handle.writeFile(`${process.pid}\n${(await identityOf(process.pid)) ?? ''}\n`);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
};

const readOwner = async (file: string): Promise<number | undefined> => {
  const [number = '', identity = ''] = (await readFile(file, 'utf8').catch(() => '')).split('\n');
  const pid = Number.parseInt(number, 10);
  return Number.isInteger(pid) && (await identityOf(pid)) === identity ? pid : undefined;
};
